/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One planning pass over a claim, and its parts: when it ends (claim_deadline.c), which Sandbox it
 * has or gets (claim_bind.c), the writes (claim_ops.c), its status (claim_status.c). Private to
 * plan_claim.c and claim_*.c.
 */
#pragma once

#include "controller/claim_metadata.h"

typedef struct ClaimPass {
    const PlanInput *in;
    Plan *plan;
    const Claim *c;
    const Pool *pool;
    const Template *template;
    Sandbox *bound;        /* controlled by the claim */
    const char *reference; /* the Sandbox that the claim was assigned, by name; or NULL */
    bool reference_dead;   /* it is gone or somebody else's: to be removed */
    /* verdict where there is no Sandbox */
    const char *reason; /* NULL: none */
    char message[CLAIM_ERROR_MAX + 256];
    int64_t retry_ms; /* try again at this instant; TIME_NONE */
} ClaimPass;

/* claim_deadline.c */
typedef enum DeadlineKind {
    DEADLINE_NONE,
    DEADLINE_SHUTDOWN,
    DEADLINE_TTL,
    DEADLINE_IDLE
} DeadlineKind;
/* The earliest instant at which something ends the claim; TIME_NONE. */
int64_t claim_deadline(const Claim *c, const PlanConfig *config, DeadlineKind *ret_kind);
int claim_plan_expired(ClaimPass *p, DeadlineKind kind, int64_t deadline_ms, Error **error);

/* claim_bind.c: sets bound, reference; may add deletions of what the claim has too much. */
int claim_find_bound(ClaimPass *p, Error **error);
/* No Sandbox yet: takes one, makes one, waits, or says why not (reason). */
int claim_bind(ClaimPass *p, Error **error);
void claim_fail(ClaimPass *p, const char *reason, const char *fmt, ...) _printf_(3, 4);

/* claim_ops.c */
int claim_add_transfer(ClaimPass *p, const Sandbox *s, Error **error);
int claim_add_cold_create(ClaimPass *p, Error **error);
/* What the annotations lack; sandbox: the name to record, NULL for none. */
int claim_add_annotations(ClaimPass *p, const char *sandbox, bool becomes_ready, Error **error);
/* Labels and podTemplate metadata of the bound Sandbox, where they differ. */
int claim_add_drift(ClaimPass *p, Error **error);

/* claim_status.c: adds a status write where it differs from what is stored; returns 1 where it
 * did. */
int claim_add_status(ClaimPass *p, Error **error);
int claim_add_status_expired(ClaimPass *p, const char *message, bool clear_sandbox, Error **error);
bool claim_is_ready(const Claim *c);
