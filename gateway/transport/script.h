/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is sent into a sandbox: the argument of `sh -c`, and on stdin the job's script followed by
 * its parameters, a line each. The scripts are the files in scripts/, less comments and
 * indentation.
 */
#pragma once

#include "common/base/buf.h"

#include <stdint.h>

#define SCRIPT_HELLO "sandbox-exec 1\n" /* the first bytes of stdout */
#define SCRIPT_NONCE_LEN 32             /* hex digits; marks the end of both streams */
#define SCRIPT_ID_LEN 16                /* hex digits; names what a job makes */

typedef enum ScriptName {
    SCRIPT_COMMAND,
    SCRIPT_UPLOAD,
    SCRIPT_DOWNLOAD,
    SCRIPT_LIST,
    SCRIPT_EXISTS,
    SCRIPT_MAX,
} ScriptName;

extern const char script_text_bootstrap[], script_text_common[], script_text_command[],
    script_text_upload[], script_text_download[], script_text_list[], script_text_exists[];

/* Appends the argument of `sh -c`. */
void script_bootstrap(Buf *out);
/* Appends the script and the line that ends it. */
void script_append(Buf *out, ScriptName name);
/* Appends a parameter line; any bytes but NUL. */
void script_param(Buf *out, const char *value);
void script_param_u64(Buf *out, uint64_t value);
