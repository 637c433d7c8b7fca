/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The World: all views, by key and by the relations that planning needs, so that a plan costs the
 * size of the change and never the size of the cluster. Fed by watches and, at once, by the answers
 * to our own writes.
 *
 * Staleness: an object is replaced only by a higher resourceVersion. So a write's answer counts
 * immediately, and the watch events that were on their way before it change nothing. A lower
 * version with another UID is the past of a namesake and is ignored as well. What was proved to be
 * gone (a 404, a delete that took effect) is marked `gone`: invisible to look-ups, kept until the
 * watch confirms it, so that late events of it do not bring it back.
 *
 * What leaves the World is gone for good by its UID, so its children are told when (owner_gone_ms),
 * before the observer is called. Not so a Pod: it may have lost the label that it is watched by.
 *
 * Look-ups never return what is gone. Pointers are valid until the next change of that object.
 * Single-threaded.
 */
#pragma once

#include "controller/model.h"

typedef struct World World;

World *world_new(void) _warn_unused_;
World *world_free(World *w);
Interner *world_interner(World *w);

/* Called after every change; before NULL: it is new; after NULL: it is gone. Both are borrowed for
 * the call. The observer must not change the World. */
typedef void (*WorldChangeFn)(const Obj *before, const Obj *after, void *userdata);
void world_set_observer(World *w, WorldChangeFn fn, void *userdata);

/* Takes the view over. Returns true where it was news. now_ms dates what is seen first. */
bool world_apply(World *w, Obj *view, int64_t now_ms);
/* A watch says it is deleted. uid NULL: whichever has the name. */
void world_remove(World *w, ObjKind kind, const char *ns, const char *name, const char *uid,
                  uint64_t rv, int64_t now_ms);
/* A live answer proves that this UID (NULL: any object of the name) no longer exists. */
void world_mark_gone(World *w, ObjKind kind, const char *ns, const char *name, const char *uid,
                     int64_t now_ms);

/* A complete new list of one kind, in one namespace or (ns NULL) all: begin, world_apply for each
 * item, end with the number that begin gave and the list's version; whatever was not mentioned in
 * between and is not newer than the list goes. */
unsigned world_relist_begin(World *w, ObjKind kind);
void world_relist_end(World *w, ObjKind kind, const char *ns, unsigned epoch, uint64_t list_rv,
                      int64_t now_ms);

/* Look-ups by name. */
Sandbox *world_sandbox(const World *w, const char *ns, const char *name);
Claim *world_claim(const World *w, const char *ns, const char *name);
Pool *world_pool(const World *w, const char *ns, const char *name);
Template *world_template(const World *w, const char *ns, const char *name);
Pod *world_pod(const World *w, const char *ns, const char *name);
Policy *world_policy(const World *w, const char *ns, const char *name);
Obj *world_get(const World *w, ObjKind kind, const char *ns, const char *name);
size_t world_count(const World *w, ObjKind kind);

/* Iteration over a relation: for (WorldIter it = world_children(w, uid); (o = world_next(&it));).
 * The World must not change meanwhile. */
typedef struct WorldIter {
    const List *head, *pos;
    size_t link_offset;
    const World *all; /* iteration over a whole kind */
    ObjKind kind;
    size_t slot;
} WorldIter;
Obj *world_next(WorldIter *it);
WorldIter world_all(const World *w, ObjKind kind);
/* What has this UID as controller: Pods of a Sandbox, Sandboxes of a claim or pool, … */
WorldIter world_children(const World *w, const char *owner_uid);
WorldIter world_claims_of_pool(const World *w, const char *ns, const char *pool);
WorldIter world_pools_of_template(const World *w, const char *ns, const char *template_name);
/* What nobody controls in a namespace: Sandboxes with a claim-uid label (by_claim), Sandboxes with
 * a warm-pool label and no claim-uid, Pods with the tracking label. */
WorldIter world_unowned_sandboxes(const World *w, const char *ns, bool by_claim);
WorldIter world_unowned_pods(const World *w, const char *ns);

/* Members of a pool that can be handed out now: owned by its UID, adoptable, Ready, not deleting,
 * with no write of ours under way and not reserved. The best one by node spread, then by time of
 * becoming available; skip (may be NULL) rejects one. NULL where there is none. */
typedef bool (*WorldSkipFn)(const Sandbox *s, void *userdata);
Sandbox *world_pick_ready(const World *w, const char *pool_uid, WorldSkipFn skip, void *userdata);
/* Adoptable members that are not ready, oldest first. */
WorldIter world_warming(const World *w, const char *pool_uid);
size_t world_ready_count(const World *w, const char *pool_uid);

/* Memo (model.h). All of these re-index what they touch. */
void world_inflight(World *w, Obj *o, int delta);
void world_reserve(World *w, Sandbox *s, const char *claim_uid /* NULL: release */);
void world_set_attempt(World *w, Claim *c, const char *sandbox /* or NULL */, int64_t now_ms);
void world_set_trouble(World *w, Obj *o, const char *message, const char *reason,
                       int64_t retry_at_ms);
void world_clear_trouble(World *w, Obj *o);
void world_pool_pending(World *w, Pool *p, const char *name, bool pending);
void world_set_waiting(World *w, Claim *c, bool waiting);
/* What controls it was gone before it came. */
void world_forsake(Obj *o, int64_t now_ms);
/* A claim that waits for a member of this pool, longest first, or NULL. */
Claim *world_first_waiter(const World *w, const char *ns, const char *pool);
