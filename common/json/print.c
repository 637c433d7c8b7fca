/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printing walks the tree itself instead of asking json-c, which would keep a copy of the text
 * inside the tree. Trees come from json_parse, so recursion ends at JSON_DEPTH_CRD.
 */
#include "common/base/str.h"
#include "common/json/jsonc.h"
#include "common/json/scan.h"
#include "common/json/write.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int print_value(const JsonValue *v, bool sorted, Buf *out);

static int compare_keys(const void *a, const void *b)
{
    const JsonMember *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static JsonMember *list_members(const JsonValue *v, bool sorted)
{
    size_t n = json_object_len(v);
    JsonMember *list = xcalloc(n, sizeof(JsonMember));
    JsonMember m = json_members(v);

    for (size_t i = 0; i < n && json_next(&m); i++)
        list[i] = m;
    if (sorted)
        qsort(list, n, sizeof(JsonMember), compare_keys);
    return list;
}

static void print_object(const JsonValue *v, bool sorted, Buf *out)
{
    _cleanup_free_ JsonMember *list = list_members(v, sorted);

    (void)buf_append_char(out, '{');
    for (size_t i = 0; i < json_object_len(v) && !out->failed; i++) {
        if (i > 0)
            (void)buf_append_char(out, ',');
        (void)json_write_string(out, list[i].key, strlen(list[i].key));
        (void)buf_append_char(out, ':');
        (void)print_value(list[i].value, sorted, out);
    }
    (void)buf_append_char(out, '}');
}

static void print_array(const JsonValue *v, bool sorted, Buf *out)
{
    (void)buf_append_char(out, '[');
    for (size_t i = 0; i < json_array_len(v) && !out->failed; i++) {
        if (i > 0)
            (void)buf_append_char(out, ',');
        (void)print_value(json_array_at(v, i), sorted, out);
    }
    (void)buf_append_char(out, ']');
}

/* json-c keeps the source text of a double that it parsed, and gives it back here. The exponent
 * that json_parse gave to an integer beyond int64_t is taken off again. */
static void print_double(const JsonValue *v, Buf *out)
{
    const char *text = json_object_to_json_string((JsonValue *)(uintptr_t)v);
    size_t len = strlen(text);

    if (str_ends_with(text, "e0") && json_is_wide_integer(text, len - 2))
        len -= 2;
    (void)buf_append(out, text, len);
}

static int print_value(const JsonValue *v, bool sorted, Buf *out)
{
    switch (json_type(v)) {
    case JSON_BOOL:
        (void)buf_append_str(out, json_value_bool(v, false) ? "true" : "false");
        break;
    case JSON_INT:
        (void)buf_printf(out, "%" PRId64, json_value_int(v, 0));
        break;
    case JSON_DOUBLE:
        print_double(v, out);
        break;
    case JSON_STRING:
        (void)json_write_string(out, json_value_str(v), json_str_len(v));
        break;
    case JSON_ARRAY:
        print_array(v, sorted, out);
        break;
    case JSON_OBJECT:
        print_object(v, sorted, out);
        break;
    case JSON_NULL:
    case JSON_TYPE_MAX:
        (void)buf_append_str(out, "null");
    }
    return out->failed ? -E2BIG : 0;
}

int json_print(const JsonValue *v, Buf *out)
{
    return print_value(v, false, out);
}

int json_print_canonical(const JsonValue *v, Buf *out)
{
    return print_value(v, true, out);
}
