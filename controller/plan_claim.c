/* SPDX-License-Identifier: Apache-2.0 */
/* A claim, from its first sight to its end: see claim_pass.h for the parts. */
#include "controller/claim_pass.h"

#include "common/base/str.h"
#include "controller/names.h"

/* Where they can be had at once: what is bound already does not wait for them. */
static void look_up_template(ClaimPass *p)
{
    if (!p->pool && p->c->pool)
        p->pool = world_pool(p->in->world, p->c->obj.ns, p->c->pool);
    if (!p->template && p->pool && p->pool->template_name)
        p->template = world_template(p->in->world, p->c->obj.ns, p->pool->template_name);
}

/* The name that the annotation is to hold: only Sandboxes out of a pool are recorded. */
static const char *name_to_record(const ClaimPass *p)
{
    return str_eq(p->bound->obj.name, p->c->obj.name) ? NULL : p->bound->obj.name;
}

static int plan_bound(ClaimPass *p, Error **error)
{
    int r;

    look_up_template(p);
    r = claim_add_drift(p, error);
    if (r < 0)
        return r;
    /* The status is checked by resourceVersion, so the annotations have to come after it. */
    r = claim_add_status(p, error);
    if (r != 0)
        return r;
    return claim_add_annotations(p, name_to_record(p), false, error);
}

static const char *recorded_name(const Claim *c)
{
    return c->assigned ? c->assigned : c->legacy_sandbox;
}

static int plan_unbound(ClaimPass *p, Error **error)
{
    int r = claim_bind(p, error);

    if (r < 0 || p->plan->need.type != NEED_NONE || p->plan->n_ops > 0)
        return r;
    plan_wake_at(p->plan, p->retry_ms);
    if (!p->reason)
        return 0;
    r = claim_add_status(p, error);
    if (r != 0)
        return r;
    return claim_add_annotations(p, p->reference_dead ? NULL : recorded_name(p->c), false, error);
}

static int plan_active(ClaimPass *p, Error **error)
{
    char text[CLAIM_ERROR_MAX];
    int r;

    if (!claim_metadata_valid(p->c, p->in->config, text, sizeof(text))) {
        p->bound = NULL;
        claim_fail(p, "InvalidMetadata", "%s", text);
        return claim_add_status(p, error);
    }
    r = p->bound ? plan_bound(p, error) : plan_unbound(p, error);
    return r < 0 ? r : 0;
}

/* It would go unnoticed otherwise that this claim has no idle time-out. */
static void warn_of_idle_timeout(const ClaimPass *p)
{
    if (!p->c->bad_idle_timeout || !p->in->config->claim_events)
        return;
    plan_warn_once(p->plan, &p->c->obj, "InvalidIdleTimeout", "Reconciling",
                   "annotation " ANNOTATION_IDLE_TIMEOUT " is \"%s\" and is ignored: it takes a "
                   "whole number of seconds from 1 to %d, such as \"900\"",
                   p->c->bad_idle_timeout, IDLE_SECONDS_MAX);
}

int plan_claim(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error)
{
    ClaimPass p = {
        .in = in,
        .plan = plan,
        .c = world_claim(in->world, ns, name),
        .retry_ms = TIME_NONE,
    };
    DeadlineKind kind;
    int64_t deadline;
    int r;

    if (!p.c || p.c->obj.deleting)
        return 0;
    r = claim_find_bound(&p, error);
    if (r < 0)
        return r;
    deadline = claim_deadline(p.c, in->config, &kind);
    if (deadline != TIME_NONE && in->now_ms >= deadline)
        return claim_plan_expired(&p, kind, deadline, error);
    plan_wake_at(plan, deadline);
    warn_of_idle_timeout(&p);
    r = plan_active(&p, error);
    return r < 0 ? r : 0;
}
