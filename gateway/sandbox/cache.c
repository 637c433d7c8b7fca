/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/cache.h"

#include "common/base/hashmap.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "gateway/sandbox/names.h"

#include <stdio.h>

/* One reflector: a kind in one namespace, or in all. */
typedef struct Feed {
    SandboxCache *cache;
    StoreKind kind;
    char *ns; /* NULL: all */
    Reflector *reflector;
    bool connected;
} Feed;

struct SandboxCache {
    KubeClient *kube;
    Loop *loop;
    Store *store;
    Feed *feeds;
    size_t n_feeds;
    Hashmap *waiters; /* claim key → List of SandboxWaiter */
    List dirty;
    LoopTimer wake;
    PodEndsFn pod_ends; /* may be NULL */
    void *pod_ends_userdata;
};

static const struct {
    const KubeResource *resource;
    const char *selector;
} watched[STORE_KIND_MAX] = {
    [STORE_CLAIMS] = {&resource_claims, LABEL_OWNER},
    [STORE_SANDBOXES] = {&resource_sandboxes, LABEL_CLAIM_UID},
    [STORE_PODS] = {&resource_pods, LABEL_SANDBOX_HASH},
};

/* --- waiters --- */

static void mark_dirty(SandboxCache *c, List *waiters)
{
    list_foreach (pos, waiters) {
        SandboxWaiter *w = LIST_ENTRY(pos, SandboxWaiter, node);

        if (!list_linked(&w->dirty))
            list_push(&c->dirty, &w->dirty);
    }
    loop_timer_set(c->loop, &c->wake, 0);
}

static void touch(SandboxCache *c, const char *claim_key)
{
    List *waiters = claim_key ? hashmap_get(c->waiters, claim_key) : NULL;

    if (waiters)
        mark_dirty(c, waiters);
}

static void touch_all(SandboxCache *c)
{
    hashmap_foreach (it, c->waiters)
        mark_dirty(c, it.value);
}

static void wake_dirty(void *userdata)
{
    SandboxCache *c = userdata;
    List *node;

    while ((node = list_pop(&c->dirty))) {
        SandboxWaiter *w = LIST_ENTRY(node, SandboxWaiter, dirty);

        w->fn(w->userdata);
    }
}

void sandbox_cache_wait(SandboxCache *c, SandboxWaiter *w, const char *ns, const char *claim,
                        LoopFn fn, void *userdata)
{
    List *waiters;

    w->key = xasprintf("%s/%s", ns, claim);
    w->fn = fn;
    w->userdata = userdata;
    waiters = hashmap_get(c->waiters, w->key);
    if (!waiters) {
        waiters = xnew(List);
        list_init(waiters);
        (void)hashmap_put(c->waiters, w->key, waiters);
    }
    list_push(waiters, &w->node);
}

void sandbox_cache_unwait(SandboxCache *c, SandboxWaiter *w)
{
    List *waiters;

    if (!w->key)
        return;
    list_remove(&w->node);
    list_remove(&w->dirty);
    waiters = hashmap_get(c->waiters, w->key);
    if (waiters && list_empty(waiters))
        free(hashmap_remove(c->waiters, w->key));
    free(TAKE_PTR(w->key));
}

/* --- feeds --- */

static void on_list_begin(void *userdata)
{
    Feed *f = userdata;

    store_list_begin(f->cache->store, f->kind, f->ns);
}

static void tell_pod_end(const Feed *f, const JsonValue *object, bool gone)
{
    const SandboxCache *c = f->cache;
    const char *ns = json_str(object, "metadata.namespace");
    const char *name = json_str(object, "metadata.name");
    const PodModel *pod;

    if (f->kind != STORE_PODS || !c->pod_ends || !ns || !name)
        return;
    pod = store_pod(c->store, ns, name);
    if (gone || (pod && pod->deleting))
        c->pod_ends(ns, name, gone, c->pod_ends_userdata);
}

static void on_upsert(JsonValue *object, void *userdata)
{
    Feed *f = userdata;

    touch(f->cache, store_put(f->cache->store, f->kind, object));
    tell_pod_end(f, object, false);
}

static void on_removed(JsonValue *object, void *userdata)
{
    Feed *f = userdata;

    touch(f->cache, store_remove(f->cache->store, f->kind, object));
    tell_pod_end(f, object, true);
}

static void on_list_end(void *userdata)
{
    Feed *f = userdata;

    store_list_end(f->cache->store, f->kind, f->ns);
    touch_all(f->cache);
}

static void on_state(bool connected, const Error *error, void *userdata)
{
    Feed *f = userdata;
    const char *plural = watched[f->kind].resource->plural;

    if (connected && !f->connected)
        log_info("watching", LOGF_STR("resource", plural), LOGF_STR("namespace", f->ns));
    else if (!connected && error)
        log_warn("watch lost", LOGF_STR("resource", plural), LOGF_STR("namespace", f->ns),
                 LOGF_STR("error", error_message(error)));
    f->connected = connected;
}

static int feed_start(SandboxCache *c, Feed *f, StoreKind kind, const char *ns, Error **error)
{
    f->cache = c;
    f->kind = kind;
    f->ns = xstrdup_null(ns);
    ReflectorOptions options = {
        .resource = watched[kind].resource,
        .ns = f->ns,
        .label_selector = watched[kind].selector,
        .handlers = {.list_begin = on_list_begin,
                     .upsert = on_upsert,
                     .removed = on_removed,
                     .list_end = on_list_end,
                     .state = on_state},
        .userdata = f,
    };
    return reflector_new(c->kube, &options, &f->reflector, error);
}

static int feeds_start(SandboxCache *c, char *const *namespaces, size_t n, Error **error)
{
    size_t scopes = n > 0 ? n : 1;

    c->feeds = xcalloc(scopes * STORE_KIND_MAX, sizeof(Feed));
    for (size_t i = 0; i < scopes; i++)
        for (int kind = 0; kind < STORE_KIND_MAX; kind++) {
            int r = feed_start(c, &c->feeds[c->n_feeds++], (StoreKind)kind,
                               n > 0 ? namespaces[i] : NULL, error);
            if (r < 0)
                return r;
        }
    return 0;
}

int sandbox_cache_new(KubeClient *kube, char *const *namespaces, size_t n_namespaces,
                      SandboxCache **ret, Error **error)
{
    SandboxCache *c = xnew(SandboxCache);
    int r;

    c->kube = kube;
    c->loop = kube_client_loop(kube);
    c->store = store_new();
    c->waiters = hashmap_new();
    list_init(&c->dirty);
    c->wake.fn = wake_dirty;
    c->wake.userdata = c;
    r = feeds_start(c, namespaces, n_namespaces, error);
    if (r < 0) {
        (void)sandbox_cache_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

SandboxCache *sandbox_cache_free(SandboxCache *c)
{
    if (!c)
        return NULL;
    loop_timer_stop(c->loop, &c->wake);
    for (size_t i = 0; i < c->n_feeds; i++) {
        (void)reflector_free(c->feeds[i].reflector);
        free(c->feeds[i].ns);
    }
    free(c->feeds);
    (void)hashmap_free_with(c->waiters, free);
    (void)store_free(c->store);
    free(c);
    return NULL;
}

void sandbox_cache_on_pod_end(SandboxCache *c, PodEndsFn fn, void *userdata)
{
    c->pod_ends = fn;
    c->pod_ends_userdata = userdata;
}

Store *sandbox_cache_store(SandboxCache *c)
{
    return c->store;
}

KubeClient *sandbox_cache_kube(SandboxCache *c)
{
    return c->kube;
}

bool sandbox_cache_synced(const SandboxCache *c)
{
    for (size_t i = 0; i < c->n_feeds; i++)
        if (!reflector_synced(c->feeds[i].reflector))
            return false;
    return true;
}

bool sandbox_cache_serves(const SandboxCache *c, const char *ns)
{
    for (size_t i = 0; i < c->n_feeds; i++)
        if (!c->feeds[i].ns || str_eq(c->feeds[i].ns, ns))
            return true;
    return false;
}
