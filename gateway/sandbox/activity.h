/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call leaves on a claim that has an idle time-out: when it was used last, and until when a
 * running command holds it. Written rarely: activity at most once per max(60 s, a quarter of the
 * idle time-out); the hold rides in the same patch, reaches one such minute beyond the command's
 * own end, and is written again only where the stored one would end before the command does. A
 * claim without an idle time-out is never written.
 */
#pragma once

#include "gateway/sandbox/cache.h"

#define ACTIVITY_PERIOD_MIN_MS 60000
#define ACTIVITY_LEASE_MAX_MS 660000 /* the controller cuts what is further ahead */

typedef struct ActivityPlan {
    bool write;
    int64_t last_activity_ms;
    int64_t exec_lease_ms; /* 0: not written */
} ActivityPlan;

/* Pure. until_ms: the wall-clock deadline of a command that starts now; 0 where none does. */
ActivityPlan activity_plan(const ClaimModel *claim, int64_t now_ms, int64_t until_ms);
typedef struct Activity Activity;
Activity *activity_new(SandboxCache *cache);
/* Patches under way may or may not arrive. */
Activity *activity_free(Activity *a);
/* Notes a use, and patches the claim where the plan says so; nobody waits for the patch. claim is
 * the store's model of ns/name. Loop thread. */
void activity_note(Activity *a, ClaimModel *claim, const char *ns, const char *name,
                   int64_t until_ms);
uint64_t activity_patches(const Activity *a);
