/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Sandbox: its Pod, its status, its end at shutdownTime. The end has two steps: first the status
 * says so, then things are deleted; so a client can always tell why its sandbox went.
 */
#include "controller/plan_internal.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/sandbox_status.h"

/* How long news of a starting Pod may wait for more of it. Nobody looks at a pool's member before
 * it is ready. */
#define STATUS_DELAY_MS 1000
#define STATUS_DELAY_MEMBER_MS (10 * 1000)

static bool is_expired(const Sandbox *s, int64_t now_ms)
{
    return s->shutdown_ms != TIME_NONE && now_ms >= s->shutdown_ms;
}

static bool is_marked_expired(const Sandbox *s)
{
    const Condition *ready = conditions_get(s->conditions, "Ready");

    return ready && str_eq(ready->reason, "SandboxExpired");
}

static int delete_expired(const Sandbox *s, Plan *plan, Error **error)
{
    char when[RFC3339_MAX];

    if (s->obj.inflight > 0)
        return 0;
    time_format_rfc3339(s->shutdown_ms, when);
    plan_add_event(plan, &s->obj, false, "SandboxExpired", "Deleting",
                   "Deleting Sandbox (shutdownPolicy=Delete): its shutdownTime %s has passed",
                   when);
    return plan_delete(plan, &s->obj, true, false, "sandbox-expire", error);
}

static int write_status_if_changed(const Sandbox *s, const SandboxStatus *status, Plan *plan,
                                   Error **error)
{
    if (s->obj.inflight > 0 || sandbox_status_same(s, status))
        return 0;
    return sandbox_status_write(s, status, plan, error);
}

static int mark_expired(const PlanInput *in, const Sandbox *s, Plan *plan, Error **error)
{
    char when[RFC3339_MAX];
    SandboxStatus status;
    int r;

    sandbox_status_expired(s, false, in->now_ms, &status);
    r = write_status_if_changed(s, &status, plan, error);
    time_format_rfc3339(s->shutdown_ms, when);
    if (r >= 0 && plan->n_ops > 0)
        plan_note(plan, "sandbox expired", NULL, s->obj.name,
                  "its shutdownTime has passed (%s), shutdownPolicy %s", when,
                  s->shutdown_delete ? "Delete" : "Retain");
    return r;
}

static int plan_expired(const PlanInput *in, const Sandbox *s, Plan *plan, Error **error)
{
    SandboxStatus status;
    int r;

    if (!is_marked_expired(s))
        return mark_expired(in, s, plan, error);
    r = plan_pod_delete_all(in, s, plan, error);
    if (r < 0)
        return r;
    if (s->shutdown_delete)
        return delete_expired(s, plan, error);
    sandbox_status_expired(s, true, in->now_ms, &status);
    return write_status_if_changed(s, &status, plan, error);
}

static void report_multiple_pods(const Sandbox *s, const PodStep *step, Plan *plan)
{
    const Condition *ready = conditions_get(s->conditions, "Ready");

    if (step->multiple && !(ready && str_eq(ready->reason, "MultiplePods")))
        plan_add_event(plan, &s->obj, true, "MultiplePods", "Reconciling", "%s", step->error);
}

/* Decides when the status is written; sets the memo where it waits. */
static int plan_status(const PlanInput *in, const Sandbox *s, const PodStep *step, Plan *plan,
                       Error **error)
{
    SandboxStatus status;
    int64_t delay = s->obj.owner_kind == OWNER_POOL ? STATUS_DELAY_MEMBER_MS : STATUS_DELAY_MS;
    int64_t due = s->status_due_ms;

    sandbox_status_active(s, step, in->now_ms, &status);
    if (sandbox_status_same(s, &status))
        return 0;
    if (due == TIME_NONE || due > in->now_ms + delay)
        due = in->now_ms + delay;
    if (sandbox_status_can_wait(s, &status) && in->now_ms < due) {
        plan->memo.status_due_ms = due;
        plan_wake_at(plan, due);
        return 0;
    }
    report_multiple_pods(s, step, plan);
    return write_status_if_changed(s, &status, plan, error);
}

int plan_sandbox(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error)
{
    const Sandbox *s = world_sandbox(in->world, ns, name);
    const Pod *pod = world_pod(in->world, ns, name); /* not always its own */
    PodStep step;
    bool expired;
    int r;

    r = plan_follow_owner(in, s ? &s->obj : NULL, plan, error);
    if (r != 0)
        return r < 0 ? r : 0;
    /* Before the namesake's Pod below, which somebody may not let go. */
    expired = s && !s->obj.deleting && is_expired(s, in->now_ms);
    r = expired ? plan_expired(in, s, plan, error) : 0;
    if (r < 0 || plan->n_ops > 0)
        return r;
    r = plan_follow_owner(in, pod ? &pod->obj : NULL, plan, error);
    if (r != 0)
        return r < 0 ? r : 0;
    if (!s || s->obj.deleting || expired)
        return 0;
    plan_wake_at(plan, s->shutdown_ms);
    r = plan_pod_step(in, s, plan, &step, error);
    if (r < 0 || plan->need.type != NEED_NONE)
        return r;
    if (step.creating)
        return 0; /* the status follows when it is there */
    return plan_status(in, s, &step, plan, error);
}
