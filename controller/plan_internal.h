/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of plans. Private to plan*.c. */
#pragma once

#include "common/json/write.h"
#include "controller/conditions.h"
#include "controller/plan.h"

/* One planner a key kind. The object may be missing: then there is nothing to do. */
typedef int (*PlanFn)(const PlanInput *in, const char *ns, const char *name, Plan *plan,
                      Error **error);
int plan_sandbox(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error);
int plan_claim(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error);
int plan_pool(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error);
int plan_template(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error);
int plan_orphans_of_claims(const PlanInput *in, const char *ns, const char *name, Plan *plan,
                           Error **error);
int plan_orphans_of_pools(const PlanInput *in, const char *ns, const char *name, Plan *plan,
                          Error **error);
int plan_orphans_of_sandboxes(const PlanInput *in, const char *ns, const char *name, Plan *plan,
                              Error **error);

/* 1 where o (may be NULL) is to go because its owner went: nothing else is to be done about it. */
int plan_follow_owner(const PlanInput *in, const Obj *o, Plan *plan, Error **error);

/* An op without a body; valid until the next one is added. target NULL for a create. */
PlanOp *plan_add_op(Plan *plan, PlanVerb verb, ObjKind kind, const char *ns, const char *name,
                    const Obj *target, const char *purpose);
PlanOp *plan_add_op_to(Plan *plan, PlanVerb verb, const Obj *target, const char *purpose);
/* Takes the text over as the body of the op that was added last. */
int plan_body(Plan *plan, Buf *body, Error **error);
/* Of the op that was added last. */
void plan_note(Plan *plan, const char *message, const char *claim, const char *sandbox,
               const char *fmt, ...) _printf_(5, 6);
/* DELETE with UID as precondition, and resourceVersion where the decision rests on more. */
int plan_delete(Plan *plan, const Obj *target, bool check_rv, bool foreground, const char *purpose,
                Error **error);
/* Drops ops and events again. */
void plan_clear_steps(Plan *plan);

/* Begins {"metadata":{"uid":…(,"resourceVersion":…)} and leaves the outer object open. */
JsonWriter plan_patch_begin(Buf *body, const Obj *target, bool check_rv);
/* The same, leaving metadata open as well. */
JsonWriter plan_patch_begin_metadata(Buf *body, const Obj *target, bool check_rv);
/* Ends the outer object and hands the body to the op added last. */
int plan_patch_end(Plan *plan, JsonWriter *w, Buf *body, Error **error);

/* "ownerReferences":[…] with one controller reference. */
void plan_write_owner(JsonWriter *w, const Obj *owner);
/* "key":{…} of a map, nothing where it is empty. */
void plan_write_map(JsonWriter *w, const char *key, const StrPair *pairs, size_t n);
void plan_write_list(JsonWriter *w, const char *key, const StrList *list);

PlanEvent *plan_add_event(Plan *plan, const Obj *about, bool warning, const char *reason,
                          const char *action, const char *fmt, ...) _printf_(6, 7);
/* A Warning about a claim or a pool that is sent once for as long as it holds; at most one a plan.
 */
void plan_warn_once(Plan *plan, const Obj *about, const char *reason, const char *action,
                    const char *fmt, ...) _printf_(5, 6);
void plan_wake_at(Plan *plan, int64_t at_ms); /* TIME_NONE is ignored */
void plan_need_get(Plan *plan, ObjKind kind, const char *ns, const char *name);
void plan_need_list(Plan *plan, ObjKind kind, const char *ns);

/* What was read live in this pass, or NULL. */
const PlanLive *plan_live_get(const PlanInput *in, ObjKind kind, const char *ns, const char *name);
const PlanLive *plan_live_list(const PlanInput *in, ObjKind kind, const char *ns);

/* The trouble of o while it has to be waited out, or NULL. */
const ObjTrouble *plan_trouble(const PlanInput *in, const Obj *o);

/* A small set of pairs under construction; strings are borrowed. */
typedef struct PairSet {
    StrPair *items;
    size_t len, cap;
} PairSet;
void pair_set_put(PairSet *set, const char *key, const char *value); /* NULL value: removes */
void pair_set_put_map(PairSet *set, const StrMap *m);
const char *pair_set_get(const PairSet *set, const char *key);
void pair_set_done(PairSet *set);
#define _cleanup_pairs_ _cleanup_(pair_set_done)
/* Writes "key":{…} with what turns the map `from` into `to`: changed and new values, null for what
 * goes. Writes nothing and returns false where they are equal. */
bool pair_set_write_diff(JsonWriter *w, const char *key, const StrMap *from, const PairSet *to);
bool pair_set_differs(const StrMap *from, const PairSet *to);

/* "spec":{…} of a Sandbox that is made from this template. */
void plan_write_blueprint(JsonWriter *w, const Template *t, const PairSet *labels,
                          const PairSet *annotations);
