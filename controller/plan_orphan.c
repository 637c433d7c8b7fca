/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left behind by an owner. Normally the garbage collector deletes it within a moment; but
 * it is slow where much is to be done, and blind to new kinds for half a minute. So what was seen
 * to lose its owner, and is still there a little later, is deleted here.
 *
 * Orphans: what a controller made for an owner that is gone, and that the garbage collector leaves
 * alone, because somebody deleted the owner with its children to be kept. One pass looks at all
 * suspects of a namespace against one complete live list of the possible owners: what is not in
 * there is proved to be gone. Nothing is deleted while any cache is behind, and each delete carries
 * UID and resourceVersion. What no controller made is reported and left, unless configured.
 */
#include "controller/plan_internal.h"

#include "common/base/hashmap.h"
#include "common/base/str.h"
#include "controller/names.h"

/* The garbage collector's turn. */
#define FOLLOW_DELAY_MS 2000

/* Sure of the UID alone: with its children to be kept, the owner goes after the references to it
 * are taken away, which makes this version an old one. */
int plan_follow_owner(const PlanInput *in, const Obj *o, Plan *plan, Error **error)
{
    int64_t due;
    int r;

    if (!o || !o->owner_gone_ms || o->n_owners != 1 || o->deleting)
        return 0;
    due = o->owner_gone_ms + FOLLOW_DELAY_MS;
    if (in->now_ms < due && in->now_ms >= o->owner_gone_ms) {
        plan_wake_at(plan, due);
        return 1;
    }
    if (o->inflight > 0) {
        /* The answer wakes the key of its owner, which is not always where a Pod is looked for. */
        plan_wake_at(plan, in->now_ms + FOLLOW_DELAY_MS);
        return 1;
    }
    r = plan_delete(plan, o, true, false, "owner-gone", error);
    if (r < 0)
        return r;
    plan_note(plan, "left behind and collected",
              o->owner_kind == OWNER_CLAIM ? o->owner_name : NULL, o->name,
              "the garbage collector left this %s alone when its %s went",
              obj_resource(o->kind)->kind, o->owner_kind_name ? o->owner_kind_name : "owner");
    return 1;
}

/* How a suspect says whose it was, and which member of the list that would be. */
typedef struct OrphanRule {
    ObjKind owners;
    const char *label;
    bool by_uid;      /* the label is the owner's UID, else the hash of its name */
    const char *gone; /* for the event */
} OrphanRule;

static const OrphanRule claim_rule = {OBJ_CLAIM, LABEL_CLAIM_UID, true,
                                      "the SandboxClaim it was bound to"};
static const OrphanRule pool_rule = {OBJ_POOL, LABEL_WARM_POOL, false,
                                     "the SandboxWarmPool it was made for"};
static const OrphanRule sandbox_rule = {OBJ_SANDBOX, LABEL_NAME_HASH, false, "its Sandbox"};

static bool is_suspect(const Obj *o)
{
    if (o->deleting || o->n_owners > 0 || o->inflight > 0)
        return false;
    return o->kind != OBJ_POD || strmap_get(obj_pod(o)->labels, LABEL_TEMPLATE_REF);
}

static const char *mark_of(const OrphanRule *rule, const Obj *o)
{
    return strmap_get(o->kind == OBJ_POD ? obj_pod(o)->labels : obj_sandbox(o)->labels,
                      rule->label);
}

/* The owners that live, by what suspects carry of them. */
static Hashmap *living_marks(const OrphanRule *rule, const PlanLive *live)
{
    static char present;
    Hashmap *marks = hashmap_new();

    for (size_t i = 0; i < live->n_items; i++) {
        NameHash hash = name_hash_of(live->items[i].name);
        (void)hashmap_put(marks, rule->by_uid ? live->items[i].uid : hash.s, &present);
    }
    return marks;
}

static int judge(const PlanInput *in, const OrphanRule *rule, const Hashmap *living, const Obj *o,
                 Plan *plan, Error **error)
{
    const char *kind = obj_resource(o->kind)->kind;
    int r;

    if (!is_suspect(o) || hashmap_get(living, mark_of(rule, o)))
        return 0;
    if (!o->made_by_controller && !in->config->delete_unmarked) {
        plan_add_event(plan, o, true, "OrphanFound", "Reporting",
                       "%s has no owner and %s no longer exists; it was not made by a controller, "
                       "so it is left alone",
                       kind, rule->gone);
        return 0;
    }
    r = plan_delete(plan, o, true, false, "orphan", error);
    if (r < 0)
        return r;
    plan_note(plan, "orphan collected", NULL, o->name,
              "this %s has no owner, and %s no longer exists", kind, rule->gone);
    plan_add_event(plan, o, false, "OrphanCollected", "Deleting",
                   "Deleting %s: it has no owner, and %s no longer exists", kind, rule->gone)
        ->op = plan->n_ops;
    return 0;
}

/* all: the iteration over the namespace's suspects, taken twice. */
static int plan_orphans(const PlanInput *in, const char *ns, const OrphanRule *rule, WorldIter all,
                        Plan *plan, Error **error)
{
    _cleanup_(hashmap_freep) Hashmap *living = NULL;
    const PlanLive *live;
    bool any = false;
    WorldIter it = all;
    const Obj *o;

    if (!in->config->collect_orphans || !in->synced)
        return 0;
    while ((o = world_next(&it)) && !any)
        any = is_suspect(o);
    if (!any)
        return 0;
    live = plan_live_list(in, rule->owners, ns);
    if (!live) {
        plan_need_list(plan, rule->owners, ns);
        return 0;
    }
    living = living_marks(rule, live);
    for (it = all; (o = world_next(&it));) {
        int r = judge(in, rule, living, o, plan, error);
        if (r < 0)
            return r;
    }
    return 0;
}

int plan_orphans_of_claims(const PlanInput *in, const char *ns, _unused_ const char *name,
                           Plan *plan, Error **error)
{
    return plan_orphans(in, ns, &claim_rule, world_unowned_sandboxes(in->world, ns, true), plan,
                        error);
}

int plan_orphans_of_pools(const PlanInput *in, const char *ns, _unused_ const char *name,
                          Plan *plan, Error **error)
{
    return plan_orphans(in, ns, &pool_rule, world_unowned_sandboxes(in->world, ns, false), plan,
                        error);
}

int plan_orphans_of_sandboxes(const PlanInput *in, const char *ns, _unused_ const char *name,
                              Plan *plan, Error **error)
{
    return plan_orphans(in, ns, &sandbox_rule, world_unowned_pods(in->world, ns), plan, error);
}
