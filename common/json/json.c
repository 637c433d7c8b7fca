/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json.h"
#include "common/base/contract.h"
#include "common/json/jsonc.h"
#include "common/json/scan.h"

#include <math.h>
#include <string.h>

#define PATH_KEY_MAX 256

static size_t count_members(const JsonValue *v)
{
    size_t n = json_object_len(v);
    JsonMember m = json_members(v);

    while (json_next(&m))
        n += count_members(m.value);
    for (size_t i = 0; i < json_array_len(v); i++)
        n += count_members(json_array_at(v, i));
    return n;
}

/* json-c's part; the text is known to be valid. */
static int build_tree(const char *text, size_t len, int max_depth, JsonValue **ret, Error **error)
{
    json_tokener *tok = json_tokener_new_ex(max_depth + 2); /* the scanner's limit comes first */
    enum json_tokener_error state;
    JsonValue *v;

    if (!tok)
        return error_set(error, ERROR_INTERNAL, "json-c has no memory for its parser");
    v = json_tokener_parse_ex(tok, text, (int)len);
    if (json_tokener_get_error(tok) == json_tokener_continue)
        v = json_tokener_parse_ex(tok, "", 1); /* the NUL ends a bare number */
    state = json_tokener_get_error(tok);
    json_tokener_free(tok);
    if (state != json_tokener_success) {
        (void)json_object_put(v);
        return error_set(error, ERROR_INVALID, "JSON was refused: %s",
                         json_tokener_error_desc(state));
    }
    *ret = v;
    return 0;
}

/* Gives every integer beyond int64_t an exponent of zero, which makes it a double for json-c. */
static int build_tree_wide(const char *text, size_t len, int max_depth, const JsonScan *scan,
                           JsonValue **ret, Error **error)
{
    _cleanup_buf_ Buf marked = BUF_INIT(JSON_TEXT_MAX);
    size_t done = 0;
    int r;

    for (size_t i = 0; i < scan->n_wide; i++) {
        (void)buf_append(&marked, text + done, scan->wide[i] - done);
        (void)buf_append_str(&marked, "e0");
        done = scan->wide[i];
    }
    (void)buf_append(&marked, text + done, len - done);
    r = buf_check(&marked, "the JSON text", error);
    if (r < 0)
        return r;
    return build_tree(marked.data, marked.len, max_depth, ret, error);
}

int json_parse(const char *text, size_t len, int max_depth, JsonParseFlags flags, JsonValue **ret,
               Error **error)
{
    _cleanup_(json_scan_done) JsonScan scan = {0};
    _cleanup_json_ JsonValue *v = NULL;
    int r;

    CONTRACT(max_depth > 0 && max_depth <= JSON_DEPTH_CRD);
    if (len > JSON_TEXT_MAX)
        return error_set(error, ERROR_TOO_LARGE, "JSON of %zu bytes is larger than %u bytes", len,
                         JSON_TEXT_MAX);
    r = json_scan(text, len, max_depth, &scan, error);
    if (r < 0)
        return r;
    if (scan.n_wide > 0)
        r = build_tree_wide(text, len, max_depth, &scan, &v, error);
    else
        r = build_tree(text, len, max_depth, &v, error);
    if (r < 0)
        return r;
    /* A later duplicate replaces the earlier one, so the tree has fewer members than the text. */
    if ((flags & JSON_PARSE_UNIQUE) && count_members(v) != scan.n_members)
        return error_set(error, ERROR_INVALID, "JSON has the same key twice in one object");
    *ret = TAKE_PTR(v);
    return 0;
}

JsonValue *json_free(JsonValue *v)
{
    (void)json_object_put(v);
    return NULL;
}

JsonType json_type(const JsonValue *v)
{
    static const JsonType types[] = {
        [json_type_null] = JSON_NULL,     [json_type_boolean] = JSON_BOOL,
        [json_type_double] = JSON_DOUBLE, [json_type_int] = JSON_INT,
        [json_type_object] = JSON_OBJECT, [json_type_array] = JSON_ARRAY,
        [json_type_string] = JSON_STRING,
    };

    return types[json_object_get_type(v)];
}

JsonValue *json_get(const JsonValue *v, const char *key)
{
    JsonValue *member = NULL;

    if (json_type(v) == JSON_OBJECT)
        (void)json_object_object_get_ex(v, key, &member);
    return member;
}

bool json_has(const JsonValue *v, const char *key)
{
    return json_type(v) == JSON_OBJECT && json_object_object_get_ex(v, key, NULL);
}

JsonValue *json_path(const JsonValue *v, const char *path)
{
    for (;;) {
        size_t len = strcspn(path, ".");
        char key[PATH_KEY_MAX];

        if (path[len] == '\0')
            return json_get(v, path);
        if (len >= sizeof(key))
            return NULL;
        memcpy(key, path, len);
        key[len] = '\0';
        v = json_get(v, key);
        if (!v)
            return NULL;
        path += len + 1;
    }
}

const char *json_value_str(const JsonValue *v)
{
    /* For a string json-c only reads, whatever its prototype says. */
    return json_type(v) == JSON_STRING ? json_object_get_string((JsonValue *)(uintptr_t)v) : NULL;
}

size_t json_str_len(const JsonValue *string_value)
{
    if (json_type(string_value) != JSON_STRING)
        return 0;
    return (size_t)json_object_get_string_len(string_value);
}

const char *json_str(const JsonValue *v, const char *path)
{
    return json_value_str(json_path(v, path));
}

int64_t json_value_int(const JsonValue *v, int64_t def)
{
    return json_type(v) == JSON_INT ? json_object_get_int64(v) : def;
}

int64_t json_int(const JsonValue *v, const char *path, int64_t def)
{
    return json_value_int(json_path(v, path), def);
}

double json_value_double(const JsonValue *v, double def)
{
    double d;

    if (json_type(v) != JSON_DOUBLE && json_type(v) != JSON_INT)
        return def;
    d = json_object_get_double(v);
    return isfinite(d) ? d : def; /* 1e999 is valid JSON */
}

bool json_value_bool(const JsonValue *v, bool def)
{
    return json_type(v) == JSON_BOOL ? json_object_get_boolean(v) != 0 : def;
}

bool json_bool(const JsonValue *v, const char *path, bool def)
{
    return json_value_bool(json_path(v, path), def);
}

size_t json_array_len(const JsonValue *v)
{
    return json_type(v) == JSON_ARRAY ? json_object_array_length(v) : 0;
}

JsonValue *json_array_at(const JsonValue *v, size_t i)
{
    return i < json_array_len(v) ? json_object_array_get_idx(v, i) : NULL;
}

size_t json_object_len(const JsonValue *v)
{
    return json_type(v) == JSON_OBJECT ? (size_t)json_object_object_length(v) : 0;
}

JsonMember json_members(const JsonValue *object)
{
    JsonMember m = {.object = object};

    if (json_type(object) == JSON_OBJECT)
        m.entry = json_object_get_object(object)->head;
    return m;
}

bool json_next(JsonMember *m)
{
    struct lh_entry *entry = m->entry;

    if (!entry)
        return false;
    m->key = entry->k;
    m->value = (JsonValue *)(uintptr_t)entry->v;
    m->entry = entry->next;
    return true;
}
