#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the first figures of controller and gateway on the one-node Kubernetes: latencies, rates, memory,
# image sizes. Figures of one run compare with each other; the machine's noise is in all of them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# shellcheck source=e2e/lib/common.sh
. e2e/lib/common.sh
# shellcheck source=e2e/lib/packages.sh
. e2e/lib/packages.sh

apt_need_build
apt_need wrk python3-venv python3-pip
cache=$(project_cache)
need_venv "$root"
started=no
if ! e2e/node/node.sh status >/dev/null 2>&1; then
    e2e/node/node.sh up
    started=yes
fi
stop() { [ "$started" = no ] || e2e/node/node.sh down; }
trap stop EXIT
e2e/images/build.sh all --out "$cache/images"
KUBECONFIG=$(e2e/node/node.sh kubeconfig)
export KUBECONFIG PATH=${K8S_AGENT_SANDBOX_NODE_DIR:-/var/lib/k8s-agent-sandbox-node}/bin:$PATH
"$VENV/bin/python" tests/bench/first.py "$@"
