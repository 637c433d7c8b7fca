/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One log line for each tool call: who, which tool, which sandbox, how it ended, how long it took.
 * Never contents, never tokens: of a command and a path the line has a digest and the length.
 */
#pragma once

#include "gateway/auth/principal.h"
#include "gateway/tools/tool.h"

typedef struct AuditRecord {
    const Principal *principal;
    const char *peer;
    const Tool *tool;
    const ToolArgs *args; /* NULL: they were refused */
    const char *claim;    /* where the arguments do not name it, or NULL */
    const char *pod;      /* or NULL */
    const char *outcome;  /* "ok", or the kind of the error */
    const char *detail;   /* a word about the result, or NULL */
    int64_t number;       /* what belongs to it: exit code, bytes, entries */
    int64_t duration_ms;
} AuditRecord;

void audit_call(const AuditRecord *record);
