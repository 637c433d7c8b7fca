/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a caller's sandbox. The cache answers at once in the normal case. Where it shows nothing
 * (or somebody else's: the two must not differ, not in time either) one live read of the claim
 * follows, limited per owner, because another replica may have created it a moment ago; where the
 * cache is about to show it, the look-up waits for it, LOOKUP_SETTLE_MS at most. Who wants to use
 * the sandbox waits LOOKUP_PATIENCE_MS for one that is not ready as well: it may have been declared
 * ready a moment ago, through another replica. Loop thread.
 */
#pragma once

#include "gateway/sandbox/cache.h"

#define LOOKUP_SETTLE_MS 3000
#define LOOKUP_PATIENCE_MS 1000
#define LOOKUP_READS_BURST 20     /* live reads of one owner at once … */
#define LOOKUP_READ_REFILL_MS 500 /* … and how often one more is allowed */
#define LOOKUP_OWNERS_MAX 4096

typedef struct Lookups Lookups;
Lookups *lookups_new(SandboxCache *cache);
Lookups *lookups_free(Lookups *l); /* look-ups under way must be cancelled first */

typedef struct Lookup Lookup;
/* error NULL: *view says it all, also that there is no such sandbox; it is borrowed. Otherwise the
 * question has no answer (ERROR_EXHAUSTED, ERROR_UNAVAILABLE, ERROR_DENIED, …). */
typedef void (*LookupDoneFn)(const SandboxView *view, const Error *error, void *userdata);
typedef enum LookupPurpose { LOOKUP_TO_LOOK, LOOKUP_TO_USE } LookupPurpose;
/* done is called exactly once unless cancelled, later or within; *ret is NULL in the latter case.
 */
void lookup_start(Lookups *l, const char *ns, const char *claim, const char *owner,
                  LookupPurpose purpose, LookupDoneFn done, void *userdata, Lookup **ret);
Lookup *lookup_cancel(Lookup *lookup); /* NULL is fine; returns NULL */
uint64_t lookups_live_reads(const Lookups *l);
