/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/auth/ttl_map.h"

#include "common/base/hashmap.h"
#include "common/base/list.h"

typedef struct Entry {
    List node; /* in order of insertion */
    char *key;
    void *value;
    int64_t dies_ms;
} Entry;

struct TtlMap {
    Hashmap *entries;
    List order;
    size_t max;
    void (*free_value)(void *);
};

TtlMap *ttl_map_new(size_t max, void (*free_value)(void *))
{
    TtlMap *m = xnew(TtlMap);

    m->entries = hashmap_new();
    m->max = max;
    m->free_value = free_value;
    list_init(&m->order);
    return m;
}

static void entry_drop(TtlMap *m, Entry *e)
{
    (void)hashmap_remove(m->entries, e->key);
    list_remove(&e->node);
    m->free_value(e->value);
    free(e->key);
    free(e);
}

TtlMap *ttl_map_free(TtlMap *m)
{
    if (!m)
        return NULL;
    while (!list_empty(&m->order))
        entry_drop(m, LIST_ENTRY(m->order.next, Entry, node));
    (void)hashmap_free(m->entries);
    free(m);
    return NULL;
}

void *ttl_map_get(TtlMap *m, const char *key, int64_t now_ms)
{
    Entry *e = hashmap_get(m->entries, key);

    if (!e)
        return NULL;
    if (e->dies_ms > now_ms)
        return e->value;
    entry_drop(m, e);
    return NULL;
}

void ttl_map_put(TtlMap *m, const char *key, void *value, int64_t dies_ms)
{
    Entry *e = hashmap_get(m->entries, key);

    if (e)
        entry_drop(m, e);
    if (hashmap_size(m->entries) >= m->max)
        entry_drop(m, LIST_ENTRY(m->order.next, Entry, node));
    e = xnew(Entry);
    e->key = xstrdup(key);
    e->value = value;
    e->dies_ms = dies_ms;
    list_push(&m->order, &e->node);
    (void)hashmap_put(m->entries, key, e);
}

size_t ttl_map_size(const TtlMap *m)
{
    return hashmap_size(m->entries);
}
