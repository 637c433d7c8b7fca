/* SPDX-License-Identifier: Apache-2.0 */
/* Relations between views: entering, leaving, looking up; and the memo, as far as it is indexed. */
#include "controller/world_internal.h"

#include "common/base/contract.h"
#include "common/base/str.h"
#include "controller/names.h"

#include <string.h>

/* A relation that an object takes part in: the list it is in and the key of that list. */
typedef struct Relation {
    Index *index;
    const char *a, *b;
    List *link;
} Relation;

#define RELATIONS_MAX 2

/* Sandboxes that nobody controls fall into two classes: what they were made for. */
static size_t unowned_relation(World *w, Sandbox *s, Relation *out)
{
    const char *class = strmap_get(s->labels, LABEL_CLAIM_UID)   ? w->class_claim
                        : strmap_get(s->labels, LABEL_WARM_POOL) ? w->class_pool
                                                                 : NULL;

    if (!class)
        return 0;
    *out = (Relation){&w->unowned_sandboxes, s->obj.ns, class, &s->unowned};
    return 1;
}

static size_t relations_of(World *w, Obj *o, Relation *out)
{
    size_t n = 0;

    if (o->gone)
        return 0;
    if (o->owner_uid)
        out[n++] = (Relation){&w->children, o->owner_uid, NULL, &o->by_owner};
    switch (o->kind) {
    case OBJ_SANDBOX:
        if (o->owner_kind == OWNER_NONE)
            n += unowned_relation(w, obj_sandbox(o), &out[n]);
        break;
    case OBJ_CLAIM:
        if (obj_claim(o)->pool)
            out[n++] =
                (Relation){&w->claims_by_pool, o->ns, obj_claim(o)->pool, &obj_claim(o)->by_pool};
        break;
    case OBJ_POOL:
        if (obj_pool(o)->template_name)
            out[n++] = (Relation){&w->pools_by_template, o->ns, obj_pool(o)->template_name,
                                  &obj_pool(o)->by_template};
        break;
    case OBJ_POD:
        if (o->owner_kind == OWNER_NONE && strmap_get(obj_pod(o)->labels, LABEL_NAME_HASH))
            out[n++] = (Relation){&w->unowned_pods, o->ns, NULL, &obj_pod(o)->unowned};
        break;
    default:
        break;
    }
    return n;
}

void world_unlink(World *w, Obj *o)
{
    Relation relations[RELATIONS_MAX];
    size_t n = relations_of(w, o, relations);

    for (size_t i = 0; i < n; i++)
        index_remove(relations[i].index, relations[i].a, relations[i].b, relations[i].link);
    if (o->kind == OBJ_SANDBOX)
        candidates_remove(w->candidates, obj_sandbox(o));
    if (o->kind == OBJ_CLAIM)
        world_set_waiting(w, obj_claim(o), false);
}

void world_link(World *w, Obj *old, Obj *o)
{
    Relation relations[RELATIONS_MAX];
    size_t n;

    if (o->kind == OBJ_SANDBOX)
        candidates_update(w->candidates, obj_sandbox(old), obj_sandbox(o));
    if (old)
        world_unlink(w, old);
    n = relations_of(w, o, relations);
    for (size_t i = 0; i < n; i++)
        index_add(relations[i].index, relations[i].a, relations[i].b, relations[i].link);
}

static WorldIter bucket_iter(const Bucket *bucket, size_t link_offset)
{
    return (WorldIter){
        .head = bucket ? &bucket->members : NULL,
        .pos = bucket ? bucket->members.next : NULL,
        .link_offset = link_offset,
    };
}

static const Bucket *bucket_find(const World *w, const Index *x, const char *a, const char *b)
{
    const char *ia = intern_find(w->interner, a), *ib = intern_find(w->interner, b);

    return (b && !ib) ? NULL : index_get(x, ia, ib);
}

static Obj *next_of_kind(WorldIter *it)
{
    const ObjTable *t = &it->all->tables[it->kind];

    while (it->slot < t->cap) {
        Obj *o = t->slots[it->slot++];
        if (o && !o->gone)
            return o;
    }
    return NULL;
}

Obj *world_next(WorldIter *it)
{
    const List *pos = it->pos;

    if (it->all)
        return next_of_kind(it);
    if (!pos || pos == it->head)
        return NULL;
    it->pos = pos->next;
    return (Obj *)((uintptr_t)pos - it->link_offset);
}

WorldIter world_all(const World *w, ObjKind kind)
{
    return (WorldIter){.all = w, .kind = kind};
}

WorldIter world_children(const World *w, const char *owner_uid)
{
    return bucket_iter(bucket_find(w, &w->children, owner_uid, NULL), offsetof(Obj, by_owner));
}

WorldIter world_claims_of_pool(const World *w, const char *ns, const char *pool)
{
    return bucket_iter(bucket_find(w, &w->claims_by_pool, ns, pool), offsetof(Claim, by_pool));
}

WorldIter world_pools_of_template(const World *w, const char *ns, const char *template_name)
{
    return bucket_iter(bucket_find(w, &w->pools_by_template, ns, template_name),
                       offsetof(Pool, by_template));
}

WorldIter world_unowned_sandboxes(const World *w, const char *ns, bool by_claim)
{
    return bucket_iter(index_get(&w->unowned_sandboxes, intern_find(w->interner, ns),
                                 by_claim ? w->class_claim : w->class_pool),
                       offsetof(Sandbox, unowned));
}

WorldIter world_unowned_pods(const World *w, const char *ns)
{
    return bucket_iter(bucket_find(w, &w->unowned_pods, ns, NULL), offsetof(Pod, unowned));
}

Sandbox *world_pick_ready(const World *w, const char *pool_uid, WorldSkipFn skip, void *userdata)
{
    return candidates_pick(w->candidates, intern_find(w->interner, pool_uid), skip, userdata);
}

WorldIter world_warming(const World *w, const char *pool_uid)
{
    const List *head = candidates_warming(w->candidates, intern_find(w->interner, pool_uid));

    return (WorldIter){
        .head = head,
        .pos = head ? head->next : NULL,
        .link_offset = offsetof(Sandbox, candidate),
    };
}

size_t world_ready_count(const World *w, const char *pool_uid)
{
    return candidates_ready(w->candidates, intern_find(w->interner, pool_uid));
}

static void candidate_refresh(World *w, Sandbox *s)
{
    candidates_update(w->candidates, s, s);
}

void world_inflight(World *w, Obj *o, int delta)
{
    CONTRACT(delta > 0 || o->inflight > 0);
    o->inflight += (unsigned)delta;
    if (o->kind == OBJ_SANDBOX)
        candidate_refresh(w, obj_sandbox(o));
}

void world_reserve(World *w, Sandbox *s, const char *claim_uid)
{
    intern_unref(w->interner, s->reserved_for);
    s->reserved_for = intern(w->interner, claim_uid);
    candidate_refresh(w, s);
}

void world_set_attempt(World *w, Claim *c, const char *sandbox, int64_t now_ms)
{
    c->attempt_ms = now_ms;
    intern_unref(w->interner, c->attempt);
    c->attempt = intern(w->interner, sandbox);
}

void world_set_trouble(_unused_ World *w, Obj *o, const char *message, const char *reason,
                       int64_t retry_at_ms)
{
    unsigned failures = o->trouble ? o->trouble->failures : 0;

    obj_trouble_clear(o);
    o->trouble = xnew(ObjTrouble);
    o->trouble->message = xstrdup(message ? message : "");
    o->trouble->reason = xstrdup_null(reason);
    o->trouble->retry_at_ms = retry_at_ms;
    o->trouble->failures = failures + 1;
}

void world_clear_trouble(_unused_ World *w, Obj *o)
{
    obj_trouble_clear(o);
}

void world_pool_pending(World *w, Pool *p, const char *name, bool pending)
{
    size_t n = 0, len = p->pending ? p->pending->len : 0;
    const char **names = xcalloc(len + 1, sizeof(char *));
    const StrList *old = p->pending;

    for (size_t i = 0; i < len; i++)
        if (!str_eq(old->items[i], name))
            names[n++] = old->items[i];
    if (pending)
        names[n++] = name;
    p->pending = strlist_new(w->interner, names, n);
    (void)strlist_free(w->interner, old);
    free(names);
}

void world_set_waiting(World *w, Claim *c, bool waiting)
{
    if (waiting == c->waiting)
        return;
    c->waiting = waiting;
    if (waiting)
        index_add(&w->waiters, c->obj.ns, c->pool, &c->waiters);
    else
        index_remove(&w->waiters, c->obj.ns, c->pool, &c->waiters);
}

Claim *world_first_waiter(const World *w, const char *ns, const char *pool)
{
    WorldIter it = bucket_iter(bucket_find(w, &w->waiters, ns, pool), offsetof(Claim, waiters));

    return obj_claim(world_next(&it));
}
