/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming JSON writer straight into a Buf: no tree, no json-c. Commas and escaping are its job,
 * order is the caller's. Strings that are not UTF-8 are written with U+FFFD for each bad byte. The
 * buffer's ceiling applies; check once with buf_check(). Nesting above JSON_WRITE_DEPTH or an
 * unbalanced end violates a contract.
 */
#pragma once

#include "common/base/buf.h"
#include "common/json/json.h"

#define JSON_WRITE_DEPTH 64

typedef struct JsonWriter {
    Buf *out;
    int depth;
    bool need_comma[JSON_WRITE_DEPTH + 1];
    bool after_key;
} JsonWriter;

JsonWriter json_writer(Buf *out);
/* A quoted and escaped JSON string, outside of any writer. */
int json_write_string(Buf *out, const char *s, size_t len);
void jw_object(JsonWriter *w); /* { */
void jw_object_end(JsonWriter *w);
void jw_array(JsonWriter *w); /* [ */
void jw_array_end(JsonWriter *w);
void jw_key(JsonWriter *w, const char *key);
void jw_str(JsonWriter *w, const char *s); /* NULL writes null */
void jw_strn(JsonWriter *w, const char *s, size_t len);
void jw_int(JsonWriter *w, int64_t v);
void jw_bool(JsonWriter *w, bool v);
void jw_null(JsonWriter *w);
void jw_double(JsonWriter *w, double v); /* shortest text that reads back; non-finite writes null */
/* Text that is JSON already. */
void jw_raw(JsonWriter *w, const char *json, size_t len);
void jw_value(JsonWriter *w, const JsonValue *v);

/* key and value in one call; _opt variants write nothing for NULL. */
void jw_kv_str(JsonWriter *w, const char *key, const char *s);
void jw_kv_str_opt(JsonWriter *w, const char *key, const char *s);
void jw_kv_int(JsonWriter *w, const char *key, int64_t v);
void jw_kv_bool(JsonWriter *w, const char *key, bool v);
void jw_kv_raw(JsonWriter *w, const char *key, const char *json);
