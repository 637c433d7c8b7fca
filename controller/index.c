/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/index.h"

#include <stdint.h>

#define CAP_MIN 16

/* By content and not by address, so that iteration has the same order in every run. */
static size_t pair_hash(const char *a, const char *b)
{
    uint64_t h = intern_hash(a) * 0x9e3779b97f4a7c15ULL;

    h ^= intern_hash(b) * 0xc2b2ae3d27d4eb4fULL;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ULL;
    return (size_t)(h ^ (h >> 32));
}

/* The slot that holds the key, or the empty one where it belongs. */
static size_t obj_slot(const ObjTable *t, const char *ns, const char *name)
{
    size_t i = pair_hash(ns, name) & (t->cap - 1);

    while (t->slots[i] && (t->slots[i]->ns != ns || t->slots[i]->name != name))
        i = (i + 1) & (t->cap - 1);
    return i;
}

Obj *obj_table_get(const ObjTable *t, const char *ns, const char *name)
{
    if (t->len == 0 || !ns || !name)
        return NULL;
    return t->slots[obj_slot(t, ns, name)];
}

static void obj_table_resize(ObjTable *t, size_t cap)
{
    ObjTable bigger = {xcalloc(cap, sizeof(Obj *)), cap, t->len};

    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i])
            bigger.slots[obj_slot(&bigger, t->slots[i]->ns, t->slots[i]->name)] = t->slots[i];
    free(t->slots);
    *t = bigger;
}

void obj_table_put(ObjTable *t, Obj *o)
{
    size_t i;

    if ((t->len + 1) * 4 > t->cap * 3)
        obj_table_resize(t, t->cap ? t->cap * 2 : CAP_MIN);
    i = obj_slot(t, o->ns, o->name);
    if (!t->slots[i])
        t->len++;
    t->slots[i] = o;
}

void obj_table_remove(ObjTable *t, const Obj *o)
{
    size_t mask = t->cap - 1, i;

    if (t->len == 0)
        return;
    i = obj_slot(t, o->ns, o->name);
    if (t->slots[i] != o)
        return;
    for (size_t j = (i + 1) & mask; t->slots[j]; j = (j + 1) & mask) {
        size_t home = pair_hash(t->slots[j]->ns, t->slots[j]->name) & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            t->slots[i] = t->slots[j];
            i = j;
        }
    }
    t->slots[i] = NULL;
    t->len--;
    if (t->cap > CAP_MIN && t->len * 8 < t->cap)
        obj_table_resize(t, t->cap / 2);
}

void obj_table_done(ObjTable *t)
{
    free(t->slots);
    *t = (ObjTable){0};
}

static size_t bucket_slot(const Index *x, const char *a, const char *b)
{
    size_t i = pair_hash(a, b) & (x->cap - 1);

    while (x->slots[i] && (x->slots[i]->a != a || x->slots[i]->b != b))
        i = (i + 1) & (x->cap - 1);
    return i;
}

Bucket *index_get(const Index *x, const char *a, const char *b)
{
    if (x->len == 0 || !a)
        return NULL;
    return x->slots[bucket_slot(x, a, b)];
}

static void index_resize(Index *x, size_t cap)
{
    Index bigger = {xcalloc(cap, sizeof(Bucket *)), cap, x->len};

    for (size_t i = 0; i < x->cap; i++)
        if (x->slots[i])
            bigger.slots[bucket_slot(&bigger, x->slots[i]->a, x->slots[i]->b)] = x->slots[i];
    free(x->slots);
    *x = bigger;
}

static Bucket *bucket_new(const char *a, const char *b)
{
    Bucket *bucket = xnew(Bucket);

    bucket->a = a;
    bucket->b = b;
    list_init(&bucket->members);
    return bucket;
}

void index_add(Index *x, const char *a, const char *b, List *link)
{
    size_t i;

    if ((x->len + 1) * 4 > x->cap * 3)
        index_resize(x, x->cap ? x->cap * 2 : CAP_MIN);
    i = bucket_slot(x, a, b);
    if (!x->slots[i]) {
        x->slots[i] = bucket_new(a, b);
        x->len++;
    }
    list_push(&x->slots[i]->members, link);
    x->slots[i]->n++;
}

static void bucket_drop(Index *x, size_t i)
{
    size_t mask = x->cap - 1;

    free(x->slots[i]);
    for (size_t j = (i + 1) & mask; x->slots[j]; j = (j + 1) & mask) {
        size_t home = pair_hash(x->slots[j]->a, x->slots[j]->b) & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            x->slots[i] = x->slots[j];
            i = j;
        }
    }
    x->slots[i] = NULL;
    x->len--;
    if (x->cap > CAP_MIN && x->len * 8 < x->cap)
        index_resize(x, x->cap / 2);
}

void index_remove(Index *x, const char *a, const char *b, List *link)
{
    size_t i;

    if (!list_linked(link) || x->len == 0)
        return;
    i = bucket_slot(x, a, b);
    list_remove(link);
    if (x->slots[i] && --x->slots[i]->n == 0)
        bucket_drop(x, i);
}

void index_done(Index *x)
{
    for (size_t i = 0; i < x->cap; i++)
        free(x->slots[i]);
    free(x->slots);
    *x = (Index){0};
}
