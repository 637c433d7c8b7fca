/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold. After each commit: no Sandbox is ever given to two claims, no claim has two, no
 * pool more members than asked for, nothing foreign is touched, a Ready claim has its Sandbox, and
 * each deletion of the controller's has a reason that the stored objects bear out. While time goes
 * on: nothing outlives its deadline by more than the bound, and a warm claim costs no more writes
 * than the budget. When all is quiet: everything is as it should be, and the World equals the
 * server.
 */
#pragma once

#include "tests/sim/server.h"

Check *check_new(void);
Check *check_free(Check *c);

void check_commit(Sim *sim, Stored *o, const char *type, Writer who);
void check_delete(Sim *sim, const Stored *o, Writer who);
void check_submit(Sim *sim, const PlanOp *op);
void check_op(Sim *sim, const PlanOp *op, ApiOutcome outcome);
void check_event(Sim *sim, const PlanEvent *event);
/* Something went wrong that costs extra writes. */
void check_disturbed(Sim *sim);
void check_clock_jump(Sim *sim);
void check_restart(Sim *sim);
void check_watch_cut(Sim *sim);
void check_step(Sim *sim);
void check_settled(Sim *sim);
void check_totals(const Sim *sim, SimTotals *ret);

/* check_facts.c: what follows from the stored documents alone. */
int64_t facts_claim_deadline(const Stored *claim); /* wall ms; INT64_MAX: none */
bool facts_sandbox_expired(const Stored *sandbox, int64_t wall_ms);
const char *facts_ready_reason(const Stored *o);
bool facts_is_ready(const Stored *o);
/* "SandboxClaim" etc. of the controller reference, and its UID; NULL. */
const char *facts_owner_kind(const Stored *o);
const char *facts_owner_uid(const Stored *o);
const char *facts_label(const Stored *o, const char *key);
bool facts_deleting(const Stored *o);
size_t facts_count_owned(Sim *sim, ObjKind kind, const char *owner_uid, bool even_deleting);
