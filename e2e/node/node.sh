#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A real one-node Kubernetes on this machine, for the demo and the tests: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kubelet, kube-proxy and a containerd of its own.
#
# See README.md beside this file, or `node.sh help`.
set -euo pipefail

NODE_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/common.sh
source "$NODE_DIR/../lib/common.sh"
# shellcheck source=../lib/image.sh
source "$NODE_DIR/../lib/image.sh"
# shellcheck source=lib/settings.sh
source "$NODE_DIR/lib/settings.sh"
# shellcheck source=lib/binaries.sh
source "$NODE_DIR/lib/binaries.sh"
# shellcheck source=lib/config.sh
source "$NODE_DIR/lib/config.sh"
# shellcheck source=lib/host.sh
source "$NODE_DIR/lib/host.sh"
# shellcheck source=lib/daemons.sh
source "$NODE_DIR/lib/daemons.sh"

usage() {
    cat <<'USAGE'
usage: node.sh COMMAND

  up                    start the node; exits 1 when one runs already; cleans up after a crashed one first
  down                  stop it and remove everything it made
  status                what runs and where things are; exits 0 when all of it runs, 1 when a part is dead,
                        3 when there is no node
  load IMAGE.tar...     import image archives (docker or OCI); pods use them with imagePullPolicy
                        Never or IfNotPresent
  kubeconfig            print the path of the administrator's kubeconfig
  kubectl ARG...        run kubectl against the node
  registry HOST:PORT    let the node pull from a plain-HTTP registry at HOST:PORT
  build                 only get the binaries (cached, from PATH, downloaded, or built)
  help                  this text

environment:
  K8S_AGENT_SANDBOX_NODE_DIR   the data folder (default /var/lib/k8s-agent-sandbox-node)
  K8S_AGENT_SANDBOX_NODE_NET   the first two octets of the node's private network (default: the first
                               free one from 10.197 on)
  K8S_AGENT_SANDBOX_NODE_GET   where binaries may come from (default "cache path download build")
  XDG_CACHE_HOME               built binaries are kept in $XDG_CACHE_HOME/k8s-agent-sandbox-node
USAGE
}

node_install_packages() {
    apt_need ca-certificates conntrack containerd containernetworking-plugins curl ethtool iproute2 iptables \
        openssl procps runc socat util-linux
}

cmd_up() {
    host_lock
    node_refuse_running
    node_install_packages
    binaries_get
    image_pause
    if host_has_state; then
        step "Cleaning up after a node that did not shut down"
        host_clean
        ok
    fi
    trap 'node_up_failed' EXIT
    host_prepare
    node_start
    trap - EXIT
    note "kubeconfig: $NODE_KUBECONFIG"
    note "audit log:  $NODE_AUDIT_LOG"
    kas_line "The node is up."
}

# A start that fails leaves nothing behind but its logs.
node_up_failed() {
    local kept
    kept="$(kas_cache)/failed-node-logs"
    trap - EXIT
    host_has_state || exit 1
    warn "the node did not come up; its logs are in $kept"
    rm -rf "$kept"
    cp -r "$NODE_LOGS" "$kept" 2>/dev/null || true
    host_clean
    exit 1
}

node_start() {
    step "Writing certificates and configuration"
    config_write_all
    ok
    step "Starting etcd and containerd"
    daemon_start containerd
    daemon_start etcd
    daemon_wait containerd 60 "does not answer" daemon_containerd_ready
    ok
    step "Starting the API server"
    daemon_start kube-apiserver
    daemon_wait kube-apiserver 180 "is not ready after 180 s" node_kubectl get --raw /readyz
    ok
    step "Starting controllers, scheduler, kubelet and proxy"
    daemon_start kube-controller-manager
    daemon_start kube-scheduler
    daemon_start kubelet
    daemon_start kube-proxy
    daemon_ctr images import "$IMAGE_PAUSE" >/dev/null || daemon_die containerd "did not take the pause image"
    daemon_wait kubelet 180 "has no Ready node after 180 s" node_is_ready
    daemon_wait kube-controller-manager 60 "made no default ServiceAccount in 60 s" \
        node_kubectl -n default get serviceaccount default
    daemon_wait kube-proxy 60 "wrote no Service rules in 60 s" host_proxy_ready
    ok
}

node_is_ready() {
    [[ $(node_kubectl get node "$NODE_NAME" \
        -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]]
}

cmd_down() {
    host_lock
    if ! host_has_state; then
        kas_line "No node is running."
        return 0
    fi
    host_load_data
    step "Stopping the node in $NODE_DATA"
    host_clean
    ok
}

cmd_status() {
    local dead
    if ! host_has_state; then
        echo "no node"
        return 3
    fi
    host_load_data
    dead=$(daemons_dead)
    echo "data folder: $NODE_DATA"
    echo "kubeconfig:  $NODE_KUBECONFIG"
    echo "programs:    $NODE_BIN (kubectl among them)"
    echo "audit log:   $NODE_AUDIT_LOG"
    echo "logs:        $NODE_LOGS"
    echo "containerd:  $NODE_CONTAINERD_SOCKET"
    daemons_print
    if [[ -n $dead ]]; then
        echo "state:       broken, not running: $dead"
        return 1
    fi
    echo "state:       running"
    node_kubectl get node -o wide || return 1
}

cmd_load() {
    (($# > 0)) || die "load needs at least one image archive"
    node_need_running
    local archive
    for archive in "$@"; do
        [[ -r $archive ]] || die "$archive cannot be read"
        run "Loading $archive" daemon_ctr images import --no-unpack=false "$archive"
    done
}

cmd_kubeconfig() {
    node_need_running
    echo "$NODE_KUBECONFIG"
}

cmd_kubectl() {
    node_need_running
    KUBECONFIG=$NODE_KUBECONFIG exec "$NODE_BIN/kubectl" "$@"
}

cmd_registry() {
    (($# == 1)) || die "registry needs HOST:PORT"
    node_need_running
    config_write_registry "$1"
    echo "$NODE_DATA/containerd/certs.d/$1/hosts.toml"
}

cmd_build() {
    binaries_get
    note "programs: $BINARIES"
}

main() {
    local command=${1:-help}
    (($# == 0)) || shift
    case $command in
    help | -h | --help) usage ;;
    up | down | status | load | kubeconfig | kubectl | registry | build)
        [[ $(id -u) == 0 ]] || die "must be root"
        "cmd_$command" "$@"
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
}

main "$@"
