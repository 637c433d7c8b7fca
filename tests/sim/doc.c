/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/doc.h"

#include "common/base/contract.h"
#include "common/base/str.h"
#include "common/json/write.h"

#include <stdio.h>
#include <string.h>

static Doc *doc_new(DocType type)
{
    Doc *d = xnew(Doc);

    d->type = type;
    return d;
}

static void doc_put(Doc *d, const char *key, Doc *value)
{
    if ((d->len & (d->len - 1)) == 0) {
        size_t cap = d->len ? d->len * 2 : 1;
        d->items = xreallocarray(d->items, cap, sizeof(Doc *));
        if (d->type == DOC_OBJECT)
            d->keys = xreallocarray(d->keys, cap, sizeof(char *));
    }
    if (d->type == DOC_OBJECT)
        d->keys[d->len] = xstrdup(key);
    d->items[d->len++] = value;
}

static Doc *from_json(const JsonValue *v)
{
    static const DocType types[JSON_TYPE_MAX] = {
        [JSON_NULL] = DOC_NULL,     [JSON_BOOL] = DOC_BOOL,     [JSON_INT] = DOC_NUMBER,
        [JSON_DOUBLE] = DOC_NUMBER, [JSON_STRING] = DOC_STRING, [JSON_ARRAY] = DOC_ARRAY,
        [JSON_OBJECT] = DOC_OBJECT,
    };
    Doc *d = doc_new(types[json_type(v)]);
    JsonMember m;

    if (d->type == DOC_STRING)
        d->text = xstrdup(json_value_str(v));
    if (d->type == DOC_BOOL)
        d->text = xstrdup(json_value_bool(v, false) ? "true" : "false");
    if (d->type == DOC_NUMBER)
        d->text = xasprintf("%lld", (long long)json_value_int(v, 0));
    for (size_t i = 0; d->type == DOC_ARRAY && i < json_array_len(v); i++)
        doc_put(d, NULL, from_json(json_array_at(v, i)));
    for (m = json_members(v); d->type == DOC_OBJECT && json_next(&m);)
        doc_put(d, m.key, from_json(m.value));
    return d;
}

Doc *doc_parse(const char *text, size_t len)
{
    _cleanup_json_ JsonValue *v = NULL;
    _cleanup_error_ Error *error = NULL;

    if (json_parse(text, len, JSON_DEPTH_CRD, JSON_PARSE_UNIQUE, &v, &error) < 0) {
        (void)fprintf(stderr, "not JSON: %s\n%.*s\n", error_message(error), (int)len, text);
        abort();
    }
    return from_json(v);
}

Doc *doc_free(Doc *d)
{
    if (!d)
        return NULL;
    for (size_t i = 0; i < d->len; i++) {
        if (d->keys)
            free(d->keys[i]);
        doc_free(d->items[i]);
    }
    free(d->keys);
    free(d->items);
    free(d->text);
    free(d);
    return NULL;
}

Doc *doc_copy(const Doc *d)
{
    Doc *copy = doc_new(d->type);

    copy->text = xstrdup_null(d->text);
    for (size_t i = 0; i < d->len; i++)
        doc_put(copy, d->keys ? d->keys[i] : NULL, doc_copy(d->items[i]));
    return copy;
}

bool doc_eq(const Doc *a, const Doc *b)
{
    if (!a || !b)
        return a == b;
    if (a->type != b->type || a->len != b->len || !str_eq(a->text, b->text))
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (!doc_eq(a->items[i], a->keys ? doc_get(b, a->keys[i]) : b->items[i]))
            return false;
    return true;
}

static void print(const Doc *d, JsonWriter *w)
{
    switch (d->type) {
    case DOC_NULL:
        jw_null(w);
        return;
    case DOC_STRING:
        jw_str(w, d->text);
        return;
    case DOC_BOOL:
    case DOC_NUMBER:
        jw_raw(w, d->text, strlen(d->text));
        return;
    default:
        break;
    }
    if (d->type == DOC_ARRAY)
        jw_array(w);
    else
        jw_object(w);
    for (size_t i = 0; i < d->len; i++) {
        if (d->keys)
            jw_key(w, d->keys[i]);
        print(d->items[i], w);
    }
    if (d->type == DOC_ARRAY)
        jw_array_end(w);
    else
        jw_object_end(w);
}

void doc_print(const Doc *d, Buf *out)
{
    JsonWriter w = json_writer(out);

    print(d, &w);
    CONTRACT(!out->failed);
}

Doc *doc_object(void)
{
    return doc_new(DOC_OBJECT);
}

Doc *doc_string(const char *s)
{
    Doc *d = doc_new(DOC_STRING);

    d->text = xstrdup(s);
    return d;
}

Doc *doc_number(long long v)
{
    Doc *d = doc_new(DOC_NUMBER);

    d->text = xasprintf("%lld", v);
    return d;
}

Doc *doc_bool(bool v)
{
    Doc *d = doc_new(DOC_BOOL);

    d->text = xstrdup(v ? "true" : "false");
    return d;
}

static size_t find(const Doc *d, const char *key)
{
    size_t i = 0;

    while (i < d->len && !str_eq(d->keys[i], key))
        i++;
    return i;
}

Doc *doc_get(const Doc *d, const char *key)
{
    size_t i;

    if (!d || d->type != DOC_OBJECT)
        return NULL;
    i = find(d, key);
    return i < d->len && d->items[i]->type != DOC_NULL ? d->items[i] : NULL;
}

Doc *doc_path(const Doc *d, const char *dotted)
{
    char key[128];
    size_t len;
    Doc *next = NULL;

    for (;; dotted += len + 1, d = next) {
        len = strcspn(dotted, ".");
        CONTRACT(len < sizeof(key));
        memcpy(key, dotted, len);
        key[len] = '\0';
        next = doc_get(d, key);
        if (!next || dotted[len] == '\0')
            return next;
    }
}

const char *doc_str(const Doc *d, const char *dotted)
{
    const Doc *v = doc_path(d, dotted);

    return v && v->type == DOC_STRING ? v->text : NULL;
}

long long doc_int(const Doc *d, const char *dotted, long long def)
{
    const Doc *v = doc_path(d, dotted);

    return v && v->type == DOC_NUMBER ? strtoll(v->text, NULL, 10) : def;
}

void doc_remove(Doc *d, const char *key)
{
    size_t i = find(d, key);

    if (i == d->len)
        return;
    free(d->keys[i]);
    doc_free(d->items[i]);
    d->len--;
    memmove(&d->keys[i], &d->keys[i + 1], (d->len - i) * sizeof(char *));
    memmove(&d->items[i], &d->items[i + 1], (d->len - i) * sizeof(Doc *));
}

void doc_set(Doc *d, const char *key, Doc *value)
{
    size_t i = find(d, key);

    if (i == d->len) {
        doc_put(d, key, value);
        return;
    }
    doc_free(d->items[i]);
    d->items[i] = value;
}

void doc_append(Doc *array, Doc *value)
{
    CONTRACT(array->type == DOC_ARRAY);
    doc_put(array, NULL, value);
}

Doc *doc_make(Doc *d, const char *key)
{
    Doc *v = doc_get(d, key);

    if (v)
        return v;
    v = doc_object();
    doc_set(d, key, v);
    return v;
}

void doc_merge(Doc *target, const Doc *patch)
{
    for (size_t i = 0; i < patch->len; i++) {
        const char *key = patch->keys[i];
        const Doc *value = patch->items[i];
        Doc *old = doc_get(target, key);
        if (value->type == DOC_NULL)
            doc_remove(target, key);
        else if (value->type != DOC_OBJECT)
            doc_set(target, key, doc_copy(value));
        else {
            if (!old || old->type != DOC_OBJECT) {
                old = doc_object();
                doc_set(target, key, old);
            }
            doc_merge(old, value);
        }
    }
}
