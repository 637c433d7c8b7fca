/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool is a row: its name and words, its arguments and result fields, the right it needs, and the
 * function that carries it out. `tools/list`, the check of arguments and docs/tools.md all come
 * from the row. Rows are constant; parsed arguments (ToolArgs) belong to one call.
 */
#pragma once

#include "common/json/dispatch.h"
#include "gateway/mcp/protocol.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Call Call;

/* The first member of every tool's argument struct. */
typedef struct ToolArgs {
    char *ns;
    char *claim; /* NULL for create_sandbox */
    int64_t timeout_s;
} ToolArgs;

typedef enum ToolHints {
    TOOL_READ_ONLY = 1 << 0,
    TOOL_DESTRUCTIVE = 1 << 1,
    TOOL_IDEMPOTENT = 1 << 2,
    TOOL_OPEN_WORLD = 1 << 3,
} ToolHints;

/* A field of the result. */
typedef struct ToolOutput {
    const char *name;
    const char *type;  /* JSON Schema type */
    const char *extra; /* further members of its schema as JSON text without braces, or NULL */
    bool optional;
    const char *help; /* NULL: in the docs only, see doc */
    const char *doc;  /* for docs/tools.md where help is NULL */
} ToolOutput;

/* Limits that come from flags. */
typedef struct ToolLimits {
    size_t max_file_bytes;
} ToolLimits;

typedef struct Tool {
    const char *name;
    const char *title;
    const char *description;
    unsigned hints;
    const JsonField *fields;
    size_t n_fields;
    size_t args_size;
    const ToolOutput *outputs; /* n_outputs 0: no structured result */
    size_t n_outputs;
    const char *verb;        /* the right asked for, on sandboxclaims */
    const char *subresource; /* or NULL */
    const char *prose;       /* for docs/tools.md alone, behind the tables: lines. May be NULL */
    const char *too_large;   /* what to do next where something is; NULL: ask for less at a time */
    size_t digest_offset;    /* of a char * in the arguments that the audit line digests; 0: none */
    /* What a table of fields cannot say. Sees the arguments as given and as parsed. May be NULL. */
    int (*check)(const JsonValue *given, ToolArgs *args, const ToolLimits *limits, Error **error);
    /* Loop thread, the caller is authorised: answers sooner or later. */
    void (*run)(Call *call);
    /* Frees what run left in call's state. May be NULL. */
    void (*state_free)(void *state);
} Tool;

/* The tools in the order of tools/list. */
extern const Tool *const tools[];
extern const size_t n_tools;
const Tool *tool_find(const char *name);

/* Arguments of a call. A wrong argument is an ERROR_INVALID that names it. */
int tool_parse_args(const Tool *tool, const JsonValue *given, const ToolLimits *limits,
                    ToolArgs **ret, Error **error);
void tool_args_free(const Tool *tool, ToolArgs *args);

/* JSON text of the array of tools/list. */
void tools_write_list(Buf *out);
/* docs/tools.md. */
void tools_write_markdown(Buf *out);

/* Rows that tools share. */
#define TOOL_OPTIONAL (JSON_FIELD_LAX | JSON_FIELD_NULL_IS_ABSENT)
#define TOOL_FIELD_CLAIM(args)                                                                     \
    {                                                                                              \
        .name = "sandbox_claim_name", .type = JSON_FIELD_STRING, .flags = JSON_FIELD_REQUIRED,     \
        .offset = offsetof(args, base.claim), .help = "As returned by create_sandbox"              \
    }
#define TOOL_FIELD_NAMESPACE(args, text)                                                           \
    {                                                                                              \
        .name = "namespace", .type = JSON_FIELD_STRING, .flags = JSON_FIELD_REQUIRED,              \
        .offset = offsetof(args, base.ns), .help = (text)                                          \
    }
#define TOOL_FIELD_TIMEOUT(args)                                                                   \
    {                                                                                              \
        .name = "timeout", .type = JSON_FIELD_INT, .flags = TOOL_OPTIONAL,                         \
        .offset = offsetof(args, base.timeout_s), .def = "60", .min = 1, .max = 600,               \
        .help = "Seconds"                                                                          \
    }
#define TOOL_FIELD_PATH(args, text)                                                                \
    {                                                                                              \
        .name = "path", .type = JSON_FIELD_STRING, .flags = JSON_FIELD_REQUIRED,                   \
        .offset = offsetof(args, path), .help = (text)                                             \
    }
#define TOOL_PATH_HELP "Absolute, or relative to the working directory"
#define TOOL_NAMESPACE_HELP "Namespace of the sandbox"

#define TOOL_FIELDS(table) .fields = (table), .n_fields = ARRAY_SIZE(table)
#define TOOL_OUTPUTS(table) .outputs = (table), .n_outputs = ARRAY_SIZE(table)

/* Checks that tools share: a path has no NUL and is not empty. */
int tool_check_path(const char *path, Error **error);
