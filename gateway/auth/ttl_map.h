/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded map whose entries die at a given instant: the caches of reviews. Where it is full the
 * oldest entry makes room, so a flood of strangers costs reviews, never memory. Values are owned by
 * the map. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct TtlMap TtlMap;

TtlMap *ttl_map_new(size_t max, void (*free_value)(void *));
TtlMap *ttl_map_free(TtlMap *m);
/* NULL where there is none that lives at now_ms (any clock that does not jump). Borrowed. */
void *ttl_map_get(TtlMap *m, const char *key, int64_t now_ms);
void ttl_map_put(TtlMap *m, const char *key, void *value, int64_t dies_ms);
size_t ttl_map_size(const TtlMap *m);
