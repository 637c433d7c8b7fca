/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/hashmap.h"
#include "common/base/contract.h"
#include "common/base/str.h"

#include <string.h>

#define HASHMAP_FIRST_SLOTS 16 /* a power of two, as every size after it */

typedef struct Slot {
    char *key; /* NULL: free, or a tombstone */
    void *value;
    uint64_t hash;
    bool tombstone;
} Slot;

struct Hashmap {
    Slot *slots;
    size_t n_slots;
    size_t size;
    size_t used; /* entries and tombstones: what probing has to walk over */
};

Hashmap *hashmap_new(void)
{
    return xnew(Hashmap);
}

Hashmap *hashmap_free(Hashmap *m)
{
    return hashmap_free_with(m, NULL);
}

Hashmap *hashmap_free_with(Hashmap *m, void (*free_value)(void *))
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < m->n_slots; i++) {
        if (m->slots[i].key && free_value)
            free_value(m->slots[i].value);
        free(m->slots[i].key);
    }
    free(m->slots);
    free(m);
    return NULL;
}

size_t hashmap_size(const Hashmap *m)
{
    return m ? m->size : 0;
}

static size_t first_slot(const Hashmap *m, uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32) & (m->n_slots - 1);
}

static Slot *find(const Hashmap *m, const char *key)
{
    uint64_t hash = str_hash64(key);

    if (!m || m->size == 0)
        return NULL;
    for (size_t i = first_slot(m, hash);; i = (i + 1) & (m->n_slots - 1)) {
        Slot *slot = &m->slots[i];

        if (slot->key && slot->hash == hash && strcmp(slot->key, key) == 0)
            return slot;
        if (!slot->key && !slot->tombstone)
            return NULL;
    }
}

/* Places an entry whose key is not in the map; there is a free slot. */
static void place(Hashmap *m, Slot entry)
{
    size_t i = first_slot(m, entry.hash);

    while (m->slots[i].key)
        i = (i + 1) & (m->n_slots - 1);
    if (!m->slots[i].tombstone)
        m->used++;
    m->slots[i] = entry;
    m->size++;
}

static void rehash(Hashmap *m, size_t n_slots)
{
    _cleanup_free_ Slot *old = m->slots;
    size_t n_old = m->n_slots;

    m->slots = xcalloc(n_slots, sizeof(Slot));
    m->n_slots = n_slots;
    m->size = m->used = 0;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].key)
            place(m, old[i]);
}

/* Keeps probing short: at most 3/4 of the slots are in use, tombstones included. */
static void make_room(Hashmap *m)
{
    if (m->n_slots == 0)
        rehash(m, HASHMAP_FIRST_SLOTS);
    else if ((m->used + 1) * 4 > m->n_slots * 3)
        rehash(m, m->size * 2 >= m->n_slots ? m->n_slots * 2 : m->n_slots);
}

void *hashmap_get(const Hashmap *m, const char *key)
{
    const Slot *slot = find(m, key);

    return slot ? slot->value : NULL;
}

void *hashmap_put(Hashmap *m, const char *key, void *value)
{
    Slot *slot = find(m, key);

    CONTRACT(value);
    if (slot) {
        void *old = slot->value;

        slot->value = value;
        return old;
    }
    make_room(m);
    place(m, (Slot){.key = xstrdup(key), .value = value, .hash = str_hash64(key)});
    return NULL;
}

void *hashmap_remove(Hashmap *m, const char *key)
{
    Slot *slot = find(m, key);
    void *value;

    if (!slot)
        return NULL;
    value = slot->value;
    free(slot->key);
    *slot = (Slot){.tombstone = true};
    m->size--;
    return value;
}

HashmapIter hashmap_iter(const Hashmap *m)
{
    return (HashmapIter){.map = m};
}

bool hashmap_next(HashmapIter *it)
{
    size_t n_slots = it->map ? it->map->n_slots : 0;

    while (it->slot < n_slots) {
        const Slot *slot = &it->map->slots[it->slot++];

        if (!slot->key)
            continue;
        it->key = slot->key;
        it->value = slot->value;
        return true;
    }
    return false;
}
