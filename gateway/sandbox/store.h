/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the watches have shown: claims, sandboxes and pods by namespace and name, and the chain
 * claim → sandbox → pod, which is followed by UID each time it is used. Pure data, no I/O, no
 * clock; one thread (the loop). Memory is bounded by what exists in the cluster: a few hundred
 * bytes an object.
 */
#pragma once

#include "gateway/sandbox/model.h"

typedef enum StoreKind { STORE_CLAIMS, STORE_SANDBOXES, STORE_PODS, STORE_KIND_MAX } StoreKind;

typedef struct Store Store;

Store *store_new(void);
Store *store_free(Store *s);
/* Copies the object's fields in. Returns the name of the claim that it belongs to as
 * "namespace/name" (borrowed until the next call), or NULL where that is not known. */
const char *store_put(Store *s, StoreKind kind, const JsonValue *object);
const char *store_remove(Store *s, StoreKind kind, const JsonValue *object);
/* Around a complete list of one namespace (NULL: of all): what is not put in between goes. */
void store_list_begin(Store *s, StoreKind kind, const char *ns);
void store_list_end(Store *s, StoreKind kind, const char *ns);
size_t store_size(const Store *s, StoreKind kind);
/* NULL where there is none. Borrowed until the next change; a claim's activity may be updated in
 * place. */
ClaimModel *store_claim(const Store *s, const char *ns, const char *name);
const SandboxModel *store_sandbox(const Store *s, const char *ns, const char *name);
const PodModel *store_pod(const Store *s, const char *ns, const char *name);
