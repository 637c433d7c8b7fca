/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/world.h"

#include "common/base/contract.h"
#include "common/base/str.h"
#include "controller/candidates.h"
#include "controller/names.h"
#include "controller/world_internal.h"

World *world_new(void)
{
    World *w = xnew(World);

    w->interner = interner_new();
    w->candidates = candidates_new();
    w->class_claim = intern(w->interner, "of-claim");
    w->class_pool = intern(w->interner, "of-pool");
    return w;
}

World *world_free(World *w)
{
    if (!w)
        return NULL;
    w->observer = NULL;
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++) {
        for (size_t i = 0; i < w->tables[k].cap; i++) {
            Obj *o = w->tables[k].slots[i];
            if (!o)
                continue;
            world_unlink(w, o);
            obj_free(w->interner, o);
        }
        obj_table_done(&w->tables[k]);
    }
    index_done(&w->children);
    index_done(&w->claims_by_pool);
    index_done(&w->pools_by_template);
    index_done(&w->unowned_sandboxes);
    index_done(&w->unowned_pods);
    index_done(&w->waiters);
    w->candidates = candidates_free(w->candidates);
    intern_unref(w->interner, w->class_claim);
    intern_unref(w->interner, w->class_pool);
    w->interner = interner_free(w->interner);
    free(w);
    return NULL;
}

Interner *world_interner(World *w)
{
    return w->interner;
}

void world_set_observer(World *w, WorldChangeFn fn, void *userdata)
{
    w->observer = fn;
    w->observer_userdata = userdata;
}

static void notify(const World *w, const Obj *before, const Obj *after)
{
    if (w->observer)
        w->observer(before, after, w->observer_userdata);
}

/* Any state of it, gone or not. */
static Obj *find(const World *w, ObjKind kind, const char *ns, const char *name)
{
    return obj_table_get(&w->tables[kind], intern_find(w->interner, ns),
                         intern_find(w->interner, name));
}

Obj *world_get(const World *w, ObjKind kind, const char *ns, const char *name)
{
    Obj *o = find(w, kind, ns, name);

    return o && !o->gone ? o : NULL;
}

Sandbox *world_sandbox(const World *w, const char *ns, const char *name)
{
    return obj_sandbox(world_get(w, OBJ_SANDBOX, ns, name));
}

Claim *world_claim(const World *w, const char *ns, const char *name)
{
    return obj_claim(world_get(w, OBJ_CLAIM, ns, name));
}

Pool *world_pool(const World *w, const char *ns, const char *name)
{
    return obj_pool(world_get(w, OBJ_POOL, ns, name));
}

Template *world_template(const World *w, const char *ns, const char *name)
{
    return obj_template(world_get(w, OBJ_TEMPLATE, ns, name));
}

Pod *world_pod(const World *w, const char *ns, const char *name)
{
    return obj_pod(world_get(w, OBJ_POD, ns, name));
}

Policy *world_policy(const World *w, const char *ns, const char *name)
{
    return obj_policy(world_get(w, OBJ_POLICY, ns, name));
}

size_t world_count(const World *w, ObjKind kind)
{
    return w->tables[kind].len;
}

static void memo_move_claim(Claim *from, Claim *to, int64_t now_ms)
{
    const Condition *was = conditions_get(from->conditions, "Ready");
    const Condition *is = conditions_get(to->conditions, "Ready");

    to->first_seen_ms = from->first_seen_ms;
    to->ready_seen_ms = from->ready_seen_ms;
    to->attempt = TAKE_PTR(from->attempt);
    to->attempt_ms = from->attempt_ms;
    to->warning = from->warning;
    /* What an annotation claims was clamped when it was first seen. */
    if (from->last_activity && str_eq(from->last_activity, to->last_activity))
        to->activity_ms = from->activity_ms;
    if (from->exec_lease && str_eq(from->exec_lease, to->exec_lease))
        to->lease_ms = from->lease_ms;
    if (is && is->status == CONDITION_TRUE && !(was && was->status == CONDITION_TRUE))
        to->ready_seen_ms = now_ms;
}

static void memo_move(Obj *from, Obj *to, int64_t now_ms)
{
    to->inflight = from->inflight;
    to->owner_gone_ms = str_eq(from->owner_uid, to->owner_uid) ? from->owner_gone_ms : 0;
    to->list_epoch = from->list_epoch;
    if (from->generation == to->generation)
        to->trouble = TAKE_PTR(from->trouble);
    switch (to->kind) {
    case OBJ_SANDBOX:
        obj_sandbox(to)->reserved_for = TAKE_PTR(obj_sandbox(from)->reserved_for);
        obj_sandbox(to)->status_due_ms = obj_sandbox(from)->status_due_ms;
        break;
    case OBJ_CLAIM:
        memo_move_claim(obj_claim(from), obj_claim(to), now_ms);
        break;
    case OBJ_POOL:
        obj_pool(to)->pending = TAKE_PTR(obj_pool(from)->pending);
        obj_pool(to)->pending_ms = obj_pool(from)->pending_ms;
        obj_pool(to)->warning = obj_pool(from)->warning;
        obj_pool(to)->status_due_ms = obj_pool(from)->status_due_ms;
        break;
    default:
        break;
    }
}

void world_forsake(Obj *o, int64_t now_ms)
{
    if (!o->owner_gone_ms)
        o->owner_gone_ms = now_ms;
}

/* A UID never comes back. What is in another namespace never had this owner. Pods are watched by a
 * label: one that is not seen any more may only have lost that. */
static void forsake_children(World *w, const Obj *owner, int64_t now_ms)
{
    Obj *child;

    if (owner->kind == OBJ_POD)
        return;
    for (WorldIter it = world_children(w, owner->uid); (child = world_next(&it));)
        if (child->ns == owner->ns)
            world_forsake(child, owner->owner_gone_ms ? owner->owner_gone_ms : now_ms);
}

/* Puts view in the place of old, or adds it. Frees old. */
static void replace(World *w, Obj *old, Obj *view, int64_t now_ms)
{
    bool same = old && str_eq(old->uid, view->uid) && !old->gone;
    bool waiting = same && view->kind == OBJ_CLAIM && obj_claim(old)->waiting;

    if (same)
        memo_move(old, view, now_ms);
    else if (view->kind == OBJ_CLAIM)
        obj_claim(view)->first_seen_ms = now_ms;
    view->list_epoch = w->list_epoch[view->kind];
    if (old && !str_eq(old->uid, view->uid))
        forsake_children(w, old, now_ms);
    world_link(w, old, view);
    obj_table_put(&w->tables[view->kind], view);
    if (waiting)
        world_set_waiting(w, obj_claim(view), true);
    notify(w, old && !old->gone ? old : NULL, view);
    (void)obj_free(w->interner, old);
}

bool world_apply(World *w, Obj *view, int64_t now_ms)
{
    Obj *old = obj_table_get(&w->tables[view->kind], view->ns, view->name);

    if (old && old->rv >= view->rv) {
        /* Seen already, or older than what we know. */
        if (str_eq(old->uid, view->uid))
            old->list_epoch = w->list_epoch[view->kind];
        (void)obj_free(w->interner, view);
        return false;
    }
    if (old && old->gone && str_eq(old->uid, view->uid)) {
        old->list_epoch = w->list_epoch[view->kind];
        (void)obj_free(w->interner, view);
        return false;
    }
    replace(w, old, view, now_ms);
    return true;
}

/* Takes it out for good. */
static void drop(World *w, Obj *o, int64_t now_ms)
{
    bool was_visible = !o->gone;

    forsake_children(w, o, now_ms);
    world_unlink(w, o);
    obj_table_remove(&w->tables[o->kind], o);
    if (was_visible)
        notify(w, o, NULL);
    (void)obj_free(w->interner, o);
}

void world_remove(World *w, ObjKind kind, const char *ns, const char *name, const char *uid,
                  uint64_t rv, int64_t now_ms)
{
    Obj *o = find(w, kind, ns, name);

    if (!o || (uid && !str_eq(o->uid, uid)))
        return;
    if (o->rv > rv && !o->gone)
        return; /* made anew since then */
    drop(w, o, now_ms);
}

void world_mark_gone(World *w, ObjKind kind, const char *ns, const char *name, const char *uid,
                     int64_t now_ms)
{
    Obj *o = find(w, kind, ns, name);

    if (!o || o->gone || (uid && !str_eq(o->uid, uid)))
        return;
    forsake_children(w, o, now_ms);
    world_unlink(w, o);
    o->gone = true;
    notify(w, o, NULL);
}

unsigned world_relist_begin(World *w, ObjKind kind)
{
    return ++w->list_epoch[kind];
}

void world_relist_end(World *w, ObjKind kind, const char *ns, unsigned epoch, uint64_t list_rv,
                      int64_t now_ms)
{
    ObjTable *t = &w->tables[kind];
    size_t n = 0;
    Obj **vanished = xcalloc(t->len + 1, sizeof(Obj *));

    for (size_t i = 0; i < t->cap; i++) {
        Obj *o = t->slots[i];
        if (o && o->list_epoch < epoch && (o->rv <= list_rv || o->gone) &&
            (!ns || str_eq(o->ns, ns)))
            vanished[n++] = o;
    }
    for (size_t i = 0; i < n; i++)
        drop(w, vanished[i], now_ms);
    free(vanished);
}
