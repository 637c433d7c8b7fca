/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the gateway shares with controllers, clients and administrators. */
#pragma once

#include "common/kube/client.h"

/* State of the gateway on a claim (annotations); docs/security.md says what each means. */
#define ANNOTATION_OWNER "k8s-agent-sandbox-mcp/owner"
#define ANNOTATION_CREATED_BY "k8s-agent-sandbox-mcp/created-by"
#define ANNOTATION_LAST_ACTIVITY "k8s-agent-sandbox-mcp/last-activity"
#define ANNOTATION_IDLE_TIMEOUT "k8s-agent-sandbox-mcp/idle-timeout-seconds"
#define ANNOTATION_EXEC_LEASE "k8s-agent-sandbox-mcp/exec-lease"
/* Label with the owner's hash; upstream's MCP server writes its session id there. */
#define LABEL_OWNER "mcp.k8s-agent-sandbox/session-id"

#define ANNOTATION_FIRST_REQUESTED "agents.x-k8s.io/client-first-requested-at"
#define ANNOTATION_POD_NAME "agents.x-k8s.io/pod-name"
#define LABEL_CLAIM_UID "agents.x-k8s.io/claim-uid"
#define LABEL_SANDBOX_HASH "agents.x-k8s.io/sandbox-name-hash"
#define ANNOTATION_DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"

#define FIELD_MANAGER "sandbox-gateway"
#define USER_AGENT "sandbox-gateway/" SANDBOX_VERSION

extern const KubeResource resource_claims;
extern const KubeResource resource_sandboxes;
extern const KubeResource resource_pods;
