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

/* Takes key and value over. */
static void doc_put(Doc *d, char *key, Doc *value)
{
    if ((d->len & (d->len - 1)) == 0) {
        size_t cap = d->len ? d->len * 2 : 1;
        d->items = xreallocarray(d->items, cap, sizeof(Doc *));
        if (d->type == DOC_OBJECT)
            d->keys = xreallocarray(d->keys, cap, sizeof(char *));
    }
    if (d->type == DOC_OBJECT)
        d->keys[d->len] = key;
    d->items[d->len++] = value;
}

/* A reader of its own for JSON that this program wrote itself: json-c's tree would only be copied
 * over, and that takes most of the simulation's time. */
typedef struct Reader {
    const char *p, *end;
} Reader;

static _noreturn_ void refuse(const Reader *r)
{
    (void)fprintf(stderr, "not JSON: %.*s\n", (int)(r->end - r->p), r->p);
    abort();
}

static void skip_space(Reader *r)
{
    while (r->p < r->end && strchr(" \t\r\n", *r->p))
        r->p++;
}

static char peek(Reader *r)
{
    skip_space(r);
    if (r->p == r->end)
        refuse(r);
    return *r->p;
}

static bool take(Reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->p++;
    return true;
}

static char *read_string(Reader *r)
{
    size_t n = 1, len = 0;
    char *out;

    if (peek(r) != '"')
        refuse(r);
    while (r->p + n < r->end && r->p[n] != '"')
        n += r->p[n] == '\\' ? 2 : 1;
    if (r->p + n >= r->end)
        refuse(r);
    out = xmalloc(n);
    for (size_t i = 1; i < n; i++) {
        if (r->p[i] == '\\' && !strchr("\"\\/", r->p[++i]))
            refuse(r); /* nothing here needs more */
        out[len++] = r->p[i];
    }
    out[len] = '\0';
    r->p += n + 1;
    return out;
}

static Doc *read_value(Reader *r);

static Doc *read_object(Reader *r)
{
    Doc *d = doc_new(DOC_OBJECT);

    for (r->p++; !take(r, '}'); (void)take(r, ',')) {
        char *key = read_string(r);
        if (!take(r, ':'))
            refuse(r);
        doc_put(d, key, read_value(r));
    }
    return d;
}

static Doc *read_array(Reader *r)
{
    Doc *d = doc_new(DOC_ARRAY);

    for (r->p++; !take(r, ']'); (void)take(r, ','))
        doc_put(d, NULL, read_value(r));
    return d;
}

static Doc *read_scalar(Reader *r)
{
    size_t n = strspn(r->p, "-+.0123456789aeflnrstuE");
    DocType type = *r->p == 'n' ? DOC_NULL : *r->p == 't' || *r->p == 'f' ? DOC_BOOL : DOC_NUMBER;
    Doc *d = doc_new(type);

    if (n == 0)
        refuse(r);
    if (type != DOC_NULL)
        d->text = xstrndup(r->p, n);
    r->p += n;
    return d;
}

static Doc *read_value(Reader *r)
{
    Doc *d;

    switch (peek(r)) {
    case '{':
        return read_object(r);
    case '[':
        return read_array(r);
    case '"':
        d = doc_new(DOC_STRING);
        d->text = read_string(r);
        return d;
    default:
        return read_scalar(r);
    }
}

Doc *doc_parse(const char *text, size_t len)
{
    Reader r = {text, text + len};
    Doc *d = read_value(&r);

    skip_space(&r);
    if (r.p != r.end)
        refuse(&r);
    return d;
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
        doc_put(copy, d->keys ? xstrdup(d->keys[i]) : NULL, doc_copy(d->items[i]));
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
        doc_put(d, xstrdup(key), value);
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

static bool merge_member(Doc *target, const char *key, const Doc *value)
{
    Doc *old = doc_get(target, key);

    if (value->type == DOC_NULL) {
        doc_remove(target, key);
        return old != NULL;
    }
    if (value->type != DOC_OBJECT) {
        if (doc_eq(old, value))
            return false;
        doc_set(target, key, doc_copy(value));
        return true;
    }
    if (old && old->type == DOC_OBJECT)
        return doc_merge(old, value);
    old = doc_object();
    (void)doc_merge(old, value);
    doc_set(target, key, old);
    return true;
}

bool doc_merge(Doc *target, const Doc *patch)
{
    bool changed = false;

    for (size_t i = 0; i < patch->len; i++)
        changed = merge_member(target, patch->keys[i], patch->items[i]) || changed;
    return changed;
}
