/* SPDX-License-Identifier: Apache-2.0 */
/* What each answer means: to the World, to the key's object, to the pass that asked (plan.h). */
#include "common/base/str.h"
#include "controller/model_parse.h"
#include "controller/names.h"
#include "controller/reconciler_internal.h"

#define TROUBLE_BASE_MS 1000
#define TROUBLE_MAX_MS (60 * 1000)
#define NAMESPACE_GOING_MS (30 * 1000)

static void refresh(Flight *f, size_t op_index)
{
    const PlanOp *op = &f->plan.ops[op_index];
    const Obj *known = world_get(f->r->world, op->kind, op->ns, op->name);
    uint64_t ticket =
        reconciler_request_new(f, REQUEST_REFRESH, op_index, known ? known->uid : NULL);

    f->r->stats.gets++;
    f->r->options.port.get(ticket, op->kind, op->ns, op->name, f->r->options.port.userdata);
}

static void take_answer(Reconciler *r, const PlanOp *op, const ApiResult *result)
{
    bool is_object = result->object && json_get(result->object, "metadata") &&
                     !str_eq(json_str(result->object, "kind"), "Status");

    if (op->verb != PLAN_DELETE) {
        if (is_object)
            reconciler_take(r, op->kind, result->object);
        return;
    }
    /* An object that only starts to go says so; anything else means that it is gone. */
    if (is_object && json_str(result->object, "metadata.deletionTimestamp"))
        reconciler_take(r, op->kind, result->object);
    else
        world_mark_gone(r->world, op->kind, op->ns, op->name, op->uid, r->now_ms);
}

static void remember_refusal(Flight *f, const ApiResult *result)
{
    Reconciler *r = f->r;
    Obj *o = flight_obj(f);
    unsigned failures = o && o->trouble ? o->trouble->failures : 0;
    int64_t delay = TROUBLE_BASE_MS;

    if (!o)
        return;
    for (unsigned i = 0; i < failures && delay < TROUBLE_MAX_MS; i++)
        delay *= 2;
    if (delay > TROUBLE_MAX_MS)
        delay = TROUBLE_MAX_MS;
    if (str_eq(result->reason, "NamespaceTerminating"))
        delay = NAMESPACE_GOING_MS;
    world_set_trouble(r->world, o, result->message, result->reason, r->now_ms + delay);
}

/* A claim must not look for another Sandbox while it is open whether it got this one; the
 * reservation of a transfer's Sandbox holds for as long. */
static void settle_transfer(Flight *f, const PlanOp *op, ApiOutcome outcome)
{
    World *w = f->r->world;
    Sandbox *s = world_sandbox(w, op->ns, op->name);
    Claim *c = flight_claim(f);

    if (!op->reserve_for)
        return;
    if (outcome == API_UNKNOWN && c && str_eq(c->obj.uid, op->reserve_for)) {
        world_set_attempt(w, c, op->name, f->r->now_ms);
        return;
    }
    if (s && str_eq(s->reserved_for, op->reserve_for))
        world_reserve(w, s, NULL);
    if (c && str_eq(c->attempt, op->name))
        world_set_attempt(w, c, NULL, f->r->now_ms);
}

static void settle_creation(Flight *f, const PlanOp *op, ApiOutcome outcome)
{
    Pool *pool = flight_pool(f);

    if (!pool || op->verb != PLAN_CREATE)
        return;
    if (outcome == API_UNKNOWN)
        pool->pending_ms = f->r->now_ms;
    else
        world_pool_pending(f->r->world, pool, op->name, false);
}

static void settle_open(Flight *f, size_t i, ApiOutcome outcome)
{
    /* A request that was not applied says nothing about an earlier one. */
    if (f->was_open[i] && (outcome == API_RETRY || outcome == API_REFUSED))
        return;
    settle_creation(f, &f->plan.ops[i], outcome);
    settle_transfer(f, &f->plan.ops[i], outcome);
}

/* What the key is about went while it was being given this child: no event of the owner's tells of
 * that any more. The UID is one that the plan has seen, as the answer has it from the request. */
static void forsake_if_late(const Flight *f, const PlanOp *op, const JsonValue *answer)
{
    const JsonValue *refs = json_path(answer, "metadata.ownerReferences");
    const char *given = json_str(json_array_at(refs, 0), "uid");
    Obj *o = world_get(f->r->world, op->kind, op->ns, op->name);
    const Obj *owner = flight_obj(f);

    if (!given || !o || !str_eq(o->owner_uid, given) || (owner && str_eq(owner->uid, given)))
        return;
    world_forsake(o, f->r->now_ms);
    reconciler_enqueue_kind(f->r, KEY_SANDBOX, o->ns, o->name);
}

static void settle_op(Flight *f, size_t i, const ApiResult *result)
{
    const PlanOp *op = &f->plan.ops[i];
    Obj *o;

    settle_open(f, i, result->outcome);
    switch (result->outcome) {
    case API_OK:
        f->op_ok[i] = true;
        take_answer(f->r, op, result);
        if (op->verb == PLAN_CREATE || op->reserve_for)
            forsake_if_late(f, op, result->object);
        o = op->guarded ? flight_obj(f) : NULL;
        if (o)
            world_clear_trouble(f->r->world, o);
        return;
    case API_NOT_FOUND:
        if (op->verb != PLAN_CREATE) {
            world_mark_gone(f->r->world, op->kind, op->ns, op->name, op->uid, f->r->now_ms);
            f->conflict = true;
            return;
        }
        break; /* its namespace is gone: refused */
    case API_RETRY:
        f->failed = true;
        if (result->retry_after_ms > f->retry_after_ms)
            f->retry_after_ms = result->retry_after_ms;
        return;
    case API_CONFLICT:
    case API_EXISTS:
        f->conflict = true;
        refresh(f, i);
        return;
    case API_UNKNOWN:
        f->failed = true;
        refresh(f, i);
        return;
    default:
        break;
    }
    if (op->guarded)
        remember_refusal(f, result);
    else
        f->failed = true;
    if (op->verb != PLAN_CREATE)
        refresh(f, i);
}

/* Whoever wanted to write to this object while the answer was out has waited for it. */
static void enqueue_waiting(const Flight *f, const PlanOp *op)
{
    const Obj *o = flight_op_target(f->r, op);

    if (o && o->inflight == 0)
        reconciler_enqueue_around(f->r, o, f->key);
}

void reconciler_op_done(Reconciler *r, uint64_t ticket, const ApiResult *result)
{
    Request *q = reconciler_request_take(r, ticket);
    const PlanOp *op;
    Flight *f;
    Obj *target;

    if (!q)
        return;
    f = q->flight;
    op = &f->plan.ops[q->op];
    r->stats.outcomes[result->outcome]++;
    if (r->options.port.op_done)
        r->options.port.op_done(f->key, op, result, r->options.port.userdata);
    target = flight_op_target(r, op);
    if (target && target->inflight > 0)
        world_inflight(r->world, target, -1);
    settle_op(f, q->op, result);
    enqueue_waiting(f, op);
    reconciler_request_free(q);
    if (f->outstanding == 0)
        flight_finish(f);
}

/* A live answer about one name, into the World. */
static bool take_live(Reconciler *r, const Request *q, ObjKind kind, const char *ns,
                      const char *name, const ApiResult *result)
{
    if (result->outcome == API_OK && result->object) {
        reconciler_take(r, kind, result->object);
        return true;
    }
    if (result->outcome != API_NOT_FOUND)
        return false;
    if (q->uid)
        world_mark_gone(r->world, kind, ns, name, q->uid, r->now_ms);
    return true;
}

static void refresh_done(Flight *f, const Request *q, const ApiResult *result)
{
    const PlanOp *op = &f->plan.ops[q->op];
    Sandbox *s;

    if (!take_live(f->r, q, op->kind, op->ns, op->name, result))
        f->failed = true;
    flight_settle_pending(f);
    s = op->reserve_for ? world_sandbox(f->r->world, op->ns, op->name) : NULL;
    if (s && s->reserved_for && s->obj.owner_kind != OWNER_POOL)
        world_reserve(f->r->world, s, NULL); /* it has found its claim */
    if (f->outstanding == 0)
        flight_finish(f);
}

static void need_done(Flight *f, const Request *q, const ApiResult *result)
{
    PlanLive *live = &f->live[f->n_live - 1];

    if (!take_live(f->r, q, live->kind, live->ns, live->name, result)) {
        f->retry_after_ms = result->retry_after_ms;
        flight_fail(f);
        return;
    }
    live->found = result->outcome == API_OK;
    live->object = result->object;
    flight_plan(f);
}

void reconciler_get_done(Reconciler *r, uint64_t ticket, const ApiResult *result)
{
    Request *q = reconciler_request_take(r, ticket);

    if (!q)
        return;
    if (q->type == REQUEST_REFRESH)
        refresh_done(q->flight, q, result);
    else
        need_done(q->flight, q, result);
    reconciler_request_free(q);
}

void reconciler_list_item(Reconciler *r, uint64_t ticket, const JsonValue *doc)
{
    Request *q = reconciler_request_find(r, ticket);
    const char *name = json_str(doc, "metadata.name"), *uid = json_str(doc, "metadata.uid");

    if (!q || !name || !uid)
        return;
    if ((q->n_items & (q->n_items - 1)) == 0)
        q->items = xreallocarray(q->items, q->n_items ? q->n_items * 2 : 1, sizeof(PlanLiveItem));
    q->items[q->n_items++] = (PlanLiveItem){xstrdup(name), xstrdup(uid)};
}

/* The flight takes the items over. */
static void list_done(Flight *f, Request *q)
{
    PlanLive *live = &f->live[f->n_live - 1];

    f->items[f->n_live - 1] = TAKE_PTR(q->items);
    live->items = f->items[f->n_live - 1];
    live->n_items = q->n_items;
    q->n_items = 0;
    live->found = true;
    flight_plan(f);
}

void reconciler_list_done(Reconciler *r, uint64_t ticket, const ApiResult *result)
{
    Request *q = reconciler_request_take(r, ticket);

    if (!q)
        return;
    if (result->outcome != API_OK) {
        q->flight->retry_after_ms = result->retry_after_ms;
        flight_fail(q->flight);
    } else {
        list_done(q->flight, q);
    }
    reconciler_request_free(q);
}
