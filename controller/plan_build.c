/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/plan_internal.h"

#include "common/base/contract.h"
#include "common/base/str.h"
#include "common/kube/client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define RV_MAX 24

PlanOp *plan_add_op(Plan *plan, PlanVerb verb, ObjKind kind, const char *ns, const char *name,
                    const Obj *target, const char *purpose)
{
    PlanOp *op;

    plan->ops = xreallocarray(plan->ops, plan->n_ops + 1, sizeof(PlanOp));
    op = &plan->ops[plan->n_ops++];
    *op = (PlanOp){
        .verb = verb,
        .kind = kind,
        .ns = xstrdup(ns),
        .name = xstrdup(name),
        .uid = target ? xstrdup(target->uid) : NULL,
        .purpose = purpose,
    };
    return op;
}

PlanOp *plan_add_op_to(Plan *plan, PlanVerb verb, const Obj *target, const char *purpose)
{
    return plan_add_op(plan, verb, target->kind, target->ns, target->name, target, purpose);
}

int plan_body(Plan *plan, Buf *body, Error **error)
{
    PlanOp *op = &plan->ops[plan->n_ops - 1];
    int r = buf_check(body, "the body of an API write", error);

    if (r < 0)
        return r;
    op->body = buf_take(body, &op->body_len);
    return 0;
}

int plan_delete(Plan *plan, const Obj *target, bool check_rv, bool foreground, const char *purpose,
                Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    char rv[RV_MAX];

    (void)snprintf(rv, sizeof(rv), "%" PRIu64, target->rv);
    kube_delete_options(&body, target->uid, check_rv ? rv : NULL,
                        foreground ? "Foreground" : "Background");
    plan_add_op_to(plan, PLAN_DELETE, target, purpose)->foreground = foreground;
    return plan_body(plan, &body, error);
}

void plan_note(Plan *plan, const char *message, const char *claim, const char *sandbox,
               const char *fmt, ...)
{
    PlanNote *note = &plan->ops[plan->n_ops - 1].note;
    va_list ap;

    *note = (PlanNote){
        .message = message, .claim = xstrdup_null(claim), .sandbox = xstrdup_null(sandbox)};
    va_start(ap, fmt);
    if (vasprintf(&note->cause, fmt, ap) < 0)
        note->cause = NULL;
    va_end(ap);
}

static void op_done(PlanOp *op)
{
    free(op->note.claim);
    free(op->note.sandbox);
    free(op->note.cause);
    free(op->ns);
    free(op->name);
    free(op->uid);
    free(op->body);
    free(op->reserve_for);
}

static void event_done(PlanEvent *e)
{
    free(e->ns);
    free(e->name);
    free(e->uid);
    free(e->message);
    free(e->annotations_json);
}

void plan_clear_steps(Plan *plan)
{
    for (size_t i = 0; i < plan->n_ops; i++)
        op_done(&plan->ops[i]);
    for (size_t i = 0; i < plan->n_events; i++)
        event_done(&plan->events[i]);
    free(plan->ops);
    free(plan->events);
    plan->ops = NULL;
    plan->events = NULL;
    plan->n_ops = plan->n_events = 0;
}

JsonWriter plan_patch_begin_metadata(Buf *body, const Obj *target, bool check_rv)
{
    JsonWriter w = json_writer(body);
    char rv[RV_MAX];

    jw_object(&w);
    jw_key(&w, "metadata");
    jw_object(&w);
    jw_kv_str(&w, "uid", target->uid);
    (void)snprintf(rv, sizeof(rv), "%" PRIu64, target->rv);
    if (check_rv)
        jw_kv_str(&w, "resourceVersion", rv);
    return w;
}

JsonWriter plan_patch_begin(Buf *body, const Obj *target, bool check_rv)
{
    JsonWriter w = plan_patch_begin_metadata(body, target, check_rv);

    jw_object_end(&w);
    return w;
}

int plan_patch_end(Plan *plan, JsonWriter *w, Buf *body, Error **error)
{
    jw_object_end(w);
    return plan_body(plan, body, error);
}

void plan_write_owner(JsonWriter *w, const Obj *owner)
{
    jw_key(w, "ownerReferences");
    jw_array(w);
    jw_object(w);
    jw_kv_str(w, "apiVersion", obj_api_version(owner->kind));
    jw_kv_str(w, "kind", obj_resource(owner->kind)->kind);
    jw_kv_str(w, "name", owner->name);
    jw_kv_str(w, "uid", owner->uid);
    jw_kv_bool(w, "controller", true);
    jw_kv_bool(w, "blockOwnerDeletion", true);
    jw_object_end(w);
    jw_array_end(w);
}

void plan_write_map(JsonWriter *w, const char *key, const StrPair *pairs, size_t n)
{
    if (n == 0)
        return;
    jw_key(w, key);
    jw_object(w);
    for (size_t i = 0; i < n; i++)
        jw_kv_str(w, pairs[i].key, pairs[i].value);
    jw_object_end(w);
}

void plan_write_list(JsonWriter *w, const char *key, const StrList *list)
{
    jw_key(w, key);
    if (!list) {
        jw_null(w);
        return;
    }
    jw_array(w);
    for (size_t i = 0; i < list->len; i++)
        jw_str(w, list->items[i]);
    jw_array_end(w);
}

PlanEvent *plan_add_event(Plan *plan, const Obj *about, bool warning, const char *reason,
                          const char *action, const char *fmt, ...)
{
    PlanEvent *e;
    char *message = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&message, fmt, ap) < 0)
        message = xstrdup(reason);
    va_end(ap);
    plan->events = xreallocarray(plan->events, plan->n_events + 1, sizeof(PlanEvent));
    e = &plan->events[plan->n_events++];
    *e = (PlanEvent){
        .kind = about->kind,
        .ns = xstrdup(about->ns),
        .name = xstrdup(about->name),
        .uid = xstrdup(about->uid),
        .rv = about->rv,
        .warning = warning,
        .reason = reason,
        .action = action,
        .message = message,
    };
    return e;
}

void plan_warn_once(Plan *plan, const Obj *about, const char *reason, const char *action,
                    const char *fmt, ...)
{
    const uint64_t *given = obj_warning(about);
    _cleanup_free_ char *message = NULL;
    va_list ap;

    CONTRACT(given);
    va_start(ap, fmt);
    if (vasprintf(&message, fmt, ap) < 0)
        message = xstrdup(reason);
    va_end(ap);
    plan->memo.warning = str_hash64(message);
    if (*given != plan->memo.warning)
        plan_add_event(plan, about, true, reason, action, "%s", message)->warning_hash =
            plan->memo.warning;
}

void plan_wake_at(Plan *plan, int64_t at_ms)
{
    if (at_ms != TIME_NONE && (plan->wake_ms == TIME_NONE || at_ms < plan->wake_ms))
        plan->wake_ms = at_ms;
}

static void need(Plan *plan, PlanNeedType type, ObjKind kind, const char *ns, const char *name)
{
    plan_clear_steps(plan);
    free(plan->need.ns);
    free(plan->need.name);
    plan->need = (PlanNeed){type, kind, xstrdup(ns), xstrdup_null(name)};
}

void plan_need_get(Plan *plan, ObjKind kind, const char *ns, const char *name)
{
    need(plan, NEED_GET, kind, ns, name);
}

void plan_need_list(Plan *plan, ObjKind kind, const char *ns)
{
    need(plan, NEED_LIST, kind, ns, NULL);
}

static const PlanLive *live_find(const PlanInput *in, PlanNeedType type, ObjKind kind,
                                 const char *ns, const char *name)
{
    for (size_t i = in->n_live; i > 0; i--) {
        const PlanLive *live = &in->live[i - 1];
        if (live->type == type && live->kind == kind && str_eq(live->ns, ns) &&
            str_eq(live->name, name))
            return live;
    }
    return NULL;
}

const PlanLive *plan_live_get(const PlanInput *in, ObjKind kind, const char *ns, const char *name)
{
    return live_find(in, NEED_GET, kind, ns, name);
}

const PlanLive *plan_live_list(const PlanInput *in, ObjKind kind, const char *ns)
{
    return live_find(in, NEED_LIST, kind, ns, NULL);
}

/* Longer than any back-off: what is further ahead was set before the wall clock was put back. */
#define TROUBLE_AHEAD_MAX_MS (10 * 60 * 1000)

const ObjTrouble *plan_trouble(const PlanInput *in, const Obj *o)
{
    const ObjTrouble *t = o->trouble;

    if (!t || in->now_ms >= t->retry_at_ms || t->retry_at_ms - in->now_ms > TROUBLE_AHEAD_MAX_MS)
        return NULL;
    return t;
}

void plan_done(Plan *plan)
{
    plan_clear_steps(plan);
    free(plan->need.ns);
    free(plan->need.name);
    *plan = (Plan){.wake_ms = TIME_NONE};
}
