/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents of the API server into views. What is missing, null or of the wrong type is treated as
 * absent; an object without name, UID or a numeric resourceVersion is refused (ERROR_INVALID), and
 * the caller skips it with a log line. Nothing of the document is kept.
 */
#pragma once

#include "common/json/json.h"
#include "controller/model.h"

/* now_ms clamps what annotations claim about activity (model.h). *ret is the caller's. */
int obj_parse(Interner *in, ObjKind kind, const JsonValue *doc, int64_t now_ms, Obj **ret,
              Error **error);

typedef struct ObjRef {
    const char *ns, *name, *uid; /* borrowed from the document; ns "" where there is none */
    uint64_t rv;
} ObjRef;
/* Only who it is: for deletion events and live lists. */
int obj_parse_ref(const JsonValue *doc, ObjRef *ret, Error **error);
