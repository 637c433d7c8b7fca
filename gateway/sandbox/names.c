/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/names.h"

const KubeResource resource_claims = {"extensions.agents.x-k8s.io", "v1beta1", "sandboxclaims",
                                      "SandboxClaim"};
const KubeResource resource_sandboxes = {"agents.x-k8s.io", "v1beta1", "sandboxes", "Sandbox"};
const KubeResource resource_pods = {"", "v1", "pods", "Pod"};
