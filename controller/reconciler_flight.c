/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on their way: sending ops and live reads, and what each answer means (plan.h). */
#include "common/base/str.h"
#include "controller/model_parse.h"
#include "controller/names.h"
#include "controller/reconciler_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* Passes that wrote something, without one in between that had nothing to do. */
#define STREAK_MAX 100
#define CONFLICTS_MAX 3
/* No request whose answer was lost takes effect later than this. */
#define OPEN_MAX_MS (120 * 1000)
#define TROUBLE_BASE_MS 1000
#define TROUBLE_MAX_MS (60 * 1000)
#define NAMESPACE_GOING_MS (30 * 1000)

typedef struct TicketText {
    char s[24];
} TicketText;

static TicketText ticket_text(uint64_t ticket)
{
    TicketText t;

    (void)snprintf(t.s, sizeof(t.s), "%" PRIu64, ticket);
    return t;
}

static uint64_t request_new(Flight *f, RequestType type, size_t op, const char *uid)
{
    Reconciler *r = f->r;
    Request *q = xnew(Request);
    uint64_t ticket = ++r->next_ticket;

    q->flight = f;
    q->type = type;
    q->op = op;
    q->uid = xstrdup_null(uid);
    (void)hashmap_put(r->requests, ticket_text(ticket).s, q);
    f->outstanding++;
    r->inflight++;
    return ticket;
}

static void items_free(PlanLiveItem *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(items[i].name);
        free(items[i].uid);
    }
    free(items);
}

static void request_free(Request *q)
{
    items_free(q->items, q->n_items);
    free(q->uid);
    free(q);
}

/* Takes the request off the books; NULL where the ticket is not known or of another type. */
static Request *request_take(Reconciler *r, uint64_t ticket)
{
    Request *q = hashmap_remove(r->requests, ticket_text(ticket).s);

    if (!q)
        return NULL;
    q->flight->outstanding--;
    r->inflight--;
    return q;
}

static Flight *flight_free(Flight *f)
{
    plan_done(&f->plan);
    for (size_t i = 0; i < f->n_live; i++) {
        free(f->live[i].ns);
        free(f->live[i].name);
        items_free(f->items[i], f->live[i].n_items);
    }
    free(f->op_ok);
    free(f->was_open);
    free(f->key);
    free(f->ns);
    free(f->name);
    free(f);
    return NULL;
}

void reconciler_flights_free(Reconciler *r)
{
    hashmap_foreach (it, r->requests) {
        Request *q = it.value;
        Flight *f = q->flight;
        request_free(q);
        if (--f->outstanding == 0)
            flight_free(f);
        (void)hashmap_remove(r->requests, it.key);
    }
    r->inflight = 0;
}

/* The object that a key is about, where it is about one. */
static Obj *key_obj(const Flight *f)
{
    static const struct {
        bool one;
        ObjKind kind;
    } of[KEY_KIND_MAX] = {
        [KEY_SANDBOX] = {true, OBJ_SANDBOX},
        [KEY_CLAIM] = {true, OBJ_CLAIM},
        [KEY_POOL] = {true, OBJ_POOL},
        [KEY_TEMPLATE] = {true, OBJ_TEMPLATE},
    };

    return of[f->kind].one ? world_get(f->r->world, of[f->kind].kind, f->ns, f->name) : NULL;
}

static Pool *key_pool(const Flight *f)
{
    return f->kind == KEY_POOL ? world_pool(f->r->world, f->ns, f->name) : NULL;
}

static Claim *key_claim(const Flight *f)
{
    return f->kind == KEY_CLAIM ? world_claim(f->r->world, f->ns, f->name) : NULL;
}

/* The op's target as the World has it, if it is still the same. */
static Obj *op_target(const Reconciler *r, const PlanOp *op)
{
    Obj *o = op->uid ? world_get(r->world, op->kind, op->ns, op->name) : NULL;

    return o && str_eq(o->uid, op->uid) ? o : NULL;
}

static Streak *streak_of(Reconciler *r, const char *key)
{
    Streak *s = hashmap_get(r->streaks, key);

    if (s)
        return s;
    s = xnew(Streak);
    (void)hashmap_put(r->streaks, key, s);
    return s;
}

static void streak_end(Reconciler *r, const char *key)
{
    free(hashmap_remove(r->streaks, key));
}

/* From here on it has been given. */
static void remember_warning(Reconciler *r, const PlanEvent *e)
{
    const Obj *o = e->warning_hash ? world_get(r->world, e->kind, e->ns, e->name) : NULL;

    if (o && str_eq(o->uid, e->uid))
        *obj_warning(o) = e->warning_hash;
}

static void send_events(Flight *f)
{
    bool all = true;

    for (size_t i = 0; i < f->plan.n_ops; i++)
        all = all && f->op_ok[i];
    for (size_t i = 0; i < f->plan.n_events; i++) {
        const PlanEvent *e = &f->plan.events[i];
        if (e->op == 0 ? !all : !f->op_ok[e->op - 1])
            continue;
        f->r->stats.events++;
        f->r->options.port.event(e, f->r->options.port.userdata);
        remember_warning(f->r, e);
    }
}

/* Nothing is left to do for now. */
static void finish_quiet(Flight *f)
{
    Reconciler *r = f->r;
    Claim *c = key_claim(f);

    send_events(f);
    if (c && c->attempt && !f->plan.memo.keep_attempt) {
        /* The transfer of unknown outcome is no longer wanted. */
        Sandbox *s = world_sandbox(r->world, f->ns, c->attempt);
        if (s && str_eq(s->reserved_for, c->obj.uid))
            world_reserve(r->world, s, NULL);
        world_set_attempt(r->world, c, NULL, r->now_ms);
    }
    streak_end(r, f->key);
    if (f->plan.wake_ms != TIME_NONE)
        workqueue_add_at(r->queue, f->key, f->plan.wake_ms);
    workqueue_done(r->queue, f->key);
    workqueue_forget_failures(r->queue, f->key);
    flight_free(f);
}

/* Has the key planned again, after a while where that is called for. */
static void requeue(Flight *f)
{
    Reconciler *r = f->r;
    Streak *s = streak_of(r, f->key);
    bool spinning = ++s->passes > STREAK_MAX;

    s->conflicts = f->conflict ? s->conflicts + 1 : 0;
    if (spinning) {
        r->stats.spins++;
        s->passes = 0;
    }
    if (f->retry_after_ms > 0)
        workqueue_add_at(r->queue, f->key, r->now_ms + f->retry_after_ms);
    else if (f->failed || spinning || s->conflicts > CONFLICTS_MAX)
        workqueue_add_failed(r->queue, f->key, r->now_ms, reconciler_jitter(r));
    else
        workqueue_add(r->queue, f->key);
}

static void finish(Flight *f)
{
    Reconciler *r = f->r;

    send_events(f);
    if (!f->failed && !f->conflict)
        workqueue_forget_failures(r->queue, f->key);
    requeue(f);
    workqueue_done(r->queue, f->key);
    flight_free(f);
}

static void fail(Flight *f)
{
    f->failed = true;
    plan_done(&f->plan);
    finish(f);
}

static bool is_recent(const Reconciler *r, int64_t ms)
{
    return r->now_ms - ms < OPEN_MAX_MS && ms - r->now_ms < OPEN_MAX_MS;
}

/* Whether an earlier request for the same thing may still take effect. */
static bool is_open(const Flight *f, const PlanOp *op)
{
    const Pool *p = key_pool(f);
    const Claim *c = key_claim(f);

    if ((p && !is_recent(f->r, p->pending_ms)) || (c && !is_recent(f->r, c->attempt_ms)))
        return false;
    for (size_t i = 0; p && p->pending && i < p->pending->len; i++)
        if (op->verb == PLAN_CREATE && str_eq(p->pending->items[i], op->name))
            return true;
    return c && op->reserve_for && str_eq(c->attempt, op->name);
}

static void submit_op(Flight *f, size_t i)
{
    Reconciler *r = f->r;
    const PlanOp *op = &f->plan.ops[i];
    Obj *target = op_target(r, op);
    Pool *pool = key_pool(f);
    uint64_t ticket = request_new(f, REQUEST_OP, i, op->uid);

    if (target)
        world_inflight(r->world, target, +1);
    f->was_open[i] = is_open(f, op);
    if (target && op->reserve_for) /* not for a create */
        world_reserve(r->world, obj_sandbox(target), op->reserve_for);
    if (pool && op->verb == PLAN_CREATE)
        world_pool_pending(r->world, pool, op->name, true);
    r->stats.ops++;
    r->options.port.submit(ticket, op, r->options.port.userdata);
}

static void submit_all(Flight *f)
{
    size_t n = f->plan.n_ops;

    f->op_ok = xcalloc(n, sizeof(bool));
    f->was_open = xcalloc(n, sizeof(bool));
    f->outstanding++; /* keeps the flight until all are sent */
    for (size_t i = 0; i < n; i++)
        submit_op(f, i);
    f->outstanding--;
}

static void submit_need(Flight *f)
{
    Reconciler *r = f->r;
    const PlanNeed *need = &f->plan.need;
    const Obj *known;

    if (f->n_live > 0)
        f->live[f->n_live - 1].object = NULL; /* it was borrowed for that round */
    f->live[f->n_live++] = (PlanLive){.type = need->type,
                                      .kind = need->kind,
                                      .ns = xstrdup(need->ns),
                                      .name = xstrdup_null(need->name)};
    if (need->type == NEED_LIST) {
        r->stats.lists++;
        r->options.port.list(request_new(f, REQUEST_NEED_LIST, 0, NULL), need->kind, need->ns,
                             r->options.port.userdata);
        return;
    }
    known = world_get(r->world, need->kind, need->ns, need->name);
    r->stats.gets++;
    r->options.port.get(request_new(f, REQUEST_NEED_GET, 0, known ? known->uid : NULL), need->kind,
                        need->ns, need->name, r->options.port.userdata);
}

static void apply_memo(const Flight *f)
{
    Obj *o = key_obj(f);
    uint64_t *warning = o ? obj_warning(o) : NULL;

    if (!o)
        return;
    if (warning && *warning != f->plan.memo.warning)
        *warning = 0;
    if (o->kind == OBJ_SANDBOX)
        obj_sandbox(o)->status_due_ms = f->plan.memo.status_due_ms;
    else if (o->kind == OBJ_POOL)
        obj_pool(o)->status_due_ms = f->plan.memo.status_due_ms;
    else if (o->kind == OBJ_CLAIM)
        world_set_waiting(f->r->world, obj_claim(o), f->plan.memo.wait_for_member);
}

static void plan_round(Flight *f)
{
    Reconciler *r = f->r;
    const PlanInput in = {
        .world = r->world,
        .config = &r->options.plan,
        .key = f->key,
        .now_ms = r->now_ms,
        .random = random_next(&r->random),
        .synced = reconciler_synced(r) && reconciler_all_connected(r),
        .live = f->live,
        .n_live = f->n_live,
    };
    _cleanup_error_ Error *error = NULL;

    plan_done(&f->plan);
    r->stats.plans++;
    if (plan_key(&in, &f->plan, &error) < 0) {
        fail(f);
        return;
    }
    if (f->plan.need.type != NEED_NONE) {
        if (f->n_live < PLAN_READS_MAX)
            submit_need(f);
        else
            fail(f);
        return;
    }
    apply_memo(f);
    if (f->plan.n_ops == 0)
        finish_quiet(f);
    else
        submit_all(f);
}

/* Members whose creation was in doubt and that turned up. */
static void settle_pending(Flight *f)
{
    Pool *p = key_pool(f);

    for (size_t i = 0; p && p->pending && i < p->pending->len;) {
        if (world_sandbox(f->r->world, f->ns, p->pending->items[i]))
            world_pool_pending(f->r->world, p, p->pending->items[i], false);
        else
            i++;
    }
}

void reconciler_start(Reconciler *r, const char *key)
{
    Flight *f = xnew(Flight);
    const char *ns, *name;
    size_t ns_len;

    f->r = r;
    f->key = xstrdup(key);
    f->plan.wake_ms = TIME_NONE;
    if (!key_split(key, &f->kind, &ns, &ns_len, &name)) {
        workqueue_done(r->queue, f->key);
        flight_free(f);
        return;
    }
    f->ns = xstrndup(ns, ns_len);
    f->name = xstrdup(name);
    settle_pending(f);
    plan_round(f);
}

static void refresh(Flight *f, size_t op_index)
{
    const PlanOp *op = &f->plan.ops[op_index];
    const Obj *known = world_get(f->r->world, op->kind, op->ns, op->name);
    uint64_t ticket = request_new(f, REQUEST_REFRESH, op_index, known ? known->uid : NULL);

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
    Obj *o = key_obj(f);
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
    Claim *c = key_claim(f);

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
    Pool *pool = key_pool(f);

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
    const Obj *owner = key_obj(f);

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
        o = op->guarded ? key_obj(f) : NULL;
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
    const Obj *o = op_target(f->r, op);

    if (o && o->inflight == 0)
        reconciler_enqueue_around(f->r, o, f->key);
}

void reconciler_op_done(Reconciler *r, uint64_t ticket, const ApiResult *result)
{
    Request *q = request_take(r, ticket);
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
    target = op_target(r, op);
    if (target && target->inflight > 0)
        world_inflight(r->world, target, -1);
    settle_op(f, q->op, result);
    enqueue_waiting(f, op);
    request_free(q);
    if (f->outstanding == 0)
        finish(f);
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
    settle_pending(f);
    s = op->reserve_for ? world_sandbox(f->r->world, op->ns, op->name) : NULL;
    if (s && s->reserved_for && s->obj.owner_kind != OWNER_POOL)
        world_reserve(f->r->world, s, NULL); /* it has found its claim */
    if (f->outstanding == 0)
        finish(f);
}

static void need_done(Flight *f, const Request *q, const ApiResult *result)
{
    PlanLive *live = &f->live[f->n_live - 1];

    if (!take_live(f->r, q, live->kind, live->ns, live->name, result)) {
        f->retry_after_ms = result->retry_after_ms;
        fail(f);
        return;
    }
    live->found = result->outcome == API_OK;
    live->object = result->object;
    plan_round(f);
}

void reconciler_get_done(Reconciler *r, uint64_t ticket, const ApiResult *result)
{
    Request *q = request_take(r, ticket);

    if (!q)
        return;
    if (q->type == REQUEST_REFRESH)
        refresh_done(q->flight, q, result);
    else
        need_done(q->flight, q, result);
    request_free(q);
}

void reconciler_list_item(Reconciler *r, uint64_t ticket, const JsonValue *doc)
{
    Request *q = hashmap_get(r->requests, ticket_text(ticket).s);
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
    plan_round(f);
}

void reconciler_list_done(Reconciler *r, uint64_t ticket, const ApiResult *result)
{
    Request *q = request_take(r, ticket);

    if (!q)
        return;
    if (result->outcome != API_OK) {
        q->flight->retry_after_ms = result->retry_after_ms;
        fail(q->flight);
    } else {
        list_done(q->flight, q);
    }
    request_free(q);
}
