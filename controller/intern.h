/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings: equal texts are one allocation with a reference count, and equal within one
 * table means the same pointer. A cluster's objects repeat names, hashes, reasons and messages so
 * much that this is most of the cache's economy. Single-threaded; as large as what is referenced.
 */
#pragma once

#include "common/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Interner Interner;

Interner *interner_new(void) _warn_unused_;
/* Every string must have been released; a leak ends the process. Returns NULL. */
Interner *interner_free(Interner *in);

/* A reference to the interned copy; NULL stays NULL. Release with intern_unref. */
const char *intern(Interner *in, const char *s) _warn_unused_;
const char *intern_n(Interner *in, const char *s, size_t len) _warn_unused_;
/* One more reference to a string that is interned already; NULL stays NULL. */
const char *intern_ref(const char *s);
void intern_unref(Interner *in, const char *s);
/* The interned pointer without a reference of its own, or NULL where nobody holds such a text. */
const char *intern_find(const Interner *in, const char *s);
size_t interner_size(const Interner *in);
/* The hash of an interned string, without looking at it; 0 for NULL. */
uint32_t intern_hash(const char *s);

/* Immutable string map and list, sorted by key and in given order; NULL is the empty one. */
typedef struct StrPair {
    const char *key, *value;
} StrPair;

typedef struct StrMap {
    size_t len;
    StrPair items[];
} StrMap;

typedef struct StrList {
    size_t len;
    const char *items[];
} StrList;

/* Copies n pairs (any order; of equal keys the last wins). NULL for n = 0. */
StrMap *strmap_new(Interner *in, const StrPair *pairs, size_t n) _warn_unused_;
StrMap *strmap_free(Interner *in, const StrMap *m);
const char *strmap_get(const StrMap *m, const char *key); /* or NULL */
bool strmap_eq(const StrMap *a, const StrMap *b);

StrList *strlist_new(Interner *in, const char *const *items, size_t n) _warn_unused_;
StrList *strlist_free(Interner *in, const StrList *l);
bool strlist_eq(const StrList *a, const StrList *b);
