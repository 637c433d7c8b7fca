/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines while time goes on; and what the cluster has to look like once all is quiet. */
#include "tests/sim/check_internal.h"

#include "common/base/str.h"
#include "controller/names.h"
#include "tests/sim/line.h"

#include <inttypes.h>
#include <stdio.h>

/* Nothing outlives its deadline by more, counted while the controller is up and connected: with
 * everything going wrong, back-off included, and in peace. */
#define LATE_MAX_MS 40000
#define LATE_QUIET_MAX_MS 3000
#define LOOK_EVERY_MS 250
/* Who was connected for so long before an owner went knew what it owned. */
#define LEFT_KNOWN_MS 2000
/* The garbage collector's turn: from then on it is late. */
#define LEFT_TURN_MS 2000

/* Since when nothing has kept the controller from acting. */
static int64_t able_since(const Sim *sim)
{
    int64_t up = line_up_since_ms(sim);

    return up < 0 ? INT64_MAX : up > sim->jumped_ms ? up : sim->jumped_ms;
}

static void note_late(Sim *sim, int64_t late)
{
    SimTotals *t = &sim->check->totals;
    int64_t *max = sim->quiet ? &t->late_quiet_max_ms : &t->late_max_ms;
    int64_t bound = sim->quiet ? LATE_QUIET_MAX_MS : LATE_MAX_MS;

    if (late > *max)
        *max = late;
    if (late > bound && !sim->quiet)
        sim_fail(sim, "a deadline passed %" PRId64 " ms ago", late);
}

static void look_at_claim(Sim *sim, Stored *o, _unused_ void *arg)
{
    int64_t deadline = o->deadline_ms, able = able_since(sim);
    int64_t late = sim_wall_ms(sim) - deadline;

    if (deadline == INT64_MAX || late <= 0 || able == INT64_MAX || facts_deleting(o))
        return;
    bool retain = !str_eq(doc_str(o->doc, "spec.lifecycle.shutdownPolicy"), "Delete") &&
                  !str_eq(doc_str(o->doc, "spec.lifecycle.shutdownPolicy"), "DeleteForeground");

    if (deadline == INT64_MAX || late <= 0 || able == INT64_MAX || facts_deleting(o))
        return;
    if (late > sim_mono_ms(sim) - able)
        late = sim_mono_ms(sim) - able;
    /* A change of the deadline into the past counts from the change. */
    if (late > sim_mono_ms(sim) - o->user_ms)
        late = sim_mono_ms(sim) - o->user_ms;
    if (retain && str_eq(facts_ready_reason(o), "ClaimExpired") &&
        facts_count_owned(sim, OBJ_SANDBOX, o->uid, false) == 0)
        return;
    note_late(sim, late);
}

/* Judged where the controller was there when the owner went; the garbage collector may be slower
 * than the bound. */
static void look_at_left(Sim *sim, Stored *o, _unused_ void *arg)
{
    int64_t late = sim_mono_ms(sim) - o->left_ms - LEFT_TURN_MS;

    if (!o->left_ms || late <= 0 || facts_deleting(o) || !facts_owner_uid(o) ||
        able_since(sim) > o->left_ms - LEFT_KNOWN_MS)
        return;
    if (late > LATE_MAX_MS)
        sim_fail(sim, "%s/%s was left behind and is %" PRId64 " ms late", o->ns, o->name, late);
    note_late(sim, late);
}

void check_step(Sim *sim)
{
    if (sim_mono_ms(sim) - sim->check->deadlines_ms < LOOK_EVERY_MS)
        return;
    sim->check->deadlines_ms = sim_mono_ms(sim);
    server_each(sim, OBJ_CLAIM, look_at_claim, NULL);
    server_each(sim, OBJ_SANDBOX, look_at_left, NULL);
    server_each(sim, OBJ_POD, look_at_left, NULL);
}

static _noreturn_ void unsettled(const Sim *sim, const Stored *o, const char *what)
{
    Buf text = BUF_INIT(1024 * 1024);

    doc_print(o->doc, &text);
    sim_fail(sim, "when all was quiet, %s %s/%s: %s\n%s", obj_resource(o->kind)->kind, o->ns,
             o->name, what, buf_str(&text));
}

static void expect(const Sim *sim, const Stored *o, bool fact, const char *what)
{
    if (!fact)
        unsettled(sim, o, what);
}

static bool reason_is(const Stored *o, const char *reason)
{
    return str_eq(facts_ready_reason(o), reason);
}

static Stored *template_of(const Sim *sim, const Stored *pool)
{
    const char *name = doc_str(pool->doc, "spec.sandboxTemplateRef.name");

    return server_find(sim, OBJ_TEMPLATE, pool->ns, name);
}

static void settled_unbound(Sim *sim, const Stored *o)
{
    const Stored *pool =
        server_find(sim, OBJ_POOL, o->ns, doc_str(o->doc, "spec.warmPoolRef.name"));
    const Stored *namesake = server_find(sim, OBJ_SANDBOX, o->ns, o->name);

    if (!pool)
        expect(sim, o, reason_is(o, "WarmPoolNotFound"), "its pool is missing");
    else if (!template_of(sim, pool))
        expect(sim, o, reason_is(o, "TemplateNotFound"), "its template is missing");
    else
        expect(sim, o, namesake && reason_is(o, "ReconcilerError"), "it got no sandbox");
}

static void settled_bound(Sim *sim, const Stored *o, const Stored *s)
{
    bool warm = !str_eq(s->name, o->name);
    const Doc *assigned =
        doc_get(doc_path(o->doc, "metadata.annotations"), ANNOTATION_SANDBOX_NAME);

    expect(sim, o, str_eq(facts_owner_uid(s), o->uid), "its sandbox is somebody else's");
    expect(sim, o, facts_is_ready(o) == facts_is_ready(s), "it differs from its sandbox");
    expect(sim, o, reason_is(o, facts_ready_reason(s)), "its reason differs from its sandbox's");
    expect(sim, o, !warm || (assigned && str_eq(assigned->text, s->name)),
           "the assignment is not recorded");
    expect(sim, o,
           !facts_is_ready(o) ||
               doc_get(doc_path(o->doc, "metadata.annotations"), ANNOTATION_FIRST_READY) != NULL,
           "claim-first-ready-at is missing");
}

static void settled_claim(Sim *sim, Stored *o, _unused_ void *arg)
{
    const char *name = doc_str(o->doc, "status.sandbox.name");
    const Stored *s = name ? server_find(sim, OBJ_SANDBOX, o->ns, name) : NULL;
    size_t n = facts_count_owned(sim, OBJ_SANDBOX, o->uid, true);

    if (facts_deleting(o))
        return;
    expect(sim, o, n <= 1, "it has more than one sandbox");
    if (facts_claim_deadline(o) <= sim_wall_ms(sim)) {
        expect(sim, o, reason_is(o, "ClaimExpired"), "it should have ended");
        expect(sim, o, n == 0, "its sandbox should be gone");
        return;
    }
    if (reason_is(o, "InvalidMetadata"))
        return;
    if (n == 0) {
        settled_unbound(sim, o);
        return;
    }
    expect(sim, o, s != NULL, "its status does not name its sandbox");
    settled_bound(sim, o, s);
}

static void settled_running(Sim *sim, const Stored *o)
{
    const Stored *pod = server_find(sim, OBJ_POD, o->ns, o->name);
    const char *phase = pod ? doc_str(pod->doc, "status.phase") : NULL;
    bool mine = pod && str_eq(facts_owner_uid(pod), o->uid);
    const char *kind = facts_owner_kind(o);

    expect(sim, o, pod != NULL, "it has no pod");
    if (!mine) {
        expect(sim, o, reason_is(o, "ReconcilerError"), "a foreign pod is in its way");
        return;
    }
    expect(sim, o, facts_is_ready(o) == str_eq(phase, "Running"), "its status is not its pod's");
    expect(sim, pod,
           str_eq(facts_label(pod, LABEL_CLAIM_UID),
                  str_eq(kind, "SandboxClaim") ? facts_label(o, LABEL_CLAIM_UID) : NULL),
           "wrong claim-uid");
    if (!kind && o->made_by == WRITER_CONTROLLER)
        return; /* it keeps the labels that isolate it */
    expect(sim, pod,
           (facts_label(pod, LABEL_WARM_POOL) != NULL) ==
               (str_eq(kind, "SandboxWarmPool") && facts_label(o, LABEL_WARM_POOL)),
           "wrong warm-pool label");
}

static void settled_sandbox(Sim *sim, Stored *o, _unused_ void *arg)
{
    const char *kind = facts_owner_kind(o);

    if (facts_deleting(o))
        return;
    if (o->made_by == WRITER_CONTROLLER) {
        const Stored *owner = server_find_uid(sim, facts_owner_uid(o));
        const char *claim_uid = facts_label(o, LABEL_CLAIM_UID);
        expect(sim, o, kind ? owner != NULL : !claim_uid, "it is an orphan");
    }
    if (facts_sandbox_expired(o, sim_wall_ms(sim))) {
        expect(sim, o, reason_is(o, "SandboxExpired"), "it should have expired");
        expect(sim, o, facts_count_owned(sim, OBJ_POD, o->uid, true) == 0,
               "its pod should be gone");
    } else if (str_eq(doc_str(o->doc, "spec.operatingMode"), "Suspended")) {
        expect(sim, o, reason_is(o, "SandboxSuspended"), "it should be suspended");
        expect(sim, o, facts_count_owned(sim, OBJ_POD, o->uid, true) == 0,
               "its pod should be gone");
    } else {
        settled_running(sim, o);
    }
}

static void settled_pod(Sim *sim, Stored *o, _unused_ void *arg)
{
    const Stored *owner = server_find_uid(sim, facts_owner_uid(o));

    if (facts_deleting(o) || o->made_by != WRITER_CONTROLLER)
        return;
    if (facts_owner_uid(o))
        expect(sim, o, owner != NULL, "its sandbox is gone");
    else
        expect(sim, o, !facts_label(o, LABEL_TEMPLATE_REF), "it is an orphan");
}

static void settled_pool(Sim *sim, Stored *o, _unused_ void *arg)
{
    size_t n = facts_count_owned(sim, OBJ_SANDBOX, o->uid, true);
    long long replicas = doc_int(o->doc, "spec.replicas", 1);

    if (facts_deleting(o))
        return;
    if (template_of(sim, o))
        expect(sim, o, (long long)n == replicas, "it has not as many members as asked for");
    expect(sim, o, doc_int(o->doc, "status.replicas", -1) == (long long)n,
           "status.replicas is wrong");
    expect(sim, o, !template_of(sim, o) || doc_int(o->doc, "status.readyReplicas", -1) == replicas,
           "not all members are ready");
    expect(sim, o,
           doc_int(o->doc, "status.observedGeneration", -1) ==
               doc_int(o->doc, "metadata.generation", 0),
           "status.observedGeneration is behind");
}

static void settled_template(Sim *sim, Stored *o, _unused_ void *arg)
{
    _cleanup_free_ char *name = policy_name(o->name);
    const Stored *policy = server_find(sim, OBJ_POLICY, o->ns, name);
    const char *management = doc_str(o->doc, "spec.networkPolicyManagement");
    bool mine = policy && str_eq(facts_owner_uid(policy), o->uid);

    expect(sim, o, str_eq(facts_label(o, LABEL_TEMPLATE_REF), name_hash_of(o->name).s),
           "its label is missing");
    if (str_eq(management, "Unmanaged"))
        expect(sim, o, !mine, "its policy should be gone");
    else
        expect(sim, o,
               mine && !doc_get(doc_path(policy->doc, "spec.podSelector.matchLabels"), "hole"),
               "its policy is missing or not repaired");
}

static void settled_view(Sim *sim, Stored *o, _unused_ void *arg)
{
    const Obj *view = world_get(reconciler_world(line_reconciler(sim)), o->kind, o->ns, o->name);

    if (o->kind == OBJ_POD && !facts_label(o, LABEL_NAME_HASH))
        return;
    expect(sim, o, view && view->rv == o->rv && str_eq(view->uid, o->uid),
           "the World has another version");
    expect(sim, o, view->inflight == 0, "a write is still under way");
    expect(sim, o, o->kind != OBJ_SANDBOX || !obj_sandbox(view)->reserved_for,
           "it is reserved for a claim");
}

void check_settled(Sim *sim)
{
    static const StoredFn checks[OBJ_KIND_MAX] = {
        [OBJ_CLAIM] = settled_claim, [OBJ_SANDBOX] = settled_sandbox,   [OBJ_POD] = settled_pod,
        [OBJ_POOL] = settled_pool,   [OBJ_TEMPLATE] = settled_template,
    };
    ReconcilerStats stats;

    if (!line_reconciler(sim))
        sim_fail(sim, "the controller is down when all is quiet");
    stats = reconciler_stats(line_reconciler(sim));
    if (stats.inflight > 0 || stats.spins > 0)
        sim_fail(sim, "%zu requests in flight, %" PRIu64 " spins", stats.inflight, stats.spins);
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++) {
        server_each(sim, k, settled_view, NULL);
        if (checks[k])
            server_each(sim, k, checks[k], NULL);
    }
}

void sim_totals_add(SimTotals *sum, const SimTotals *one)
{
    sum->steps += one->steps;
    sum->writes += one->writes;
    sum->restarts += one->restarts;
    sum->watch_cuts += one->watch_cuts;
    sum->warm += one->warm;
    sum->cold += one->cold;
    sum->expired += one->expired;
    sum->orphans += one->orphans;
    sum->budget_checked += one->budget_checked;
    if (one->budget_max > sum->budget_max)
        sum->budget_max = one->budget_max;
    if (one->stages_max > sum->stages_max)
        sum->stages_max = one->stages_max;
    if (one->events_max > sum->events_max)
        sum->events_max = one->events_max;
    if (one->late_max_ms > sum->late_max_ms)
        sum->late_max_ms = one->late_max_ms;
    if (one->late_quiet_max_ms > sum->late_quiet_max_ms)
        sum->late_quiet_max_ms = one->late_quiet_max_ms;
}

void sim_totals_print(const SimTotals *t)
{
    (void)printf("%" PRIu64 " steps, %" PRIu64 " writes, %" PRIu64 " restarts, %" PRIu64
                 " watches cut, claims %" PRIu64 " warm %" PRIu64 " cold %" PRIu64
                 " expired, %" PRIu64 " orphans; budget of %" PRIu64 " claims: max %" PRIu64
                 " writes, %" PRIu64 " in a row, %" PRIu64 " events; late max %" PRId64
                 " ms, in peace %" PRId64 " ms\n",
                 t->steps, t->writes, t->restarts, t->watch_cuts, t->warm, t->cold, t->expired,
                 t->orphans, t->budget_checked, t->budget_max, t->stages_max, t->events_max,
                 t->late_max_ms, t->late_quiet_max_ms);
}
