/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/reconciler.h"

#include "common/base/contract.h"
#include "common/base/str.h"
#include "controller/model_parse.h"
#include "controller/names.h"
#include "controller/reconciler_internal.h"

#define INFLIGHT_MAX 16384
#define SWEEP_INTERVAL_MS (10 * 60 * 1000)
#define CLOCK_JUMP_MS 1000

static Scope *scopes_new(const ReconcilerOptions *options, size_t *ret_n)
{
    size_t per_kind = options->n_namespaces ? options->n_namespaces : 1;
    Scope *scopes = xcalloc(per_kind * OBJ_KIND_MAX, sizeof(Scope));

    for (size_t i = 0; i < per_kind * OBJ_KIND_MAX; i++) {
        scopes[i].kind = (ObjKind)(i % OBJ_KIND_MAX);
        scopes[i].ns = options->n_namespaces ? options->namespaces[i / OBJ_KIND_MAX] : NULL;
    }
    *ret_n = per_kind * OBJ_KIND_MAX;
    return scopes;
}

Reconciler *reconciler_new(const ReconcilerOptions *options)
{
    Reconciler *r = xnew(Reconciler);

    r->options = *options;
    if (r->options.max_inflight == 0)
        r->options.max_inflight = INFLIGHT_MAX;
    if (r->options.sweep_interval_ms == 0)
        r->options.sweep_interval_ms = SWEEP_INTERVAL_MS;
    r->random = options->seed;
    r->world = world_new();
    world_set_observer(r->world, reconciler_on_change, r);
    r->queue = workqueue_new();
    r->requests = hashmap_new();
    r->streaks = hashmap_new();
    r->wake = hashmap_new();
    r->scopes = scopes_new(options, &r->n_scopes);
    r->sweep_ms = TIME_NONE;
    return r;
}

Reconciler *reconciler_free(Reconciler *r)
{
    if (!r)
        return NULL;
    reconciler_flights_free(r);
    reconciler_release_reservations(r);
    r->queue = workqueue_free(r->queue);
    r->requests = hashmap_free(r->requests);
    r->streaks = hashmap_free_with(r->streaks, free);
    r->wake = hashmap_free(r->wake);
    r->world = world_free(r->world);
    free(r->scopes);
    free(r);
    return NULL;
}

World *reconciler_world(Reconciler *r)
{
    return r->world;
}

double reconciler_jitter(Reconciler *r)
{
    return (double)(random_next(&r->random) >> 11) / (double)(1ULL << 53);
}

void reconciler_set_time(Reconciler *r, int64_t realtime_ms, int64_t monotonic_ms)
{
    int64_t drift = (realtime_ms - r->now_ms) - (monotonic_ms - r->mono_ms);
    bool jumped = r->mono_ms != 0 && (drift > CLOCK_JUMP_MS || drift < -CLOCK_JUMP_MS);

    r->now_ms = realtime_ms;
    r->mono_ms = monotonic_ms;
    if (!jumped)
        return;
    reconciler_enqueue_all(r);
    if (r->sweep_ms != TIME_NONE)
        r->sweep_ms = r->now_ms;
}

static Scope *scope_find(Reconciler *r, ObjKind kind, const char *ns)
{
    for (size_t i = 0; i < r->n_scopes; i++)
        if (r->scopes[i].kind == kind && str_eq(r->scopes[i].ns, ns))
            return &r->scopes[i];
    CONTRACT(false && "a watch that was not announced");
    return NULL;
}

void reconciler_list_begin(Reconciler *r, ObjKind kind, const char *ns)
{
    scope_find(r, kind, ns)->epoch = world_relist_begin(r->world, kind);
}

static void bad_object(Reconciler *r, ObjKind kind, const Error *error)
{
    r->stats.bad_objects++;
    if (r->options.port.bad_object)
        r->options.port.bad_object(kind, error, r->options.port.userdata);
}

void reconciler_take(Reconciler *r, ObjKind kind, const JsonValue *doc)
{
    _cleanup_error_ Error *error = NULL;
    Obj *view;

    if (obj_parse(world_interner(r->world), kind, doc, r->now_ms, &view, &error) < 0) {
        bad_object(r, kind, error);
        return;
    }
    (void)world_apply(r->world, view, r->now_ms);
}

void reconciler_upsert(Reconciler *r, ObjKind kind, const JsonValue *doc)
{
    reconciler_take(r, kind, doc);
}

void reconciler_removed(Reconciler *r, ObjKind kind, const JsonValue *doc)
{
    _cleanup_error_ Error *error = NULL;
    ObjRef ref;

    if (obj_parse_ref(doc, &ref, &error) < 0) {
        bad_object(r, kind, error);
        return;
    }
    world_remove(r->world, kind, ref.ns, ref.name, ref.uid, ref.rv, r->now_ms);
}

void reconciler_list_end(Reconciler *r, ObjKind kind, const char *ns, uint64_t list_rv)
{
    Scope *scope = scope_find(r, kind, ns);

    world_relist_end(r->world, kind, ns, scope->epoch, list_rv, r->now_ms);
    scope->listed = true;
}

void reconciler_connected(Reconciler *r, ObjKind kind, bool connected)
{
    r->connected[kind] = connected;
    /* Orphans may have come up, or were left unjudged, while it was away. */
    if (connected && reconciler_all_connected(r) && reconciler_synced(r))
        r->sweep_ms = r->now_ms;
}

bool reconciler_synced(const Reconciler *r)
{
    for (size_t i = 0; i < r->n_scopes; i++)
        if (!r->scopes[i].listed)
            return false;
    return true;
}

bool reconciler_all_connected(const Reconciler *r)
{
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++)
        if (!r->connected[k])
            return false;
    return true;
}

void reconciler_enqueue(Reconciler *r, const char *key)
{
    workqueue_add(r->queue, key);
}

static void sweep_if_due(Reconciler *r)
{
    if (r->sweep_ms != TIME_NONE && r->now_ms < r->sweep_ms)
        return;
    r->sweep_ms = r->now_ms + r->options.sweep_interval_ms;
    reconciler_sweep(r);
}

void reconciler_run(Reconciler *r)
{
    const char *key;

    if (!reconciler_synced(r))
        return;
    sweep_if_due(r);
    reconciler_release_reservations(r);
    reconciler_wake_waiters(r);
    while (r->inflight < r->options.max_inflight && (key = workqueue_take(r->queue, r->now_ms)))
        reconciler_start(r, key);
}

int64_t reconciler_next_ms(const Reconciler *r)
{
    int64_t sweep, queue;

    if (!reconciler_synced(r) || r->inflight >= r->options.max_inflight)
        return INT64_MAX;
    if (r->sweep_ms == TIME_NONE || hashmap_size(r->wake) > 0 || r->n_released > 0)
        return 0;
    sweep = r->sweep_ms > r->now_ms ? r->sweep_ms - r->now_ms : 0;
    queue = workqueue_next_ms(r->queue, r->now_ms);
    return queue < sweep ? queue : sweep;
}

ReconcilerStats reconciler_stats(const Reconciler *r)
{
    ReconcilerStats stats = r->stats;

    stats.inflight = r->inflight;
    stats.queued = workqueue_depth(r->queue, r->now_ms);
    stats.delayed = workqueue_delayed(r->queue, r->now_ms);
    return stats;
}
