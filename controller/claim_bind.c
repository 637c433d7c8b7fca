/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Sandbox a claim has, and how it gets one. What binds is the Sandbox's controller reference
 * to the claim's UID, nothing else; names in the claim's status and annotations only say where to
 * look first, and which of two is meant.
 */
#include "controller/claim_pass.h"

#include "common/base/str.h"
#include "controller/candidates.h"
#include "controller/names.h"

#include <stdarg.h>
#include <stdio.h>

/* How long a young claim waits for a member that is about to get its address, and how often a claim
 * looks again at what only live reads or other writers can change. */
#define NETWORK_WAIT_MS 2000
#define BUSY_RECHECK_MS 200
#define COLLISION_RECHECK_MS 5000
#define MISSING_RECHECK_MS (60 * 1000)

void claim_fail(ClaimPass *p, const char *reason, const char *fmt, ...)
{
    va_list ap;

    p->reason = reason;
    va_start(ap, fmt);
    (void)vsnprintf(p->message, sizeof(p->message), fmt, ap);
    va_end(ap);
}

static void fail_error(ClaimPass *p, const char *text)
{
    claim_fail(p, "ReconcilerError", "Error seen: %s", text);
}

/* Higher is better: which of several Sandboxes of the claim is the one. */
static int preference(const Claim *c, const Sandbox *s)
{
    if (str_eq(s->obj.name, c->status_sandbox))
        return 4;
    if (str_eq(s->obj.name, c->assigned))
        return 3;
    if (str_eq(s->obj.name, c->legacy_sandbox))
        return 2;
    return str_eq(s->obj.name, c->obj.name);
}

static Sandbox *best_bound(const ClaimPass *p, size_t *ret_count)
{
    Sandbox *best = NULL;
    const Obj *o;

    *ret_count = 0;
    for (WorldIter it = world_children(p->in->world, p->c->obj.uid); (o = world_next(&it));) {
        Sandbox *s = o->kind == OBJ_SANDBOX ? obj_sandbox(o) : NULL;
        if (!s || !str_eq(s->obj.ns, p->c->obj.ns))
            continue;
        ++*ret_count;
        if (!best || preference(p->c, s) > preference(p->c, best))
            best = s;
    }
    return best;
}

/* A claim that was served by two processes at once can have got two Sandboxes. The one that its
 * status names was shown to somebody; the others never were. */
static int delete_surplus(const ClaimPass *p, Error **error)
{
    const Obj *o;

    if (!str_eq(p->c->status_sandbox, p->bound->obj.name))
        return 0;
    for (WorldIter it = world_children(p->in->world, p->c->obj.uid); (o = world_next(&it));) {
        int r;
        if (o->kind != OBJ_SANDBOX || o == &p->bound->obj || o->deleting || o->inflight > 0 ||
            !o->made_by_controller)
            continue;
        r = plan_delete(p->plan, o, true, false, "claim-surplus", error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Its own Sandbox was created, or not: the answer was lost. */
static bool creates_own(const Claim *c)
{
    return str_eq(c->attempt, c->obj.name);
}

int claim_find_bound(ClaimPass *p, Error **error)
{
    const Claim *c = p->c;
    size_t n;

    p->reference = c->assigned ? c->assigned : c->legacy_sandbox;
    if (c->attempt && !creates_own(c))
        p->reference = c->attempt;
    p->bound = best_bound(p, &n);
    return n > 1 ? delete_surplus(p, error) : 0;
}

/* A Sandbox that the claim names and the World does not know is looked up live, once a pass: a
 * watch may lag, and a second Sandbox would be the worst answer to that. */
static bool names_are_known(const ClaimPass *p)
{
    const char *ns = p->c->obj.ns;
    const char *name = p->c->status_sandbox ? p->c->status_sandbox : p->reference;

    if (!name || world_sandbox(p->in->world, ns, name) ||
        plan_live_get(p->in, OBJ_SANDBOX, ns, name))
        return true;
    plan_need_get(p->plan, OBJ_SANDBOX, ns, name);
    return false;
}

/* False: to be read live first, or missing (then reason says so). */
static bool find_pool(ClaimPass *p)
{
    const char *ns = p->c->obj.ns, *name = p->c->pool ? p->c->pool : "";

    p->pool = world_pool(p->in->world, ns, name);
    if (p->pool)
        return true;
    if (!str_empty(name) && !plan_live_get(p->in, OBJ_POOL, ns, name)) {
        plan_need_get(p->plan, OBJ_POOL, ns, name);
        return false;
    }
    claim_fail(p, "WarmPoolNotFound", "SandboxWarmPool \"%s\" not found", name);
    p->retry_ms = p->in->now_ms + MISSING_RECHECK_MS;
    return false;
}

static bool find_template(ClaimPass *p)
{
    const char *ns = p->c->obj.ns;
    const char *name = p->pool->template_name ? p->pool->template_name : "";

    p->template = world_template(p->in->world, ns, name);
    if (p->template)
        return true;
    if (!str_empty(name) && !plan_live_get(p->in, OBJ_TEMPLATE, ns, name)) {
        plan_need_get(p->plan, OBJ_TEMPLATE, ns, name);
        return false;
    }
    claim_fail(p, "TemplateNotFound", "SandboxTemplate \"%s\" not found", name);
    p->retry_ms = p->in->now_ms + MISSING_RECHECK_MS;
    return false;
}

/* What the claim asks for beyond a Sandbox as the template has it. */
static bool wishes_are_granted(ClaimPass *p)
{
    const Claim *c = p->c;
    const Template *t = p->template;
    char text[CLAIM_ERROR_MAX];

    if (c->has_env && t->env_policy == INJECTION_DISALLOWED)
        claim_fail(p, "EnvVarsInjectionRejected",
                   "environment variable injection is not allowed by SandboxTemplate \"%s\" "
                   "(envVarsInjectionPolicy: Disallowed)",
                   t->obj.name);
    else if (c->has_volume_claims && t->volume_policy == INJECTION_DISALLOWED)
        claim_fail(p, "VolumeClaimTemplatesError",
                   "volumeClaimTemplates are not allowed by SandboxTemplate \"%s\" "
                   "(volumeClaimTemplatesPolicy: Disallowed)",
                   t->obj.name);
    else if (c->has_env || c->has_volume_claims)
        claim_fail(p, "ReconcilerError",
                   "Error seen: %s is not supported by this version of the controller",
                   c->has_env ? "spec.env" : "spec.volumeClaimTemplates");
    else if (t->has_volume_claims || t->service == SERVICE_TRUE)
        claim_fail(p, "ReconcilerError",
                   "Error seen: %s of SandboxTemplate \"%s\" is not supported by this version of "
                   "the controller",
                   t->has_volume_claims ? "spec.volumeClaimTemplates" : "spec.service",
                   t->obj.name);
    else if (!claim_metadata_compatible(c, t, text, sizeof(text)))
        fail_error(p, text);
    else
        return true;
    return false;
}

static bool in_pool(const ClaimPass *p, const Sandbox *s)
{
    return sandbox_is_adoptable(s) && str_eq(s->obj.owner_uid, p->pool->obj.uid);
}

static bool is_busy(const ClaimPass *p, const Sandbox *s)
{
    return s->obj.inflight > 0 || (s->reserved_for && !str_eq(s->reserved_for, p->c->obj.uid));
}

/* What the claim was assigned before: 1 to go on with it (*ret), 0 where it is of no use. */
static int resume_assignment(ClaimPass *p, Sandbox **ret)
{
    Sandbox *s = p->reference ? world_sandbox(p->in->world, p->c->obj.ns, p->reference) : NULL;

    if (!p->reference)
        return 0;
    p->reference_dead = !s || s->obj.owner_kind == OWNER_CLAIM || s->obj.owner_kind == OWNER_POOL;
    if (!s || !in_pool(p, s))
        return 0;
    p->reference_dead = false;
    *ret = s;
    return 1;
}

/* Whether a member is what the pool hands out, and is really there: its Pod may have died a moment
 * ago. */
static bool skip_member(const Sandbox *s, void *userdata)
{
    const ClaimPass *p = userdata;
    const Pod *pod = world_pod(p->in->world, s->obj.ns, s->obj.name);

    if (p->pool->recreate && s->blueprint_hash != p->template->blueprint_hash)
        return true;
    return !pod || !pod->ready || pod->obj.deleting || !str_eq(pod->obj.owner_uid, s->obj.uid);
}

static Sandbox *pick_warming(const ClaimPass *p, bool *ret_pending)
{
    const Obj *o;

    for (WorldIter it = world_warming(p->in->world, p->pool->obj.uid); (o = world_next(&it));) {
        Sandbox *s = obj_sandbox(o);
        const Pod *pod = world_pod(p->in->world, s->obj.ns, s->obj.name);
        if (p->pool->recreate && s->blueprint_hash != p->template->blueprint_hash)
            continue;
        if (pod && (pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED || pod->obj.deleting))
            continue;
        if (pod && pod->ips && str_eq(pod->obj.owner_uid, s->obj.uid))
            return s;
        *ret_pending = true;
    }
    return NULL;
}

static int transfer_or_wait(ClaimPass *p, const Sandbox *s, Error **error)
{
    if (!is_busy(p, s))
        return claim_add_transfer(p, s, error);
    p->plan->memo.keep_attempt = true;
    plan_wake_at(p->plan, p->in->now_ms + BUSY_RECHECK_MS);
    return 0;
}

/* No member can be had, but one will be in a moment. */
static bool wait_for_member(ClaimPass *p)
{
    int64_t until = p->c->obj.created_ms + NETWORK_WAIT_MS;

    if (p->in->now_ms >= until || until - p->in->now_ms > NETWORK_WAIT_MS)
        return false;
    p->plan->memo.wait_for_member = true;
    plan_wake_at(p->plan, until);
    return true;
}

/* Something else has the claim's name. */
static bool name_is_taken(ClaimPass *p)
{
    const Sandbox *s = world_sandbox(p->in->world, p->c->obj.ns, p->c->obj.name);
    char text[CLAIM_ERROR_MAX];

    if (!s)
        return false;
    (void)snprintf(text, sizeof(text),
                   "sandbox \"%s\" is not controlled by claim \"%s\". Please use a different claim "
                   "name or delete the sandbox manually",
                   s->obj.name, p->c->obj.name);
    fail_error(p, text);
    p->retry_ms = p->in->now_ms + COLLISION_RECHECK_MS;
    return true;
}

static int take_or_make(ClaimPass *p, Error **error)
{
    bool pending = false;
    Sandbox *s = world_pick_ready(p->in->world, p->pool->obj.uid, skip_member, p);

    if (!s)
        s = pick_warming(p, &pending);
    if (s)
        return claim_add_transfer(p, s, error);
    if (pending && wait_for_member(p))
        return 0;
    return claim_add_cold_create(p, error);
}

int claim_bind(ClaimPass *p, Error **error)
{
    const ObjTrouble *trouble = plan_trouble(p->in, &p->c->obj);
    Sandbox *assigned;

    if (p->c->obj.trouble)
        fail_error(p, p->c->obj.trouble->message);
    if (!names_are_known(p) || !find_pool(p) || !find_template(p) || !wishes_are_granted(p))
        return 0;
    if (trouble) {
        p->retry_ms = trouble->retry_at_ms;
        return 0;
    }
    if (resume_assignment(p, &assigned))
        return transfer_or_wait(p, assigned, error);
    if (name_is_taken(p))
        return 0;
    /* A create that was sent may still take effect: nothing else may be taken then. */
    return creates_own(p->c) ? claim_add_cold_create(p, error) : take_or_make(p, error);
}
