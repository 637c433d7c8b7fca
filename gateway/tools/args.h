/* SPDX-License-Identifier: Apache-2.0 */
/* What each tool is called with; the tables in the tools' files fill these. */
#pragma once

#include "gateway/tools/tool.h"

typedef struct CreateArgs {
    ToolArgs base;
    char *warmpool;
    int64_t ready_timeout_s;
    JsonStringMap labels;
    int64_t shutdown_after_s;
    bool shutdown_never;
    JsonStringMap pod_labels;
    JsonStringMap pod_annotations;
} CreateArgs;

/* delete_sandbox, get_sandbox_status */
typedef struct SandboxArgs {
    ToolArgs base;
} SandboxArgs;

typedef struct CommandArgs {
    ToolArgs base;
    char *command;
} CommandArgs;

/* list_files, file_exists */
typedef struct PathArgs {
    ToolArgs base;
    char *path;
    int64_t max_entries;
} PathArgs;

typedef struct FileArgs {
    ToolArgs base;
    char *path;
    JsonBytes content; /* as given; upload: decoded by the check */
    bool binary;
} FileArgs;
