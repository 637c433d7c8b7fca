/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only door to json-c. Documents are trees of JsonValue; a tree belongs to exactly one thread,
 * reading included (json-c writes into objects while it prints them), so nothing that is handed to
 * another thread holds a JsonValue: hand over text or copied fields.
 *
 * Parsing is RFC 8259: a scanner of our own checks the grammar, UTF-8, depth and size before json-c
 * sees the text, because json-c is lenient and each of its releases in another way
 * (JSON_TOKENER_STRICT of 0.18 even rejects valid non-ASCII text). Integers that do not fit int64_t
 * are doubles here, where json-c would cut them to the nearest limit without a word.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json_object JsonValue; /* opaque; owned root or borrowed inner value */

typedef enum JsonType {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,
    JSON_DOUBLE,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
    JSON_TYPE_MAX,
} JsonType;

#define JSON_DEPTH_DEFAULT 64
#define JSON_DEPTH_CRD 128 /* the most that json_parse accepts */
#define JSON_TEXT_MAX (512U << 20)

typedef enum JsonParseFlags {
    JSON_PARSE_DEFAULT = 0,
    JSON_PARSE_UNIQUE = 1 << 0, /* a duplicate key anywhere is ERROR_INVALID (for client input) */
} JsonParseFlags;

/* Parses the whole text, which needs no NUL. *ret is owned by the caller (json_free); it is NULL
 * for the document `null`. ERROR_INVALID names the offset; ERROR_TOO_LARGE above JSON_TEXT_MAX
 * bytes. Keys with an escaped NUL are refused, strings may hold it. */
int json_parse(const char *text, size_t len, int max_depth, JsonParseFlags flags, JsonValue **ret,
               Error **error);
JsonValue *json_free(JsonValue *v); /* returns NULL */
static inline void json_freep(JsonValue **v)
{
    *v = json_free(*v);
}
#define _cleanup_json_ _cleanup_(json_freep)

JsonType json_type(const JsonValue *v); /* NULL pointer and JSON null are both JSON_NULL */

/* Member of an object; NULL where v is no object, the key is missing, or the value is null. */
JsonValue *json_get(const JsonValue *v, const char *key);
bool json_has(const JsonValue *v, const char *key); /* true for an explicit null as well */
/* Follows keys separated by '.', for example "status.conditions" (no escapes: for keys with dots
 * use json_get). */
JsonValue *json_path(const JsonValue *v, const char *path);

/* Typed reads through a dotted path. A missing or wrongly typed value gives the default (a double
 * is no integer, an integer is a double as well). Strings are borrowed from the tree. */
const char *json_str(const JsonValue *v, const char *path); /* or NULL */
size_t json_str_len(const JsonValue *string_value);
const char *json_value_str(const JsonValue *v); /* the string itself, or NULL */
int64_t json_int(const JsonValue *v, const char *path, int64_t def);
int64_t json_value_int(const JsonValue *v, int64_t def);
double json_value_double(const JsonValue *v, double def);
bool json_bool(const JsonValue *v, const char *path, bool def);
bool json_value_bool(const JsonValue *v, bool def);

size_t json_array_len(const JsonValue *v); /* 0 for anything else */
JsonValue *json_array_at(const JsonValue *v, size_t i);
size_t json_object_len(const JsonValue *v);

typedef struct JsonMember {
    const JsonValue *object; /* private */
    void *entry;             /* private */
    const char *key;
    JsonValue *value;
} JsonMember;
JsonMember json_members(const JsonValue *object);
bool json_next(JsonMember *m); /* insertion order; false at the end */

/* Compact text (no spaces, '/' not escaped), appended to out. Where the ceiling of out is reached:
 * a negative errno, out is marked failed. Numbers keep the text they were parsed from. */
int json_print(const JsonValue *v, Buf *out);
/* Canonical text: object keys sorted bytewise at every level, so equal values give equal bytes
 * (hashes, comparisons). */
int json_print_canonical(const JsonValue *v, Buf *out);
