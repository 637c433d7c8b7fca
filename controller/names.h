/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are interface: label and annotation keys, hashes of names, names of what is made.
 */
#pragma once

#include "common/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LABEL_NAME_HASH "agents.x-k8s.io/sandbox-name-hash"
#define LABEL_WARM_POOL "agents.x-k8s.io/warm-pool-sandbox"
#define LABEL_TEMPLATE_REF "agents.x-k8s.io/sandbox-template-ref-hash"
#define LABEL_TEMPLATE_HASH "agents.x-k8s.io/sandbox-template-hash"
#define LABEL_POD_TEMPLATE_HASH "agents.x-k8s.io/sandbox-pod-template-hash"
#define LABEL_LAUNCH_TYPE "agents.x-k8s.io/launch-type"
#define LABEL_CREATED_BY "agents.x-k8s.io/created-by"
#define LABEL_CLAIM_UID "agents.x-k8s.io/claim-uid"
#define LABEL_ADOPTABLE "agents.x-k8s.io/adoptable"
#define LABEL_SANDBOX_NAME "agents.x-k8s.io/sandbox-name" /* legacy, on claims */
#define LABEL_SESSION_ID "mcp.k8s-agent-sandbox/session-id"

#define ANNOTATION_SANDBOX_NAME "agents.x-k8s.io/sandbox-name"
#define ANNOTATION_POD_NAME "agents.x-k8s.io/pod-name"
#define ANNOTATION_TEMPLATE_REF "agents.x-k8s.io/sandbox-template-ref"
#define ANNOTATION_PROPAGATED_LABELS "agents.x-k8s.io/propagated-labels"
#define ANNOTATION_PROPAGATED_ANNOTATIONS "agents.x-k8s.io/propagated-annotations"
#define ANNOTATION_FIRST_OBSERVED "agents.x-k8s.io/controller-first-observed-at"
#define ANNOTATION_FIRST_READY "agents.x-k8s.io/claim-first-ready-at"
#define ANNOTATION_TRACE_CONTEXT "opentelemetry.io/trace-context"
#define ANNOTATION_SAFE_TO_EVICT "cluster-autoscaler.kubernetes.io/safe-to-evict"
#define ANNOTATION_IDLE_TIMEOUT "k8s-agent-sandbox-mcp/idle-timeout-seconds"
#define ANNOTATION_LAST_ACTIVITY "k8s-agent-sandbox-mcp/last-activity"
#define ANNOTATION_EXEC_LEASE "k8s-agent-sandbox-mcp/exec-lease"
/* on events of reclamations */
#define ANNOTATION_OWNER_HASH "k8s-agent-sandbox-mcp/owner-hash"
#define ANNOTATION_RECLAIMED_FOR "k8s-agent-sandbox-mcp/reclaimed-for"

#define API_GROUP_SANDBOX "agents.x-k8s.io"
#define API_GROUP_EXTENSIONS "extensions.agents.x-k8s.io"
#define FIELD_MANAGER "sandbox-controller"
#define FIELD_MANAGER_UPSTREAM "agent-sandbox-controller"

#define NAME_HASH_MAX 9
/* FNV-1a, 32 bits, as 8 lower-case hex digits, into out[NAME_HASH_MAX]. */
void name_hash(const char *name, char *out);
/* As a return value: `name_hash_of(name).s`. */
typedef struct NameHash {
    char s[NAME_HASH_MAX];
} NameHash;
NameHash name_hash_of(const char *name);

/* Keys that belong to the controller and are never copied between template and pod. */
bool key_is_reserved(const char *key);

/* "POOL-xxxxx" as the API server's generateName would make it; advances *random. */
char *pool_member_name(const char *pool, uint64_t *random) _warn_unused_;
char *policy_name(const char *template_name) _warn_unused_;
/* The value of created-by that pods and metrics may carry; NULL for NULL or "". */
const char *created_by_normalised(const char *raw);
/* Next number of a splitmix64 sequence. */
uint64_t random_next(uint64_t *state);
