/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/conditions.h"

#include "common/base/clock.h"
#include "common/base/str.h"

#include <string.h>

ConditionSet condition_set_of(const Conditions *existing)
{
    ConditionSet set = {0};

    for (size_t i = 0; existing && i < existing->len; i++)
        set.items[set.len++] = existing->items[i];
    return set;
}

static Condition *find(ConditionSet *set, const char *type)
{
    for (size_t i = 0; i < set->len; i++)
        if (str_eq(set->items[i].type, type))
            return &set->items[i];
    return NULL;
}

const Condition *condition_set_get(const ConditionSet *set, const char *type)
{
    for (size_t i = 0; i < set->len; i++)
        if (str_eq(set->items[i].type, type))
            return &set->items[i];
    return NULL;
}

void condition_set_put(ConditionSet *set, const Condition *c, int64_t now_ms)
{
    Condition *old = find(set, c->type);
    int64_t transition = c->transition_ms == TIME_NONE ? now_ms - now_ms % 1000 : c->transition_ms;

    if (old && old->status == c->status && old->transition_ms != TIME_NONE)
        transition = old->transition_ms;
    if (!old && set->len == CONDITIONS_MAX)
        return;
    if (!old)
        old = &set->items[set->len++];
    *old = *c;
    old->transition_ms = transition;
}

void condition_set_drop(ConditionSet *set, const char *type)
{
    Condition *c = find(set, type);

    if (!c)
        return;
    memmove(c, c + 1, (size_t)(&set->items[set->len] - (c + 1)) * sizeof(*c));
    set->len--;
}

/* An empty text is written as "" and read back as "". */
static bool text_eq(const char *a, const char *b)
{
    return str_eq(a ? a : "", b ? b : "");
}

static bool condition_same(const Condition *a, const Condition *b)
{
    return a->status == b->status && a->transition_ms == b->transition_ms &&
           a->observed_generation == b->observed_generation && text_eq(a->reason, b->reason) &&
           text_eq(a->message, b->message);
}

bool condition_set_eq(const ConditionSet *set, const Conditions *existing)
{
    if (set->len != (existing ? existing->len : 0))
        return false;
    for (size_t i = 0; i < set->len; i++) {
        const Condition *c = conditions_get(existing, set->items[i].type);
        if (!c || !condition_same(c, &set->items[i]))
            return false;
    }
    return true;
}

static int by_type(const void *a, const void *b)
{
    return strcmp(((const Condition *)a)->type, ((const Condition *)b)->type);
}

void condition_set_sort(ConditionSet *set)
{
    qsort(set->items, set->len, sizeof(set->items[0]), by_type);
}

static void condition_write(JsonWriter *w, const Condition *c)
{
    char when[RFC3339_MAX];

    time_format_rfc3339(c->transition_ms == TIME_NONE ? 0 : c->transition_ms, when);
    jw_object(w);
    jw_kv_str(w, "type", c->type);
    jw_kv_str(w, "status", condition_status_to_string(c->status));
    if (c->observed_generation > 0)
        jw_kv_int(w, "observedGeneration", c->observed_generation);
    jw_kv_str(w, "lastTransitionTime", when);
    jw_kv_str(w, "reason", c->reason ? c->reason : "Unknown");
    jw_kv_str(w, "message", c->message ? c->message : "");
    jw_object_end(w);
}

void condition_set_write(JsonWriter *w, const ConditionSet *set)
{
    jw_array(w);
    for (size_t i = 0; i < set->len; i++)
        condition_write(w, &set->items[i]);
    jw_array_end(w);
}
