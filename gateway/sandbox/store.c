/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/store.h"

#include "common/base/hashmap.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

#define KEY_MAX (63 + 1 + 253 + 1)

typedef struct Entry {
    void *model;
    bool seen; /* since the last store_list_begin() of its namespace */
} Entry;

struct Store {
    Hashmap *entries[STORE_KIND_MAX];
    char claim_key[KEY_MAX];
};

typedef void *(*ModelNewFn)(const JsonValue *object);
typedef void *(*ModelFreeFn)(void *model);

static void *claim_new(const JsonValue *object)
{
    return claim_model_new(object);
}

static void *claim_free(void *model)
{
    return claim_model_free(model);
}

static void *sandbox_new(const JsonValue *object)
{
    return sandbox_model_new(object);
}

static void *sandbox_free(void *model)
{
    return sandbox_model_free(model);
}

static void *pod_new(const JsonValue *object)
{
    return pod_model_new(object);
}

static void *pod_free(void *model)
{
    return pod_model_free(model);
}

static const struct {
    ModelNewFn new_model;
    ModelFreeFn free_model;
} kinds[STORE_KIND_MAX] = {
    [STORE_CLAIMS] = {claim_new, claim_free},
    [STORE_SANDBOXES] = {sandbox_new, sandbox_free},
    [STORE_PODS] = {pod_new, pod_free},
};

static void entry_free(StoreKind kind, Entry *e)
{
    if (!e)
        return;
    (void)kinds[kind].free_model(e->model);
    free(e);
}

/* "namespace/name"; false where the names are too long to be real. */
static bool make_key(const char *ns, const char *name, char out[KEY_MAX])
{
    int n = ns && name ? snprintf(out, KEY_MAX, "%s/%s", ns, name) : -1;

    return n > 0 && n < KEY_MAX;
}

static bool object_key(const JsonValue *object, char out[KEY_MAX])
{
    return make_key(json_str(object, "metadata.namespace"), json_str(object, "metadata.name"), out);
}

static void *store_model(const Store *s, StoreKind kind, const char *ns, const char *name)
{
    char key[KEY_MAX];
    const Entry *e = make_key(ns, name, key) ? hashmap_get(s->entries[kind], key) : NULL;

    return e ? e->model : NULL;
}

Store *store_new(void)
{
    Store *s = xnew(Store);

    for (int kind = 0; kind < STORE_KIND_MAX; kind++)
        s->entries[kind] = hashmap_new();
    return s;
}

Store *store_free(Store *s)
{
    if (!s)
        return NULL;
    for (int kind = 0; kind < STORE_KIND_MAX; kind++) {
        hashmap_foreach (it, s->entries[kind])
            entry_free((StoreKind)kind, it.value);
        (void)hashmap_free(s->entries[kind]);
    }
    free(s);
    return NULL;
}

/* The claim of an object, by the names of the chain (a hint whom to wake, not a proof). */
static const char *claim_key_of(Store *s, StoreKind kind, const char *ns, const char *name,
                                const void *model)
{
    const SandboxModel *sandbox = model;
    const PodModel *pod = model;

    if (kind == STORE_PODS) {
        sandbox = store_model(s, STORE_SANDBOXES, ns, pod->owner_name);
        if (!sandbox)
            return NULL;
    }
    if (kind != STORE_CLAIMS)
        name = sandbox->owner_name;
    return make_key(ns, name, s->claim_key) ? s->claim_key : NULL;
}

/* What this process knows of a claim's activity outlives updates that do not show it yet. */
static void keep_activity(const Entry *old, ClaimModel *claim)
{
    const ClaimModel *before = old ? old->model : NULL;

    if (!before || !str_eq(before->uid, claim->uid))
        return;
    if (before->last_activity_ms > claim->last_activity_ms)
        claim->last_activity_ms = before->last_activity_ms;
    claim->activity_retry_ms = before->activity_retry_ms;
    if (before->exec_lease_ms > claim->exec_lease_ms)
        claim->exec_lease_ms = before->exec_lease_ms;
}

const char *store_put(Store *s, StoreKind kind, const JsonValue *object)
{
    char key[KEY_MAX];
    Entry *e;

    if (!object_key(object, key))
        return NULL;
    e = xnew(Entry);
    e->model = kinds[kind].new_model(object);
    e->seen = true;
    if (kind == STORE_CLAIMS)
        keep_activity(hashmap_get(s->entries[kind], key), e->model);
    entry_free(kind, hashmap_put(s->entries[kind], key, e));
    return claim_key_of(s, kind, json_str(object, "metadata.namespace"),
                        json_str(object, "metadata.name"), e->model);
}

const char *store_remove(Store *s, StoreKind kind, const JsonValue *object)
{
    char key[KEY_MAX];
    Entry *e;
    const char *claim;

    if (!object_key(object, key))
        return NULL;
    e = hashmap_remove(s->entries[kind], key);
    if (!e)
        return NULL;
    claim = claim_key_of(s, kind, json_str(object, "metadata.namespace"),
                         json_str(object, "metadata.name"), e->model);
    entry_free(kind, e);
    return claim;
}

static bool key_in_namespace(const char *key, const char *ns)
{
    size_t len = ns ? strlen(ns) : 0;

    return !ns || (strncmp(key, ns, len) == 0 && key[len] == '/');
}

void store_list_begin(Store *s, StoreKind kind, const char *ns)
{
    hashmap_foreach (it, s->entries[kind]) {
        Entry *e = it.value;

        if (key_in_namespace(it.key, ns))
            e->seen = false;
    }
}

void store_list_end(Store *s, StoreKind kind, const char *ns)
{
    hashmap_foreach (it, s->entries[kind]) {
        Entry *e = it.value;

        if (e->seen || !key_in_namespace(it.key, ns))
            continue;
        (void)hashmap_remove(s->entries[kind], it.key);
        entry_free(kind, e);
    }
}

size_t store_size(const Store *s, StoreKind kind)
{
    return hashmap_size(s->entries[kind]);
}

ClaimModel *store_claim(const Store *s, const char *ns, const char *name)
{
    return store_model(s, STORE_CLAIMS, ns, name);
}

const SandboxModel *store_sandbox(const Store *s, const char *ns, const char *name)
{
    return store_model(s, STORE_SANDBOXES, ns, name);
}

const PodModel *store_pod(const Store *s, const char *ns, const char *name)
{
    return store_model(s, STORE_PODS, ns, name);
}
