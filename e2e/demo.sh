#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole system on a real Kubernetes, and an agent's work on it.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: e2e/demo.sh [--once] [--kubeconfig FILE --image-registry REGISTRY]
       e2e/demo.sh down [--kubeconfig FILE]

Installs what is missing, builds, starts a one-node Kubernetes of its own, installs controller and
gateway with kustomize, and does an agent's work over MCP. Leaves everything running and prints how
to connect a client.

  --once                  tear down after the work
  down                    stop what an earlier run left running
  --kubeconfig FILE       use this cluster instead of a one-node cluster of its own; only what the
                          demo made is removed by --once and down
  --image-registry R      registry (with path) that the cluster of --kubeconfig pulls from and that
                          this machine may push to, e.g. registry.example/me; plain http is tried for
                          a registry on a loopback or private address
TEXT
}

once=no down=no kubeconfig='' registry=''
while [ $# -gt 0 ]; do
    case $1 in
    --once) once=yes ;;
    down) down=yes ;;
    --kubeconfig) kubeconfig=${2:?--kubeconfig needs a file}; shift ;;
    --kubeconfig=*) kubeconfig=${1#*=} ;;
    --image-registry) registry=${2:?--image-registry needs a registry}; shift ;;
    --image-registry=*) registry=${1#*=} ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'e2e/demo.sh: unknown argument %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
if [ -n "$kubeconfig" ] && [ ! -r "$kubeconfig" ]; then
    printf 'e2e/demo.sh: cannot read %s\n' "$kubeconfig" >&2
    exit 2
fi
if [ -n "$kubeconfig" ] && [ "$down" = no ] && [ -z "$registry" ]; then
    echo 'e2e/demo.sh: --kubeconfig needs --image-registry: the cluster has to pull the images from somewhere' >&2
    exit 2
fi
[ -z "$kubeconfig" ] || kubeconfig=$(realpath "$kubeconfig")

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=e2e/lib/common.sh
. e2e/lib/common.sh
# shellcheck source=e2e/lib/packages.sh
. e2e/lib/packages.sh
# shellcheck source=e2e/lib/install.sh
. e2e/lib/install.sh

cache=$(project_cache)
own_node=yes
[ -z "$kubeconfig" ] || own_node=no
STATE=$root/build/demo/state
[ "$own_node" = yes ] || STATE=$root/build/demo/state-$(sha256sum <<<"$kubeconfig" | cut -c1-12)
mkdir -p "$STATE"
forward_pid=''

select_kubectl() {
    if [ "$own_node" = yes ]; then
        kubeconfig=$(e2e/node/node.sh kubeconfig)
        KUBECTL=(e2e/node/node.sh kubectl)
    else
        command -v kubectl >/dev/null || die "kubectl is not on PATH; the cluster of --kubeconfig is worked on with it"
        KUBECTL=(kubectl --kubeconfig "$kubeconfig")
    fi
}

stop_forward() {
    [ -z "$forward_pid" ] || kill "$forward_pid" 2>/dev/null || true
    forward_pid=''
}

tear_down() {
    stop_forward
    if [ "$own_node" = yes ]; then
        e2e/node/node.sh down
        rm -rf "$STATE"
    else
        select_kubectl
        run "removing what the demo made" install_remove
    fi
}

if [ "$down" = yes ]; then
    tear_down
    exit 0
fi

push_images() {
    local name tls=()
    apt_need skopeo
    case ${registry%%[:/]*} in
    localhost | 127.* | 10.* | 192.168.* | 172.1[6-9].* | 172.2[0-9].* | 172.3[01].*) tls=(--dest-tls-verify=false) ;;
    esac
    for name in "${install_images[@]}"; do
        skopeo copy --quiet "${tls[@]}" "docker-archive:$cache/images/$name.tar" "docker://$registry/$name:$IMAGE_TAG"
    done
}

load_images() {
    local name
    for name in "${install_images[@]}"; do
        e2e/node/node.sh load "$cache/images/$name.tar"
    done
}

# The controller of somebody else on this cluster would fight ours.
refuse_other_controller() {
    [ ! -f "$STATE/made-system.json" ] || return 0
    if "${KUBECTL[@]}" -n agent-sandbox-system get deployment agent-sandbox-controller -o name >/dev/null 2>&1; then
        echo 'e2e/demo.sh: this cluster has a Deployment agent-sandbox-controller in agent-sandbox-system already;' >&2
        echo '  two controllers would work against each other. Remove it first, or use another cluster.' >&2
        return 1
    fi
}

make_token() {
    umask 077
    "${KUBECTL[@]}" -n default create token example-agent --audience=k8s-agent-sandbox-mcp --duration=8h >"$STATE/token"
}

# Sets url: the Service's address where this machine is the node, a port-forward elsewhere.
find_endpoint() {
    if [ "$own_node" = yes ]; then
        url=http://$("${KUBECTL[@]}" -n agent-sandbox-system get service sandbox-gateway -o jsonpath='{.spec.clusterIP}'):8080/mcp
        return
    fi
    "${KUBECTL[@]}" -n agent-sandbox-system port-forward service/sandbox-gateway :8080 >"$STATE/port-forward.log" 2>&1 &
    forward_pid=$!
    local port='' end=$((SECONDS + 30))
    while [ -z "$port" ]; do
        port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$STATE/port-forward.log" | head -n 1)
        if ! kill -0 "$forward_pid" 2>/dev/null || [ $SECONDS -ge $end ]; then
            cat "$STATE/port-forward.log" >&2
            return 1
        fi
        sleep 0.1
    done
    url=http://127.0.0.1:$port/mcp
}

print_connect() {
    local token_file=$STATE/token
    if [ "$own_node" = no ]; then
        printf '\nReach the gateway from this machine:\n  %s -n agent-sandbox-system port-forward service/sandbox-gateway 8080:8080\n' "${KUBECTL[*]}"
        url=http://127.0.0.1:8080/mcp
    fi
    cat <<TEXT

Endpoint:    $url
Token:       $(cat "$token_file")
             (valid 8 hours; in $token_file)

Claude Code: claude mcp add --transport http k8s-agent-sandbox $url --header "Authorization: Bearer \$(cat $token_file)"
Codex:       export SANDBOX_TOKEN=\$(cat $token_file)
             codex mcp add k8s-agent-sandbox --url $url --bearer-token-env-var SANDBOX_TOKEN
curl:        curl -s $url -H "Authorization: Bearer \$(cat $token_file)" -H 'Content-Type: application/json' \\
               -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'

A warm pool to ask for: simple-sandbox-warmpool in namespace default.
Look around: ${KUBECTL[*]} get sandboxclaims,sandboxes,pods -A
Stop it:     $0 down${registry:+ --kubeconfig $kubeconfig}
TEXT
}

trap stop_forward EXIT
apt_need_build
if [ "$own_node" = yes ] && ! e2e/node/node.sh status >/dev/null 2>&1; then
    e2e/node/node.sh up
fi
select_kubectl
[ "$own_node" = yes ] || refuse_other_controller
e2e/images/build.sh all --out "$cache/images"
IMAGE_HASH=$(cat "$cache"/images/*.tar | sha256sum | cut -c1-16)
IMAGE_PREFIX='' IMAGE_TAG=dev
if [ "$own_node" = yes ]; then
    run "images into the node" load_images
else
    IMAGE_PREFIX=$registry IMAGE_TAG=$IMAGE_HASH
    run "images to $registry" push_images
fi
install_overlays "$root"
run "controller and gateway, with kustomize" install_system
run "controller and gateway ready" install_wait
run "a template and a warm pool" install_examples
run "warm pool full" install_wait_pool
make_token
find_endpoint
echo
python3 e2e/demo_agent.py --url "$url" --token-file "$STATE/token" --kubectl "${KUBECTL[*]}"
echo
echo "The demo did what it should."
stop_forward
if [ "$once" = yes ]; then
    tear_down
else
    print_connect
fi
