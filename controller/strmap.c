/* SPDX-License-Identifier: Apache-2.0 */
/* The map and list of interned strings (intern.h). */
#include "common/base/str.h"
#include "controller/intern.h"

#include <stdint.h>
#include <string.h>

static int pair_compare(const void *a, const void *b)
{
    const StrPair *pa = a, *pb = b;

    return strcmp(pa->key, pb->key);
}

/* Stable insertion keeps "the last wins" simple; maps are small. */
static size_t pairs_insert(StrPair *to, size_t n, const StrPair *p)
{
    size_t i = n;

    while (i > 0 && strcmp(to[i - 1].key, p->key) > 0)
        i--;
    if (i > 0 && strcmp(to[i - 1].key, p->key) == 0) {
        to[i - 1].value = p->value;
        return n;
    }
    memmove(&to[i + 1], &to[i], (n - i) * sizeof(*to));
    to[i] = *p;
    return n + 1;
}

StrMap *strmap_new(Interner *in, const StrPair *pairs, size_t n)
{
    StrMap *m;
    size_t len = 0;

    if (n == 0)
        return NULL;
    m = xmalloc(sizeof(StrMap) + n * sizeof(StrPair));
    for (size_t i = 0; i < n; i++)
        len = pairs_insert(m->items, len, &pairs[i]);
    m->len = len;
    for (size_t i = 0; i < len; i++) {
        m->items[i].key = intern(in, m->items[i].key);
        m->items[i].value = intern(in, m->items[i].value ? m->items[i].value : "");
    }
    return m;
}

StrMap *strmap_free(Interner *in, const StrMap *m)
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < m->len; i++) {
        intern_unref(in, m->items[i].key);
        intern_unref(in, m->items[i].value);
    }
    free((void *)(uintptr_t)m);
    return NULL;
}

const char *strmap_get(const StrMap *m, const char *key)
{
    const StrPair wanted = {.key = key};
    const StrPair *p;

    if (!m)
        return NULL;
    p = bsearch(&wanted, m->items, m->len, sizeof(StrPair), pair_compare);
    return p ? p->value : NULL;
}

bool strmap_eq(const StrMap *a, const StrMap *b)
{
    size_t len = a ? a->len : 0;

    if (len != (b ? b->len : 0))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!str_eq(a->items[i].key, b->items[i].key) ||
            !str_eq(a->items[i].value, b->items[i].value))
            return false;
    return true;
}

StrList *strlist_new(Interner *in, const char *const *items, size_t n)
{
    StrList *l;

    if (n == 0)
        return NULL;
    l = xmalloc(sizeof(StrList) + n * sizeof(char *));
    l->len = n;
    for (size_t i = 0; i < n; i++)
        l->items[i] = intern(in, items[i]);
    return l;
}

StrList *strlist_free(Interner *in, const StrList *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->len; i++)
        intern_unref(in, l->items[i]);
    free((void *)(uintptr_t)l);
    return NULL;
}

bool strlist_eq(const StrList *a, const StrList *b)
{
    size_t len = a ? a->len : 0;

    if (len != (b ? b->len : 0))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!str_eq(a->items[i], b->items[i]))
            return false;
    return true;
}
