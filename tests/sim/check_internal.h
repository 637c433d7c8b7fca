/* SPDX-License-Identifier: Apache-2.0 */
/* State of the checks. Private to check*.c. */
#pragma once

#include "tests/sim/check.h"

/* What a claim cost so far. */
typedef struct ClaimFacts {
    int64_t created_ms; /* monotonic */
    bool warm;          /* it was given a Ready member */
    bool dirty;         /* somebody or something interfered */
    bool ready;
    unsigned writes, events, stages;
    uint64_t last_stage_step;
} ClaimFacts;
void claim_facts_free(void *p);

struct Check {
    Hashmap *claims;   /* UID → ClaimFacts */
    Hashmap *pool_max; /* UID → largest number of replicas ever asked for (uint64_t *) */
    int64_t disturbed_ms;
    int64_t deadlines_ms; /* when they were last looked at */
    SimTotals totals;
};

/* check_budget.c */
void budget_commit(Sim *sim, const Stored *o, const char *type, Writer who);
