/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and annotations under construction (plan_internal.h). */
#include "controller/plan_internal.h"

#include "common/base/str.h"

#include <string.h>

static size_t pair_find(const PairSet *set, const char *key)
{
    size_t i = 0;

    while (i < set->len && !str_eq(set->items[i].key, key))
        i++;
    return i;
}

const char *pair_set_get(const PairSet *set, const char *key)
{
    size_t i = pair_find(set, key);

    return i < set->len ? set->items[i].value : NULL;
}

void pair_set_put(PairSet *set, const char *key, const char *value)
{
    size_t i = pair_find(set, key);

    if (!value) {
        if (i < set->len)
            set->items[i] = set->items[--set->len];
        return;
    }
    if (i == set->len) {
        if (set->len == set->cap) {
            set->cap = set->cap ? set->cap * 2 : 8;
            set->items = xreallocarray(set->items, set->cap, sizeof(StrPair));
        }
        set->len++;
    }
    set->items[i] = (StrPair){key, value};
}

void pair_set_put_map(PairSet *set, const StrMap *m)
{
    for (size_t i = 0; m && i < m->len; i++)
        pair_set_put(set, m->items[i].key, m->items[i].value);
}

void pair_set_done(PairSet *set)
{
    free(set->items);
    *set = (PairSet){0};
}

bool pair_set_differs(const StrMap *from, const PairSet *to)
{
    if ((from ? from->len : 0) != to->len)
        return true;
    for (size_t i = 0; i < to->len; i++)
        if (!str_eq(strmap_get(from, to->items[i].key), to->items[i].value))
            return true;
    return false;
}

bool pair_set_write_diff(JsonWriter *w, const char *key, const StrMap *from, const PairSet *to)
{
    if (!pair_set_differs(from, to))
        return false;
    jw_key(w, key);
    jw_object(w);
    for (size_t i = 0; i < to->len; i++)
        if (!str_eq(strmap_get(from, to->items[i].key), to->items[i].value))
            jw_kv_str(w, to->items[i].key, to->items[i].value);
    for (size_t i = 0; from && i < from->len; i++)
        if (!pair_set_get(to, from->items[i].key))
            jw_kv_str(w, from->items[i].key, NULL);
    jw_object_end(w);
    return true;
}
