# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# Names, versions and paths of the node. Everything the node writes is below NODE_DATA, except for what
# host.sh lists.

KUBERNETES_VERSION=v1.34.4
ETCD_VERSION=v3.6.4

NODE_NAME=sandbox-node
NODE_CGROUP=k8s-agent-sandbox-node
NODE_BRIDGE=kas-node
NODE_POD_BRIDGE=kas-pods
NODE_CNI_NAME=k8s-agent-sandbox-node
NODE_CHAIN_PATTERN='^(KUBE-|CNI-|KAS-)'

# What must be known though the data folder is gone: which folder it is, and how the machine was before.
NODE_RUN=/run/k8s-agent-sandbox-node
NODE_LOCK=/run/lock/k8s-agent-sandbox-node.lock

# Ports on the loopback interface; those on the node's own address are the usual ones (6443, 10250).
NODE_ETCD_PORT=23790
NODE_ETCD_PEER_PORT=23800

NODE_DAEMONS=(containerd etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)

node_set_data() {
    NODE_DATA=$1
    NODE_BIN=$NODE_DATA/bin
    NODE_LOGS=$NODE_DATA/log
    NODE_PKI=$NODE_DATA/pki
    NODE_ETC=$NODE_DATA/etc
    NODE_KUBECONFIG=$NODE_DATA/admin.kubeconfig
    NODE_AUDIT_LOG=$NODE_DATA/audit/audit.log
    NODE_CONTAINERD_SOCKET=$NODE_DATA/run/containerd.sock
}

# One private /16 holds all of the node: pods in its first half, services, and the node itself.
node_set_net() {
    NODE_NET=$1
    NODE_POD_CIDR=$NODE_NET.0.0/20
    NODE_SERVICE_CIDR=$NODE_NET.128.0/18
    NODE_SERVICE_IP=$NODE_NET.128.1
    NODE_IP=$NODE_NET.255.1
}

node_set_data "${K8S_AGENT_SANDBOX_NODE_DIR:-/var/lib/k8s-agent-sandbox-node}"
[[ $NODE_DATA == /?* && $NODE_DATA != *[[:space:]]* ]] ||
    die "K8S_AGENT_SANDBOX_NODE_DIR must be an absolute path without blanks"
