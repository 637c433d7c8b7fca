/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on their way: one pass over a key, from planning to the last answer (plan.h). */
#include "common/base/str.h"
#include "controller/names.h"
#include "controller/reconciler_internal.h"

/* Passes that wrote something, without one in between that had nothing to do. */
#define STREAK_MAX 100
#define CONFLICTS_MAX 3
/* No request whose answer was lost takes effect later than this. */
#define OPEN_MAX_MS (120 * 1000)

static Flight *flight_free(Flight *f)
{
    plan_done(&f->plan);
    for (size_t i = 0; i < f->n_live; i++) {
        free(f->live[i].ns);
        free(f->live[i].name);
        plan_items_free(f->items[i], f->live[i].n_items);
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
        reconciler_request_free(q);
        if (--f->outstanding == 0)
            flight_free(f);
        (void)hashmap_remove(r->requests, it.key);
    }
    r->inflight = 0;
}

Obj *flight_obj(const Flight *f)
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

Pool *flight_pool(const Flight *f)
{
    return f->kind == KEY_POOL ? world_pool(f->r->world, f->ns, f->name) : NULL;
}

Claim *flight_claim(const Flight *f)
{
    return f->kind == KEY_CLAIM ? world_claim(f->r->world, f->ns, f->name) : NULL;
}

Obj *flight_op_target(const Reconciler *r, const PlanOp *op)
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
    Claim *c = flight_claim(f);

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

void flight_finish(Flight *f)
{
    Reconciler *r = f->r;

    send_events(f);
    if (!f->failed && !f->conflict)
        workqueue_forget_failures(r->queue, f->key);
    requeue(f);
    workqueue_done(r->queue, f->key);
    flight_free(f);
}

void flight_fail(Flight *f)
{
    f->failed = true;
    plan_done(&f->plan);
    flight_finish(f);
}

static bool is_recent(const Reconciler *r, int64_t ms)
{
    return r->now_ms - ms < OPEN_MAX_MS && ms - r->now_ms < OPEN_MAX_MS;
}

/* Whether an earlier request for the same thing may still take effect. */
static bool is_open(const Flight *f, const PlanOp *op)
{
    const Pool *p = flight_pool(f);
    const Claim *c = flight_claim(f);

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
    Obj *target = flight_op_target(r, op);
    Pool *pool = flight_pool(f);
    uint64_t ticket = reconciler_request_new(f, REQUEST_OP, i, op->uid);

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
        r->options.port.list(reconciler_request_new(f, REQUEST_NEED_LIST, 0, NULL), need->kind,
                             need->ns, r->options.port.userdata);
        return;
    }
    known = world_get(r->world, need->kind, need->ns, need->name);
    r->stats.gets++;
    r->options.port.get(reconciler_request_new(f, REQUEST_NEED_GET, 0, known ? known->uid : NULL),
                        need->kind, need->ns, need->name, r->options.port.userdata);
}

static void apply_memo(const Flight *f)
{
    Obj *o = flight_obj(f);
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

void flight_plan(Flight *f)
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
        flight_fail(f);
        return;
    }
    if (f->plan.need.type != NEED_NONE) {
        if (f->n_live < PLAN_READS_MAX)
            submit_need(f);
        else
            flight_fail(f);
        return;
    }
    apply_memo(f);
    if (f->plan.n_ops == 0)
        finish_quiet(f);
    else
        submit_all(f);
}

void flight_settle_pending(Flight *f)
{
    Pool *p = flight_pool(f);

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
    flight_settle_pending(f);
    flight_plan(f);
}
