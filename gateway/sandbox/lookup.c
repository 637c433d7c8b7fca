/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/lookup.h"

#include "common/base/hashmap.h"
#include "common/base/str.h"
#include "gateway/sandbox/api_error.h"
#include "gateway/sandbox/names.h"

/* Live reads of one owner: how many are left, and when the last one was added. */
typedef struct Allowance {
    int64_t left;
    int64_t refilled_ms;
} Allowance;

struct Lookups {
    SandboxCache *cache;
    Loop *loop;
    Hashmap *allowances; /* by owner */
    uint64_t live_reads;
};

struct Lookup {
    Lookups *lookups;
    char *ns, *claim, *owner;
    LookupPurpose purpose;
    LookupDoneFn done;
    void *userdata;
    KubeCall *call;
    SandboxWaiter waiter;
    LoopTimer timer;
    bool exists; /* a live read has shown it */
};

Lookups *lookups_new(SandboxCache *cache)
{
    Lookups *l = xnew(Lookups);

    l->cache = cache;
    l->loop = kube_client_loop(sandbox_cache_kube(cache));
    l->allowances = hashmap_new();
    return l;
}

Lookups *lookups_free(Lookups *l)
{
    if (!l)
        return NULL;
    (void)hashmap_free_with(l->allowances, free);
    free(l);
    return NULL;
}

uint64_t lookups_live_reads(const Lookups *l)
{
    return l->live_reads;
}

static void allowance_refill(Allowance *a, int64_t now_ms)
{
    int64_t more = (now_ms - a->refilled_ms) / LOOKUP_READ_REFILL_MS;

    a->left += more;
    a->refilled_ms += more * LOOKUP_READ_REFILL_MS;
    if (a->left >= LOOKUP_READS_BURST) {
        a->left = LOOKUP_READS_BURST;
        a->refilled_ms = now_ms;
    }
}

/* Owners who have not asked for a while need no record. */
static void allowances_prune(Lookups *l, int64_t now_ms)
{
    hashmap_foreach (it, l->allowances) {
        Allowance *a = it.value;

        allowance_refill(a, now_ms);
        if (a->left == LOOKUP_READS_BURST)
            free(hashmap_remove(l->allowances, it.key));
    }
}

static bool may_read(Lookups *l, const char *owner)
{
    int64_t now_ms = loop_now_ms(l->loop);
    Allowance *a = hashmap_get(l->allowances, owner);

    if (!a && hashmap_size(l->allowances) >= LOOKUP_OWNERS_MAX)
        allowances_prune(l, now_ms);
    if (!a && hashmap_size(l->allowances) >= LOOKUP_OWNERS_MAX)
        return false;
    if (!a) {
        a = xnew(Allowance);
        *a = (Allowance){.left = LOOKUP_READS_BURST, .refilled_ms = now_ms};
        (void)hashmap_put(l->allowances, owner, a);
    }
    allowance_refill(a, now_ms);
    if (a->left <= 0)
        return false;
    a->left--;
    return true;
}

static void lookup_free(Lookup *k)
{
    sandbox_cache_unwait(k->lookups->cache, &k->waiter);
    loop_timer_stop(k->lookups->loop, &k->timer);
    (void)kube_call_cancel(k->call);
    free(k->ns);
    free(k->claim);
    free(k->owner);
    free(k);
}

Lookup *lookup_cancel(Lookup *lookup)
{
    if (lookup)
        lookup_free(lookup);
    return NULL;
}

static void resolve(const Lookup *k, SandboxView *ret)
{
    sandbox_resolve(sandbox_cache_store(k->lookups->cache), k->ns, k->claim, k->owner, ret);
}

static void finish(Lookup *k, const SandboxView *view, const Error *error)
{
    LookupDoneFn done = k->done;
    void *userdata = k->userdata;

    lookup_free(k);
    done(view, error, userdata);
}

static void on_settled(void *userdata)
{
    Lookup *k = userdata;
    _cleanup_error_ Error *error = NULL;
    SandboxView view;

    resolve(k, &view);
    if (view.state == SANDBOX_MISSING && k->exists)
        (void)error_set(&error, ERROR_UNAVAILABLE,
                        "this gateway's view of the cluster is behind the API server");
    finish(k, &view, error);
}

/* More news would not change the answer. */
static bool is_settled(const SandboxView *view, LookupPurpose purpose)
{
    if (view->state == SANDBOX_MISSING || view->settling)
        return false;
    return purpose == LOOKUP_TO_LOOK || sandbox_is_usable(view) || view->failed;
}

static void on_change(void *userdata)
{
    Lookup *k = userdata;
    SandboxView view;

    resolve(k, &view);
    if (is_settled(&view, k->purpose))
        finish(k, &view, NULL);
}

/* The cache may show more in a moment: waits for it. */
static void settle(Lookup *k, int64_t patience_ms)
{
    k->timer.fn = on_settled;
    k->timer.userdata = k;
    loop_timer_set(k->lookups->loop, &k->timer, patience_ms);
    sandbox_cache_wait(k->lookups->cache, &k->waiter, k->ns, k->claim, on_change, k);
}

static bool is_owned(const JsonValue *object, const char *owner)
{
    ClaimModel *claim = claim_model_new(object);
    bool owned = str_eq(claim->owner, owner);

    (void)claim_model_free(claim);
    return owned;
}

static void on_read(JsonValue *object, const Error *error, void *userdata)
{
    Lookup *k = userdata;
    SandboxView view;

    k->call = NULL;
    if (error && error->kind != ERROR_NOT_FOUND) {
        _cleanup_error_ Error *told = api_error_for_caller(error);
        finish(k, NULL, told);
        return;
    }
    if (!error && is_owned(object, k->owner)) {
        k->exists = true;
        settle(k, LOOKUP_SETTLE_MS);
        on_change(k);
        return;
    }
    resolve(k, &view);
    finish(k, &view, NULL);
}

static int read_live(Lookup *k, Error **error)
{
    _cleanup_free_ char *path = kube_path_dup(&resource_claims, k->ns, k->claim, NULL);
    KubeRequest request = {
        .verb = "get", .path = path, .deadline_ms = 10000, .on_done = on_read, .userdata = k};
    int r;

    if (!may_read(k->lookups, k->owner))
        return error_set(error, ERROR_EXHAUSTED,
                         "too many look-ups of sandboxes that are not known here");
    r = kube_send(sandbox_cache_kube(k->lookups->cache), &request, &k->call, error);
    if (r == 0)
        k->lookups->live_reads++;
    return r;
}

void lookup_start(Lookups *l, const char *ns, const char *claim, const char *owner,
                  LookupPurpose purpose, LookupDoneFn done, void *userdata, Lookup **ret)
{
    _cleanup_error_ Error *error = NULL;
    SandboxView view;
    Lookup *k;

    *ret = NULL;
    sandbox_resolve(sandbox_cache_store(l->cache), ns, claim, owner, &view);
    if (is_settled(&view, purpose)) {
        done(&view, NULL, userdata);
        return;
    }
    k = xnew(Lookup);
    k->lookups = l;
    k->ns = xstrdup(ns);
    k->claim = xstrdup(claim);
    k->owner = xstrdup(owner);
    k->purpose = purpose;
    k->done = done;
    k->userdata = userdata;
    if (view.state != SANDBOX_MISSING)
        settle(k, view.settling ? LOOKUP_SETTLE_MS : LOOKUP_PATIENCE_MS);
    else if (read_live(k, &error) < 0) {
        finish(k, NULL, error);
        return;
    }
    *ret = k;
}
