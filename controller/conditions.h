/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions that an object is to have, worked out from those it has. As everywhere in
 * Kubernetes, lastTransitionTime moves only when the status value does.
 */
#pragma once

#include "common/json/write.h"
#include "controller/model.h"

/* Strings are borrowed. */
typedef struct ConditionSet {
    size_t len;
    Condition items[CONDITIONS_MAX];
} ConditionSet;

ConditionSet condition_set_of(const Conditions *existing);
/* transition_ms of c is taken over where the status changes and it is not TIME_NONE; else it is
 * now_ms. A seventeenth type is dropped. */
void condition_set_put(ConditionSet *set, const Condition *c, int64_t now_ms);
void condition_set_drop(ConditionSet *set, const char *type);
const Condition *condition_set_get(const ConditionSet *set, const char *type);
bool condition_set_eq(const ConditionSet *set, const Conditions *existing);
void condition_set_sort(ConditionSet *set); /* by type */
/* The JSON array. */
void condition_set_write(JsonWriter *w, const ConditionSet *set);
