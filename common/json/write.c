/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/write.h"
#include "common/base/contract.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

JsonWriter json_writer(Buf *out)
{
    return (JsonWriter){.out = out};
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x7F && c != '"' && c != '\\';
}

/* Appends what stands for the first character of s, returns how many bytes that was. */
static size_t put_special(Buf *out, const char *s, size_t len)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: byte, letter */
    size_t n = str_utf8_len(s, len);

    if (n == 0) {
        (void)buf_append_str(out, "\xEF\xBF\xBD");
        return 1;
    }
    for (size_t i = 0; i + 1 < sizeof(named); i += 2)
        if (*s == named[i]) {
            const char pair[] = {'\\', named[i + 1]};

            (void)buf_append(out, pair, sizeof(pair));
            return 1;
        }
    if ((unsigned char)*s < 0x20 || *s == 0x7F)
        (void)buf_printf(out, "\\u%04x", (unsigned char)*s);
    else
        (void)buf_append(out, s, n);
    return n;
}

int json_write_string(Buf *out, const char *s, size_t len)
{
    const char *end = s + len;

    (void)buf_append_char(out, '"');
    while (s < end && !out->failed) {
        const char *start = s;

        while (s < end && is_plain(*s))
            s++;
        if (s > start)
            (void)buf_append(out, start, (size_t)(s - start));
        if (s < end)
            s += put_special(out, s, (size_t)(end - s));
    }
    return buf_append_char(out, '"');
}

/* Before each value and key: the comma that is due. */
static void begin_value(JsonWriter *w)
{
    if (w->need_comma[w->depth] && !w->after_key)
        (void)buf_append_char(w->out, ',');
    w->need_comma[w->depth] = true;
    w->after_key = false;
}

static void begin_nested(JsonWriter *w, char open)
{
    begin_value(w);
    CONTRACT(w->depth < JSON_WRITE_DEPTH);
    (void)buf_append_char(w->out, open);
    w->need_comma[++w->depth] = false;
}

static void end_nested(JsonWriter *w, char close)
{
    CONTRACT(w->depth > 0 && !w->after_key);
    w->depth--;
    (void)buf_append_char(w->out, close);
}

void jw_object(JsonWriter *w)
{
    begin_nested(w, '{');
}

void jw_object_end(JsonWriter *w)
{
    end_nested(w, '}');
}

void jw_array(JsonWriter *w)
{
    begin_nested(w, '[');
}

void jw_array_end(JsonWriter *w)
{
    end_nested(w, ']');
}

void jw_key(JsonWriter *w, const char *key)
{
    CONTRACT(w->depth > 0 && !w->after_key);
    begin_value(w);
    (void)json_write_string(w->out, key, strlen(key));
    (void)buf_append_char(w->out, ':');
    w->after_key = true;
}

void jw_str(JsonWriter *w, const char *s)
{
    if (s)
        jw_strn(w, s, strlen(s));
    else
        jw_null(w);
}

void jw_strn(JsonWriter *w, const char *s, size_t len)
{
    begin_value(w);
    (void)json_write_string(w->out, s, len);
}

void jw_int(JsonWriter *w, int64_t v)
{
    begin_value(w);
    (void)buf_printf(w->out, "%" PRId64, v);
}

void jw_bool(JsonWriter *w, bool v)
{
    begin_value(w);
    (void)buf_append_str(w->out, v ? "true" : "false");
}

void jw_null(JsonWriter *w)
{
    begin_value(w);
    (void)buf_append_str(w->out, "null");
}

void jw_double(JsonWriter *w, double v)
{
    char text[40];
    int digits = 15;

    if (!isfinite(v)) {
        jw_null(w);
        return;
    }
    begin_value(w);
    do
        (void)snprintf(text, sizeof(text), "%.*g", digits, v);
    while (strtod(text, NULL) != v && ++digits <= 17);
    (void)buf_append_str(w->out, text);
}

void jw_raw(JsonWriter *w, const char *json, size_t len)
{
    begin_value(w);
    (void)buf_append(w->out, json, len);
}

void jw_value(JsonWriter *w, const JsonValue *v)
{
    begin_value(w);
    (void)json_print(v, w->out);
}

void jw_kv_str(JsonWriter *w, const char *key, const char *s)
{
    jw_key(w, key);
    jw_str(w, s);
}

void jw_kv_str_opt(JsonWriter *w, const char *key, const char *s)
{
    if (s)
        jw_kv_str(w, key, s);
}

void jw_kv_int(JsonWriter *w, const char *key, int64_t v)
{
    jw_key(w, key);
    jw_int(w, v);
}

void jw_kv_bool(JsonWriter *w, const char *key, bool v)
{
    jw_key(w, key);
    jw_bool(w, v);
}

void jw_kv_raw(JsonWriter *w, const char *key, const char *json)
{
    jw_key(w, key);
    jw_raw(w, json, strlen(json));
}
