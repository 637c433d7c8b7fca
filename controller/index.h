/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two small hash tables over interned strings, compared by pointer: objects by (namespace, name),
 * and lists of objects by a pair of strings. The tables hold no references: a key is alive as long
 * as an object that is in there has it.
 */
#pragma once

#include "controller/model.h"

typedef struct ObjTable {
    Obj **slots;
    size_t cap, len;
} ObjTable;

Obj *obj_table_get(const ObjTable *t, const char *ns, const char *name);
/* Adds, or takes the place of the one with the same key. */
void obj_table_put(ObjTable *t, Obj *o);
void obj_table_remove(ObjTable *t, const Obj *o);
void obj_table_done(ObjTable *t);

/* A bucket lives as long as it has members. */
typedef struct Bucket {
    const char *a, *b;
    List members;
    size_t n;
} Bucket;

typedef struct Index {
    Bucket **slots;
    size_t cap, len;
} Index;

Bucket *index_get(const Index *x, const char *a, const char *b); /* or NULL */
void index_add(Index *x, const char *a, const char *b, List *link);
/* Harmless where the link is in no list. */
void index_remove(Index *x, const char *a, const char *b, List *link);
void index_done(Index *x);
