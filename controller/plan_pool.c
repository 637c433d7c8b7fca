/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A warm pool keeps its number of Sandboxes waiting. Its members are what its own UID controls;
 * those that are terminating, and those whose creation was sent and not answered, count until they
 * are settled, so that there are never more than asked for.
 */
#include "controller/plan_internal.h"

#include "common/base/str.h"
#include "controller/candidates.h"
#include "controller/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How long a status write waits for members that are starting. */
#define STATUS_DELAY_MS 3000

typedef struct Census {
    const Sandbox **active; /* members to keep */
    size_t n_active, n_ready, n_terminating, n_unschedulable;
    size_t n_pending; /* creations with unknown outcome */
    size_t n_deleted; /* by this step */
    int64_t recheck_ms;
} Census;

static void census_done(Census *c)
{
    free(c->active);
}

static bool is_busy(const Sandbox *s)
{
    return s->obj.inflight > 0 || s->reserved_for;
}

static bool is_stale(const Sandbox *s, const Template *t)
{
    return !str_eq(strmap_get(s->labels, LABEL_TEMPLATE_REF), name_hash_of(t->obj.name).s) ||
           s->blueprint_hash != t->blueprint_hash;
}

static bool is_unschedulable(const PlanInput *in, const Sandbox *s)
{
    const Pod *pod = world_pod(in->world, s->obj.ns, s->obj.name);

    return pod && !pod->obj.deleting && pod->has_scheduled && pod->scheduled == CONDITION_FALSE &&
           str_eq(pod->scheduled_reason, "Unschedulable");
}

static void recheck_at(Census *c, int64_t at)
{
    if (c->recheck_ms == TIME_NONE || at < c->recheck_ms)
        c->recheck_ms = at;
}

/* A member that does not become ready is replaced, unless a new one would fare no better. */
static bool is_stuck(const PlanInput *in, const Sandbox *s, Census *c)
{
    int64_t patience = s->obj.created_ms + in->config->readiness_grace_ms;

    if (sandbox_is_ready(s))
        return false;
    if (in->now_ms <= patience) {
        recheck_at(c, patience + 1);
        return false;
    }
    if (!is_unschedulable(in, s))
        return true;
    c->n_unschedulable++;
    recheck_at(c, in->now_ms + in->config->unschedulable_recheck_ms);
    return false;
}

static int delete_member(const Sandbox *s, const char *purpose, Plan *plan, Census *c,
                         Error **error)
{
    c->n_terminating++;
    c->n_deleted++;
    return plan_delete(plan, &s->obj, true, false, purpose, error);
}

static int count_member(const PlanInput *in, const Pool *p, const Template *t, const Sandbox *s,
                        Plan *plan, Census *c, Error **error)
{
    if (s->obj.deleting) {
        c->n_terminating++;
        return 0;
    }
    if (!is_busy(s) && p->recreate && t && is_stale(s, t))
        return delete_member(s, "pool-rollout", plan, c, error);
    if (!is_busy(s) && is_stuck(in, s, c))
        return delete_member(s, "pool-stuck", plan, c, error);
    c->active[c->n_active++] = s;
    c->n_ready += sandbox_is_ready(s);
    return 0;
}

static int take_census(const PlanInput *in, const Pool *p, const Template *t, Plan *plan, Census *c,
                       Error **error)
{
    size_t cap = 0;
    const Obj *o;
    int r = 0;

    *c = (Census){.recheck_ms = TIME_NONE, .n_pending = p->pending ? p->pending->len : 0};
    for (WorldIter it = world_children(in->world, p->obj.uid); (o = world_next(&it)) && r >= 0;) {
        if (o->kind != OBJ_SANDBOX)
            continue;
        if (c->n_active == cap) {
            cap = cap ? cap * 2 : 64;
            c->active = xreallocarray(c->active, cap, sizeof(*c->active));
        }
        r = count_member(in, p, t, obj_sandbox(o), plan, c, error);
    }
    return r;
}

static void member_metadata(const PlanInput *in, const Pool *p, const Template *t, PairSet *labels,
                            PairSet *template_labels, PairSet *template_annotations,
                            NameHash hashes[2])
{
    hashes[0] = name_hash_of(p->obj.name);
    hashes[1] = name_hash_of(t->obj.name);
    pair_set_put_map(template_labels, t->pod_labels);
    pair_set_put(template_labels, LABEL_WARM_POOL, hashes[0].s);
    pair_set_put(template_labels, LABEL_TEMPLATE_REF, hashes[1].s);
    pair_set_put(template_labels, LABEL_TEMPLATE_HASH, t->blueprint_label);
    pair_set_put(template_labels, LABEL_POD_TEMPLATE_HASH, t->pod_template_label);
    pair_set_put_map(template_annotations, t->pod_annotations);
    if (in->config->warm_pool_eviction &&
        !pair_set_get(template_annotations, ANNOTATION_SAFE_TO_EVICT))
        pair_set_put(template_annotations, ANNOTATION_SAFE_TO_EVICT, "true");
    pair_set_put(labels, LABEL_WARM_POOL, hashes[0].s);
    pair_set_put(labels, LABEL_TEMPLATE_REF, hashes[1].s);
    pair_set_put(labels, LABEL_TEMPLATE_HASH, t->blueprint_label);
    pair_set_put(labels, LABEL_POD_TEMPLATE_HASH, t->pod_template_label);
    pair_set_put(labels, LABEL_LAUNCH_TYPE, "warm");
    pair_set_put(labels, LABEL_CREATED_BY, "controller");
}

static int create_member(const PlanInput *in, const Pool *p, const Template *t, const char *name,
                         Plan *plan, Error **error)
{
    _cleanup_pairs_ PairSet labels = {0}, template_labels = {0}, template_annotations = {0};
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    const StrPair annotation = {ANNOTATION_TEMPLATE_REF, t->obj.name};
    JsonWriter w = json_writer(&body);
    NameHash hashes[2];

    member_metadata(in, p, t, &labels, &template_labels, &template_annotations, hashes);
    jw_object(&w);
    jw_kv_str(&w, "apiVersion", obj_api_version(OBJ_SANDBOX));
    jw_kv_str(&w, "kind", "Sandbox");
    jw_key(&w, "metadata");
    jw_object(&w);
    jw_kv_str(&w, "name", name);
    jw_kv_str(&w, "namespace", p->obj.ns);
    plan_write_map(&w, "labels", labels.items, labels.len);
    plan_write_map(&w, "annotations", &annotation, 1);
    plan_write_owner(&w, &p->obj);
    jw_object_end(&w);
    plan_write_blueprint(&w, t, &template_labels, &template_annotations);
    plan_add_op(plan, PLAN_CREATE, OBJ_SANDBOX, p->obj.ns, name, NULL, "pool-create")->guarded =
        true;
    return plan_patch_end(plan, &w, &body, error);
}

/* A name that nothing has and that this step does not use already. */
static char *free_name(const PlanInput *in, const Pool *p, const Plan *plan, uint64_t *random)
{
    for (;;) {
        char *name = pool_member_name(p->obj.name, random);
        bool taken = world_sandbox(in->world, p->obj.ns, name) ||
                     world_pod(in->world, p->obj.ns, name) ||
                     world_claim(in->world, p->obj.ns, name);
        for (size_t i = 0; i < plan->n_ops && !taken; i++)
            taken = str_eq(plan->ops[i].name, name);
        if (!taken)
            return name;
        free(name);
    }
}

/* The outcome of these is not known: the same names again settle it. */
static int repeat_pending(const PlanInput *in, const Pool *p, const Template *t, Plan *plan,
                          Error **error)
{
    for (size_t i = 0; p->pending && i < p->pending->len; i++) {
        int r = create_member(in, p, t, p->pending->items[i], plan, error);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool can_create(const PlanInput *in, const Pool *p, const Template *t, Plan *plan)
{
    const ObjTrouble *trouble = plan_trouble(in, &p->obj);

    if (trouble)
        plan_wake_at(plan, trouble->retry_at_ms);
    return !trouble && t && !t->has_volume_claims && t->service != SERVICE_TRUE;
}

static int grow(const PlanInput *in, const Pool *p, const Template *t, const Census *c, Plan *plan,
                Error **error)
{
    int64_t total = (int64_t)(c->n_active + c->n_terminating + c->n_pending);
    int64_t want = p->replicas - total;
    uint64_t random = in->random;
    int r;

    if ((want <= 0 && c->n_pending == 0) || !can_create(in, p, t, plan))
        return 0;
    if (want > in->config->pool_batch_max)
        want = in->config->pool_batch_max;
    r = repeat_pending(in, p, t, plan, error);
    for (int64_t i = 0; i < want && r >= 0; i++) {
        _cleanup_free_ char *name = free_name(in, p, plan, &random);
        r = create_member(in, p, t, name, plan, error);
    }
    return r;
}

/* What goes first: not ready, then newest. */
static int by_worth(const void *a, const void *b)
{
    const Sandbox *sa = *(const Sandbox *const *)a, *sb = *(const Sandbox *const *)b;
    bool ra = sandbox_is_ready(sa), rb = sandbox_is_ready(sb);

    if (ra != rb)
        return ra ? 1 : -1;
    if (sa->obj.created_ms != sb->obj.created_ms)
        return sa->obj.created_ms > sb->obj.created_ms ? -1 : 1;
    return strcmp(sa->obj.name, sb->obj.name);
}

static int shrink(const PlanInput *in, const Pool *p, Census *c, Plan *plan, Error **error)
{
    int64_t excess = (int64_t)c->n_active - p->replicas;

    if (excess <= 0 || !c->active)
        return 0;
    if (excess > in->config->pool_batch_max)
        excess = in->config->pool_batch_max;
    qsort(c->active, c->n_active, sizeof(*c->active), by_worth);
    for (size_t i = 0; i < c->n_active && excess > 0; i++) {
        int r;
        if (is_busy(c->active[i]))
            continue;
        r = delete_member(c->active[i], "pool-shrink", plan, c, error);
        if (r < 0)
            return r;
        excess--;
    }
    return 0;
}

static int write_status(const Pool *p, const Census *c, const char *selector, Plan *plan,
                        Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w = plan_patch_begin(&body, &p->obj, true);

    plan_add_op_to(plan, PLAN_PATCH_STATUS, &p->obj, "pool-status");
    jw_key(&w, "status");
    jw_object(&w);
    jw_kv_int(&w, "replicas", (int64_t)c->n_active);
    jw_kv_int(&w, "readyReplicas", (int64_t)c->n_ready);
    jw_kv_str(&w, "selector", selector);
    jw_kv_int(&w, "observedGeneration", p->obj.generation);
    jw_object_end(&w);
    return plan_patch_end(plan, &w, &body, error);
}

/* Numbers of a pool that is on its way to another state wait a little for that state. */
static int plan_status(const PlanInput *in, const Pool *p, const Census *c, Plan *plan,
                       Error **error)
{
    bool settled = c->n_ready == c->n_active && (int64_t)c->n_active == p->replicas;
    int64_t due = p->status_due_ms;
    char selector[128];

    (void)snprintf(selector, sizeof(selector), "%s=%s", LABEL_WARM_POOL,
                   name_hash_of(p->obj.name).s);
    if (p->status_replicas == (int64_t)c->n_active && p->status_ready == (int64_t)c->n_ready &&
        str_eq(p->status_selector, selector) && p->status_observed_generation == p->obj.generation)
        return 0;
    if (due == TIME_NONE || due > in->now_ms + STATUS_DELAY_MS)
        due = in->now_ms + STATUS_DELAY_MS;
    if (!settled && p->status_observed_generation == p->obj.generation && in->now_ms < due) {
        plan->memo.status_due_ms = due;
        plan_wake_at(plan, due);
        return 0;
    }
    return write_status(p, c, selector, plan, error);
}

/* Says why the pool makes nothing. False: the template has to be read live first, since the watch
 * of templates may be behind that of pools. */
static bool report_template(const PlanInput *in, const Pool *p, const Template *t, Plan *plan)
{
    const char *name = p->template_name ? p->template_name : "";

    if (t && (t->has_volume_claims || t->service == SERVICE_TRUE)) {
        plan_warn_once(plan, &p->obj, "WarmPoolNotProgressing", "Creating",
                       "cannot create Sandboxes: %s of SandboxTemplate \"%s\" is not supported by "
                       "this version of the controller",
                       t->has_volume_claims ? "spec.volumeClaimTemplates" : "spec.service", name);
        return true;
    }
    if (t)
        return true;
    plan_warn_once(
        plan, &p->obj, "TemplateNotFound", "Reconciling",
        "SandboxTemplate \"%s\" not found: no Sandboxes are made; those that exist stay, "
        "without a NetworkPolicy of the template",
        name);
    if (plan->memo.warning == p->warning || str_empty(name) ||
        plan_live_get(in, OBJ_TEMPLATE, p->obj.ns, name))
        return true;
    plan_need_get(plan, OBJ_TEMPLATE, p->obj.ns, name);
    return false;
}

static void report_obstacles(const Pool *p, const Census *c, const PlanInput *in, Plan *plan)
{
    if (p->obj.trouble)
        plan_add_event(plan, &p->obj, true, "WarmPoolNotProgressing", "Creating",
                       "cannot create Sandboxes: %s", p->obj.trouble->message);
    if (c->n_unschedulable > 0)
        plan_add_event(plan, &p->obj, true, "WarmPoolNotProgressing", "Reconciling",
                       "%zu/%" PRId64 " sandboxes are unschedulable past the %" PRId64
                       "s readiness grace period; holding them instead of replacing (replacements "
                       "would be equally unschedulable)",
                       c->n_unschedulable, p->replicas, in->config->readiness_grace_ms / 1000);
}

int plan_pool(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error)
{
    const Pool *p = world_pool(in->world, ns, name);
    const Template *t;
    _cleanup_(census_done) Census c = {0};
    int r;

    if (!p || p->obj.deleting)
        return 0;
    t = p->template_name ? world_template(in->world, ns, p->template_name) : NULL;
    r = take_census(in, p, t, plan, &c, error);
    if (r < 0)
        return r;
    report_obstacles(p, &c, in, plan);
    if (!report_template(in, p, t, plan))
        return 0;
    plan_wake_at(plan, c.recheck_ms);
    r = (int64_t)c.n_active > p->replicas ? shrink(in, p, &c, plan, error)
                                          : grow(in, p, t, &c, plan, error);
    if (r < 0 || plan->n_ops > 0)
        return r; /* the numbers follow when this is answered */
    return plan_status(in, p, &c, plan, error);
}
