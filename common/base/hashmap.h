/* SPDX-License-Identifier: Apache-2.0 */
/*
 * String-keyed hash map (open addressing, keys copied and owned). Values are caller-owned pointers,
 * never NULL. Not thread-safe. Iteration order is unspecified; while iterating only the current
 * entry may be removed. Grows without a ceiling of its own: whoever adds on behalf of outside input
 * checks hashmap_size() first.
 */
#pragma once

#include "common/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Hashmap Hashmap;

Hashmap *hashmap_new(void) _warn_unused_;
Hashmap *hashmap_free(Hashmap *m); /* frees keys, not values; NULL is fine; returns NULL */
Hashmap *hashmap_free_with(Hashmap *m, void (*free_value)(void *));
size_t hashmap_size(const Hashmap *m);
void *hashmap_get(const Hashmap *m, const char *key);
/* Stores value and returns the one it replaced, or NULL. */
void *hashmap_put(Hashmap *m, const char *key, void *value);
/* Removes and returns the value, or NULL. */
void *hashmap_remove(Hashmap *m, const char *key);

typedef struct HashmapIter {
    const Hashmap *map;
    size_t slot;
    const char *key;
    void *value;
} HashmapIter;
HashmapIter hashmap_iter(const Hashmap *m);
bool hashmap_next(HashmapIter *it); /* sets key and value; false at the end */

#define hashmap_foreach(it, map) for (HashmapIter it = hashmap_iter(map); hashmap_next(&it);)

static inline void hashmap_freep(Hashmap **m)
{
    *m = hashmap_free(*m);
}
