/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write budget: what a warm claim costs from its creation on, as long as nothing interferes; at
 * most two writes one after another before it is Ready, at most five in all, six with its event.
 */
#include "tests/sim/check_internal.h"

#include "common/base/str.h"

#define WRITES_MAX 5
#define EVENTS_MAX 1
#define STAGES_MAX 2
#define REFILL_STATUS_MAX 1
/* How long a claim is watched. */
#define WATCH_MS 5000
/* A disturbance shortly before has an effect still. */
#define ECHO_MS 5000

void claim_facts_free(void *p)
{
    free(p);
}

static ClaimFacts *facts_of(const Sim *sim, const char *uid)
{
    return uid ? hashmap_get(sim->check->claims, uid) : NULL;
}

static bool is_clean(const Sim *sim, const ClaimFacts *f)
{
    return f->warm && !f->dirty && sim_mono_ms(sim) - f->created_ms < WATCH_MS &&
           sim->check->disturbed_ms < f->created_ms - ECHO_MS;
}

/* The claim that an object belongs to, directly or through its Sandbox. */
static const char *claim_of(const Sim *sim, const Stored *o)
{
    if (!o)
        return NULL;
    if (o->kind == OBJ_CLAIM)
        return o->uid;
    if (o->kind == OBJ_SANDBOX)
        return str_eq(facts_owner_kind(o), "SandboxClaim") ? facts_owner_uid(o) : NULL;
    if (o->kind == OBJ_POD)
        return claim_of(sim, server_find_uid(sim, facts_owner_uid(o)));
    return NULL;
}

/* Its Pod came to an end: that is to be told. */
static void exempt_from_refill(Stored *member, const Stored *pod, const char *type)
{
    bool ended = str_eq(type, "DELETED") || facts_deleting(pod) ||
                 !str_eq(doc_str(pod->doc, "status.phase"), "Running");

    if (member && ended)
        member->made_ms = INT64_MIN / 2;
}

void budget_commit(Sim *sim, const Stored *o, const char *type, Writer who)
{
    ClaimFacts *f;

    if (o->kind == OBJ_CLAIM && str_eq(type, "ADDED")) {
        f = xnew(ClaimFacts);
        f->created_ms = sim_mono_ms(sim);
        (void)hashmap_put(sim->check->claims, o->uid, f);
        return;
    }
    if (o->kind == OBJ_POD && !str_eq(doc_str(o->doc, "status.phase"), "Pending") &&
        !str_eq(type, "ADDED"))
        exempt_from_refill(server_find_uid(sim, facts_owner_uid(o)), o, type);
    f = facts_of(sim, claim_of(sim, o));
    if (!f)
        return;
    if (who != WRITER_CONTROLLER)
        f->dirty = true;
    if (o->kind == OBJ_CLAIM && facts_ready_reason(o) && !f->warm)
        f->dirty = true; /* it had to be told why it gets nothing for now */
    if (o->kind == OBJ_CLAIM && facts_is_ready(o) && !f->ready) {
        f->ready = true;
        if (is_clean(sim, f))
            sim->check->totals.budget_checked++;
    }
    if (o->kind == OBJ_CLAIM && str_eq(type, "DELETED")) {
        (void)hashmap_remove(sim->check->claims, o->uid);
        free(f);
    }
}

static void keep_max(uint64_t *max, uint64_t value)
{
    if (value > *max)
        *max = value;
}

static void check_counts(Sim *sim, const ClaimFacts *f, const char *uid)
{
    if (!is_clean(sim, f))
        return;
    keep_max(&sim->check->totals.budget_max, f->writes);
    keep_max(&sim->check->totals.stages_max, f->stages);
    keep_max(&sim->check->totals.events_max, f->events);
    if (f->writes > WRITES_MAX || f->events > EVENTS_MAX || f->stages > STAGES_MAX)
        sim_fail(sim, "warm claim %s cost %u writes, %u events, %u one after another before Ready",
                 uid, f->writes, f->events, f->stages);
}

/* A pool's refill: the member, its Pod, and one status when it is ready (the pool's own follows).
 */
static void check_refill(Sim *sim, Stored *member)
{
    int64_t age = sim_mono_ms(sim) - member->made_ms;

    if (sim->faults.pod_fails == 0 && ++member->status_writes > REFILL_STATUS_MAX &&
        str_eq(facts_owner_kind(member), "SandboxWarmPool") && age < WATCH_MS &&
        sim->check->disturbed_ms < member->made_ms - ECHO_MS)
        sim_fail(sim, "member %s/%s cost %u status writes", member->ns, member->name,
                 member->status_writes);
}

void check_submit(Sim *sim, const PlanOp *op)
{
    Stored *target = server_find_uid(sim, op->uid);
    const char *uid = op->reserve_for ? op->reserve_for : claim_of(sim, target);
    ClaimFacts *f = facts_of(sim, uid);

    sim->check->totals.writes++;
    if (target && str_eq(op->purpose, "sandbox-status"))
        check_refill(sim, target);
    if (str_eq(op->purpose, "transfer"))
        sim->check->totals.warm++;
    if (str_eq(op->purpose, "cold-create"))
        sim->check->totals.cold++;
    if (!f)
        return;
    if (target && target->kind == OBJ_CLAIM && facts_claim_deadline(target) <= sim_wall_ms(sim))
        f->dirty = true; /* its end is accounted for elsewhere */
    f->writes++;
    if (op->reserve_for)
        f->warm = target && facts_is_ready(target);
    if (!f->ready && (op->reserve_for || op->kind == OBJ_CLAIM) &&
        f->last_stage_step != sim->steps) {
        f->stages++;
        f->last_stage_step = sim->steps;
    }
    check_counts(sim, f, uid);
}

void check_op(Sim *sim, const PlanOp *op, ApiOutcome outcome)
{
    const Stored *target = server_find_uid(sim, op->uid);
    ClaimFacts *f = facts_of(sim, op->reserve_for ? op->reserve_for : claim_of(sim, target));

    if (f && outcome != API_OK)
        f->dirty = true;
}

void check_event(Sim *sim, const PlanEvent *event)
{
    ClaimFacts *f = facts_of(sim, event->uid);

    if (!f)
        return;
    f->events++;
    check_counts(sim, f, event->uid);
}
