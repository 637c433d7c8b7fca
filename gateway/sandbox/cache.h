/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live view of claims, sandboxes and pods: reflectors that feed the store, and waiters that are
 * told when something of a claim has changed. Only what can matter is watched: claims with an owner
 * label, sandboxes that belong to a claim, pods of sandboxes. Loop thread.
 */
#pragma once

#include "common/base/list.h"
#include "common/kube/reflector.h"
#include "gateway/sandbox/resolve.h"

typedef struct SandboxCache SandboxCache;

/* namespaces: those to serve; n 0: all. */
int sandbox_cache_new(KubeClient *kube, char *const *namespaces, size_t n_namespaces,
                      SandboxCache **ret, Error **error);
SandboxCache *sandbox_cache_free(SandboxCache *c);
Store *sandbox_cache_store(SandboxCache *c);
KubeClient *sandbox_cache_kube(SandboxCache *c);
/* Every list was delivered once. */
bool sandbox_cache_synced(const SandboxCache *c);
/* False where --namespaces leaves it out. */
bool sandbox_cache_serves(const SandboxCache *c, const char *ns);

/* Called when a pod is being deleted (again with each of its updates), and when it is gone. fn must
 * not change the cache. */
typedef void (*PodEndsFn)(const char *ns, const char *pod, bool gone, void *userdata);
void sandbox_cache_on_pod_end(SandboxCache *c, PodEndsFn fn, void *userdata);

/* A member of its owner's struct; zero-initialise. fn runs on the loop, some time after a change,
 * never within the call that changed something; it may remove waiters, its own too. */
typedef struct SandboxWaiter {
    List node; /* private, all three */
    List dirty;
    char *key;
    LoopFn fn;
    void *userdata;
} SandboxWaiter;
void sandbox_cache_wait(SandboxCache *c, SandboxWaiter *w, const char *ns, const char *claim,
                        LoopFn fn, void *userdata);
void sandbox_cache_unwait(SandboxCache *c, SandboxWaiter *w); /* harmless on one that is not in */
