/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/watches.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/reflector.h"
#include "controller/metrics.h"

#define TRACKING_LABEL "agents.x-k8s.io/sandbox-name-hash"

static const char *const selectors[OBJ_KIND_MAX] = {
    [OBJ_POD] = TRACKING_LABEL,
};

typedef struct Watch {
    Watches *owner;
    ObjKind kind;
    const char *ns; /* NULL: all */
    bool connected;
    Reflector *reflector;
} Watch;

struct Watches {
    const Clock *clock;
    Reconciler *reconciler;
    Metrics *metrics;
    LoopFn changed;
    void *userdata;
    size_t n;
    Watch items[];
};

static void on_list_begin(void *userdata)
{
    Watch *w = userdata;
    reconciler_list_begin(w->owner->reconciler, w->kind, w->ns);
}

/* What annotations claim is measured with the time of their arrival, not with that of the last run.
 */
static void tell_time(Watch *w)
{
    const Clock *clock = w->owner->clock;
    reconciler_set_time(w->owner->reconciler, clock_realtime_ms(clock), clock_monotonic_ms(clock));
}

static void on_upsert(JsonValue *object, void *userdata)
{
    Watch *w = userdata;
    tell_time(w);
    reconciler_upsert(w->owner->reconciler, w->kind, object);
    w->owner->changed(w->owner->userdata);
}

static void on_removed(JsonValue *object, void *userdata)
{
    Watch *w = userdata;
    tell_time(w);
    reconciler_removed(w->owner->reconciler, w->kind, object);
    w->owner->changed(w->owner->userdata);
}

static void on_list_end(void *userdata)
{
    Watch *w = userdata;
    uint64_t rv = 0;
    if (str_to_u64(reflector_resource_version(w->reflector), &rv) < 0)
        log_error("a list came without a numeric resourceVersion",
                  LOGF_STR("resource", obj_resource(w->kind)->plural));
    reconciler_list_end(w->owner->reconciler, w->kind, w->ns, rv);
    w->owner->changed(w->owner->userdata);
}

static bool kind_connected(const Watches *all, ObjKind kind)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->items[i].kind == kind && !all->items[i].connected)
            return false;
    return true;
}

static void on_state(bool connected, const Error *error, void *userdata)
{
    Watch *w = userdata;
    const char *resource = obj_resource(w->kind)->plural;
    if (connected != w->connected)
        log_at(error ? LOG_WARN : LOG_INFO, connected ? "watching" : "watch lost",
               LOGF_STR("resource", resource), LOGF_STR("namespace", w->ns),
               LOGF_STR("error", error ? error_message(error) : NULL));
    else if (error)
        log_warn("cannot watch", LOGF_STR("resource", resource), LOGF_STR("namespace", w->ns),
                 LOGF_STR("error", error_message(error)));
    w->connected = connected;
    bool all = kind_connected(w->owner, w->kind);
    metrics_set(w->owner->metrics, METRIC_WATCH_CONNECTED, resource, NULL, all ? 1 : 0);
    reconciler_connected(w->owner->reconciler, w->kind, all);
    w->owner->changed(w->owner->userdata);
}

static int watch_start(Watch *w, KubeClient *kube, Error **error)
{
    ReflectorOptions options = {
        .resource = obj_resource(w->kind),
        .ns = w->ns,
        .label_selector = selectors[w->kind],
        .handlers = {.list_begin = on_list_begin,
                     .upsert = on_upsert,
                     .removed = on_removed,
                     .list_end = on_list_end,
                     .state = on_state},
        .userdata = w,
    };
    return reflector_new(kube, &options, &w->reflector, error);
}

int watches_new(KubeClient *kube, Reconciler *r, Metrics *metrics, const Config *config,
                LoopFn changed, void *userdata, Watches **ret, Error **error)
{
    size_t scopes = config->n_namespaces ? config->n_namespaces : 1;
    Watches *all = xcalloc(1, sizeof(Watches) + scopes * OBJ_KIND_MAX * sizeof(Watch));
    all->clock = loop_clock(kube_client_loop(kube));
    all->reconciler = r;
    all->metrics = metrics;
    all->changed = changed;
    all->userdata = userdata;
    all->n = scopes * OBJ_KIND_MAX;
    for (size_t i = 0; i < all->n; i++) {
        Watch *w = &all->items[i];
        w->owner = all;
        w->kind = (ObjKind)(i % OBJ_KIND_MAX);
        w->ns = config->n_namespaces ? config->namespace_list[i / OBJ_KIND_MAX] : NULL;
        int rc = watch_start(w, kube, error);
        if (rc < 0) {
            watches_free(all);
            return rc;
        }
    }
    *ret = all;
    return 0;
}

Watches *watches_free(Watches *all)
{
    if (!all)
        return NULL;
    for (size_t i = 0; i < all->n; i++)
        reflector_free(all->items[i].reflector);
    free(all);
    return NULL;
}
