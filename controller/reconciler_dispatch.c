/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys a change concerns. */
#include "common/base/str.h"
#include "controller/candidates.h"
#include "controller/names.h"
#include "controller/reconciler_internal.h"

#include <string.h>

/* Orphans are judged by a live list: what comes close together shares one. */
#define ORPHAN_DELAY_MS 500

void reconciler_enqueue_kind(Reconciler *r, KeyKind kind, const char *ns, const char *name)
{
    _cleanup_free_ char *key = NULL;

    if (str_empty(name))
        return;
    key = key_format(kind, ns, name);
    workqueue_add(r->queue, key);
}

static void enqueue_orphans(Reconciler *r, KeyKind kind, const char *ns)
{
    _cleanup_free_ char *key = key_format(kind, ns, "");

    workqueue_add_at(r->queue, key, r->now_ms + ORPHAN_DELAY_MS);
}

static void note_pool_stock(Reconciler *r, const Sandbox *s)
{
    static char present;
    _cleanup_free_ char *key = NULL;

    if (!sandbox_is_adoptable(s) || !sandbox_is_ready(s))
        return;
    key = xasprintf("%s/%s", s->obj.ns, s->obj.owner_name);
    (void)hashmap_put(r->wake, key, &present);
}

/* The key of what controls it, or NULL. */
static char *owner_key(const Obj *o)
{
    static const KeyKind kinds[] = {
        [OWNER_SANDBOX] = KEY_SANDBOX,
        [OWNER_CLAIM] = KEY_CLAIM,
        [OWNER_POOL] = KEY_POOL,
        [OWNER_TEMPLATE] = KEY_TEMPLATE,
    };

    if (o->owner_kind == OWNER_NONE || o->owner_kind == OWNER_OTHER || str_empty(o->owner_name))
        return NULL;
    return key_format(kinds[o->owner_kind], o->ns, o->owner_name);
}

static void enqueue_owner(Reconciler *r, const Obj *o)
{
    _cleanup_free_ char *key = owner_key(o);

    if (key)
        workqueue_add(r->queue, key);
}

void reconciler_enqueue_around(Reconciler *r, const Obj *o, const char *except)
{
    static const KeyKind kinds[OBJ_KIND_MAX] = {
        [OBJ_SANDBOX] = KEY_SANDBOX,   [OBJ_CLAIM] = KEY_CLAIM,  [OBJ_POOL] = KEY_POOL,
        [OBJ_TEMPLATE] = KEY_TEMPLATE, [OBJ_POD] = KEY_KIND_MAX, [OBJ_POLICY] = KEY_KIND_MAX,
    };
    _cleanup_free_ char *own = NULL, *owner = owner_key(o);

    if (kinds[o->kind] != KEY_KIND_MAX)
        own = key_format(kinds[o->kind], o->ns, o->name);
    if (own && !str_eq(own, except))
        workqueue_add(r->queue, own);
    if (owner && !str_eq(owner, except))
        workqueue_add(r->queue, owner);
}

static void suspect_sandbox(Reconciler *r, const Sandbox *s)
{
    if (s->obj.owner_kind != OWNER_NONE)
        return;
    if (strmap_get(s->labels, LABEL_CLAIM_UID))
        enqueue_orphans(r, KEY_ORPHANS_OF_CLAIMS, s->obj.ns);
    else if (strmap_get(s->labels, LABEL_WARM_POOL))
        enqueue_orphans(r, KEY_ORPHANS_OF_POOLS, s->obj.ns);
}

static void sandbox_changed(Reconciler *r, const Obj *before, const Obj *after)
{
    const Obj *any = after ? after : before;

    reconciler_enqueue_kind(r, KEY_SANDBOX, any->ns, any->name);
    if (before)
        enqueue_owner(r, before);
    if (after) {
        enqueue_owner(r, after);
        suspect_sandbox(r, obj_sandbox(after));
        note_pool_stock(r, obj_sandbox(after));
        return;
    }
    /* A claim may wait for the name, and a Pod may have lost its Sandbox. */
    if (world_claim(r->world, any->ns, any->name))
        reconciler_enqueue_kind(r, KEY_CLAIM, any->ns, any->name);
    enqueue_orphans(r, KEY_ORPHANS_OF_SANDBOXES, any->ns);
}

/* What was there is gone, perhaps with a namesake in its place. */
static bool has_gone(const Obj *before, const Obj *after)
{
    return before && (!after || !str_eq(before->uid, after->uid));
}

static void release_later(Reconciler *r, const Claim *c)
{
    if (!c->attempt)
        return;
    r->released = xreallocarray(r->released, r->n_released + 1, sizeof(char *));
    r->released[r->n_released++] = xasprintf("%s/%s", c->obj.ns, c->attempt);
}

static void claim_changed(Reconciler *r, const Obj *before, const Obj *after)
{
    const Obj *any = after ? after : before;

    reconciler_enqueue_kind(r, KEY_CLAIM, any->ns, any->name);
    if (has_gone(before, after)) {
        enqueue_orphans(r, KEY_ORPHANS_OF_CLAIMS, any->ns);
        release_later(r, obj_claim(before));
    }
}

static void enqueue_unbound_claims(Reconciler *r, const char *ns, const char *pool)
{
    const Obj *o;

    for (WorldIter it = world_claims_of_pool(r->world, ns, pool); (o = world_next(&it));)
        if (!o->deleting && !obj_claim(o)->status_sandbox)
            reconciler_enqueue_kind(r, KEY_CLAIM, ns, o->name);
}

static void pool_changed(Reconciler *r, const Obj *before, const Obj *after)
{
    const Obj *any = after ? after : before;

    reconciler_enqueue_kind(r, KEY_POOL, any->ns, any->name);
    if (!before || !after || before->generation != after->generation)
        enqueue_unbound_claims(r, any->ns, any->name);
    if (has_gone(before, after))
        enqueue_orphans(r, KEY_ORPHANS_OF_POOLS, any->ns);
}

static void template_changed(Reconciler *r, const Obj *before, const Obj *after)
{
    const Obj *any = after ? after : before, *pool, *claim;

    reconciler_enqueue_kind(r, KEY_TEMPLATE, any->ns, any->name);
    for (WorldIter it = world_pools_of_template(r->world, any->ns, any->name);
         (pool = world_next(&it));) {
        reconciler_enqueue_kind(r, KEY_POOL, any->ns, pool->name);
        if (before)
            continue;
        for (WorldIter all = world_claims_of_pool(r->world, any->ns, pool->name);
             (claim = world_next(&all));)
            reconciler_enqueue_kind(r, KEY_CLAIM, any->ns, claim->name);
    }
}

static void pod_changed(Reconciler *r, const Obj *before, const Obj *after)
{
    const Obj *any = after ? after : before;

    if (!any)
        return;
    if (before)
        enqueue_owner(r, before);
    if (after)
        enqueue_owner(r, after);
    if (any->owner_kind == OWNER_SANDBOX && str_eq(any->owner_name, any->name))
        return;
    /* Not the Sandbox's own: it may stand in its way, or wait for adoption, or be an orphan. */
    if (world_sandbox(r->world, any->ns, any->name))
        reconciler_enqueue_kind(r, KEY_SANDBOX, any->ns, any->name);
    else if (after && after->owner_kind == OWNER_NONE)
        enqueue_orphans(r, KEY_ORPHANS_OF_SANDBOXES, any->ns);
}

static void policy_changed(Reconciler *r, const Obj *before, const Obj *after)
{
    static const char suffix[] = "-network-policy";
    const Obj *any = after ? after : before;
    size_t len = strlen(any->name);

    if (before)
        enqueue_owner(r, before);
    if (after)
        enqueue_owner(r, after);
    if (!str_ends_with(any->name, suffix))
        return;
    _cleanup_free_ char *name = xstrndup(any->name, len - (sizeof(suffix) - 1));
    if (world_template(r->world, any->ns, name))
        reconciler_enqueue_kind(r, KEY_TEMPLATE, any->ns, name);
}

/* They are to follow their owner. A Pod is looked for under the key of a Sandbox of its name. */
static void enqueue_children(Reconciler *r, const Obj *owner)
{
    const Obj *child;

    for (WorldIter it = world_children(r->world, owner->uid); (child = world_next(&it));)
        if (child->kind == OBJ_SANDBOX || child->kind == OBJ_POD)
            reconciler_enqueue_kind(r, KEY_SANDBOX, child->ns, child->name);
}

void reconciler_on_change(const Obj *before, const Obj *after, void *userdata)
{
    static void (*const changed[OBJ_KIND_MAX])(Reconciler *, const Obj *, const Obj *) = {
        [OBJ_SANDBOX] = sandbox_changed, [OBJ_CLAIM] = claim_changed,
        [OBJ_POOL] = pool_changed,       [OBJ_TEMPLATE] = template_changed,
        [OBJ_POD] = pod_changed,         [OBJ_POLICY] = policy_changed,
    };

    changed[after ? after->kind : before->kind](userdata, before, after);
    if (has_gone(before, after))
        enqueue_children(userdata, before);
}

void reconciler_enqueue_all(Reconciler *r)
{
    static const struct {
        ObjKind obj;
        KeyKind key;
    } kinds[] = {{OBJ_SANDBOX, KEY_SANDBOX},
                 {OBJ_CLAIM, KEY_CLAIM},
                 {OBJ_POOL, KEY_POOL},
                 {OBJ_TEMPLATE, KEY_TEMPLATE}};
    const Obj *o;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        for (WorldIter it = world_all(r->world, kinds[i].obj); (o = world_next(&it));)
            reconciler_enqueue_kind(r, kinds[i].key, o->ns, o->name);
    for (WorldIter it = world_all(r->world, OBJ_POD); (o = world_next(&it));)
        if (o->owner_gone_ms)
            reconciler_enqueue_kind(r, KEY_SANDBOX, o->ns, o->name);
}

void reconciler_sweep(Reconciler *r)
{
    const Obj *o;

    for (WorldIter it = world_all(r->world, OBJ_SANDBOX); (o = world_next(&it));)
        suspect_sandbox(r, obj_sandbox(o));
    for (WorldIter it = world_all(r->world, OBJ_POD); (o = world_next(&it));)
        if (o->owner_kind == OWNER_NONE)
            enqueue_orphans(r, KEY_ORPHANS_OF_SANDBOXES, o->ns);
}

/* "ns/name" → its parts. */
static char *split_pair(const char *pair, const char **ret_name)
{
    const char *slash = strchr(pair, '/');

    *ret_name = slash + 1;
    return xstrndup(pair, (size_t)(slash - pair));
}

static void wake_pool(Reconciler *r, const char *ns, const char *name)
{
    const Pool *pool = world_pool(r->world, ns, name);
    size_t n = pool ? world_ready_count(r->world, pool->obj.uid) : 0;
    Claim *c;

    while (n-- > 0 && (c = world_first_waiter(r->world, ns, name))) {
        world_set_waiting(r->world, c, false);
        reconciler_enqueue_kind(r, KEY_CLAIM, ns, c->obj.name);
    }
}

void reconciler_wake_waiters(Reconciler *r)
{
    hashmap_foreach (it, r->wake) {
        const char *name;
        _cleanup_free_ char *ns = split_pair(it.key, &name);
        wake_pool(r, ns, name);
        (void)hashmap_remove(r->wake, it.key);
    }
}

void reconciler_release_reservations(Reconciler *r)
{
    for (size_t i = 0; i < r->n_released; i++) {
        const char *name;
        _cleanup_free_ char *ns = split_pair(r->released[i], &name);
        Sandbox *s = world_sandbox(r->world, ns, name);
        if (s && s->reserved_for)
            world_reserve(r->world, s, NULL);
        free(r->released[i]);
    }
    free(r->released);
    r->released = NULL;
    r->n_released = 0;
}
