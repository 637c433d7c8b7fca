/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON objects into structs by table: a row a field, with name, type, place, limits and help. The
 * same rows make input schemas, validation and docs. Strings are copied; json_dispatch_done() frees
 * them. Errors are ERROR_INVALID and name the field, what was given and what is allowed.
 */
#pragma once

#include "common/json/json.h"
#include "common/json/write.h"

#define JSON_FIELD_STRING_BYTES 4096
#define JSON_FIELD_MAP_ENTRIES 128
#define JSON_FIELD_MAP_KEY_BYTES 512

typedef enum JsonFieldType {
    JSON_FIELD_STRING,     /* char *, without NUL inside */
    JSON_FIELD_BOOL,       /* bool; lax: "true"/"false", 0/1 too */
    JSON_FIELD_INT,        /* int64_t in min..max (both 0: any); lax: "10" and 10.0 too */
    JSON_FIELD_STRING_MAP, /* JsonStringMap; lax: numbers and booleans become their JSON text */
    JSON_FIELD_ENUM,       /* char *, one of the words in `words` (space separated) */
    JSON_FIELD_BYTES,      /* JsonBytes: a string that may hold NUL; no limit of its own */
    JSON_FIELD_TYPE_MAX,
} JsonFieldType;

typedef enum JsonFieldFlags {
    JSON_FIELD_REQUIRED = 1 << 0,
    JSON_FIELD_NULLABLE = 1 << 1, /* an explicit null means "unset" (recorded in present=false) */
    JSON_FIELD_LAX = 1 << 2,
    JSON_FIELD_HIDDEN = 1 << 3, /* accepted, left out of schemas and docs */
    /* An explicit null is as good as leaving the field out; schemas do not speak of it, because
     * clients mishandle lists of types. */
    JSON_FIELD_NULL_IS_ABSENT = 1 << 4,
} JsonFieldFlags;

typedef struct JsonStringMap {
    char **keys;
    char **values;
    size_t len;
} JsonStringMap;

typedef struct JsonBytes {
    char *data; /* followed by a NUL that does not count; NULL: not given */
    size_t len;
} JsonBytes;

typedef struct JsonField {
    const char *name;
    JsonFieldType type;
    unsigned flags;
    size_t offset;         /* offsetof(target, field) */
    size_t present_offset; /* offsetof a bool that records "given and not null"; 0 = none */
    const char
        *def; /* default in JSON text for schema and docs, applied by dispatch; NULL = none */
    int64_t min, max;  /* JSON_FIELD_INT; byte limits of a string or of each value of a map (max 0
                        * = JSON_FIELD_STRING_BYTES) */
    const char *words; /* JSON_FIELD_ENUM */
    const char *help;  /* description in schema and docs */
} JsonField;

/* Unknown fields are errors. target is zeroed by the caller, defaults are filled in here. A NULL
 * object (null or absent) is an empty one. On failure nothing is left to free. */
int json_dispatch(const JsonValue *object, const JsonField *fields, size_t n_fields, void *target,
                  Error **error);
void json_dispatch_done(const JsonField *fields, size_t n_fields, void *target);
/* Writes {"type":"object","properties":…,"required":…,"additionalProperties":false} (JSON Schema
 * 2020-12 vocabulary). */
void json_dispatch_schema(JsonWriter *w, const JsonField *fields, size_t n_fields);
void json_string_map_done(JsonStringMap *m);
const char *json_string_map_get(const JsonStringMap *m, const char *key);
