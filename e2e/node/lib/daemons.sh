# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The node's programs: their arguments, starting them, and telling whether they run.

# Sets DAEMON_ARGV to the command line of daemon $1.
daemon_argv() {
    "daemon_argv_${1//-/_}"
}

daemon_argv_containerd() {
    DAEMON_ARGV=(containerd --config "$NODE_ETC/containerd.toml")
}

# The cluster is thrown away: it need not survive a power cut, and without fsync it is several times faster.
daemon_argv_etcd() {
    local client=https://127.0.0.1:$NODE_ETCD_PORT peer=https://127.0.0.1:$NODE_ETCD_PEER_PORT
    DAEMON_ARGV=("$NODE_BIN/etcd" --name node --data-dir "$NODE_DATA/etcd" --unsafe-no-fsync
        --listen-client-urls "$client" --advertise-client-urls "$client"
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "node=$peer"
        --cert-file "$NODE_PKI/etcd.crt" --key-file "$NODE_PKI/etcd.key"
        --client-cert-auth --trusted-ca-file "$NODE_PKI/ca.crt"
        --peer-cert-file "$NODE_PKI/etcd.crt" --peer-key-file "$NODE_PKI/etcd.key"
        --peer-client-cert-auth --peer-trusted-ca-file "$NODE_PKI/ca.crt"
        --quota-backend-bytes 4294967296 --auto-compaction-retention 1h --log-level warn)
}

# Audit: one file that is never rotated, written before the answer goes out, so that a test that has its
# answer finds the line.
daemon_argv_kube_apiserver() {
    # shellcheck disable=SC2054
    DAEMON_ARGV=("$NODE_BIN/kube-apiserver"
        --bind-address="$NODE_IP" --advertise-address="$NODE_IP" --secure-port=6443
        --etcd-servers="https://127.0.0.1:$NODE_ETCD_PORT" --etcd-cafile="$NODE_PKI/ca.crt"
        --etcd-certfile="$NODE_PKI/etcd.crt" --etcd-keyfile="$NODE_PKI/etcd.key"
        --cert-dir="$NODE_PKI" --tls-cert-file="$NODE_PKI/apiserver.crt"
        --tls-private-key-file="$NODE_PKI/apiserver.key" --client-ca-file="$NODE_PKI/ca.crt"
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction
        --anonymous-auth=true --profiling=false
        --kubelet-certificate-authority="$NODE_PKI/ca.crt"
        --kubelet-client-certificate="$NODE_PKI/apiserver-client.crt"
        --kubelet-client-key="$NODE_PKI/apiserver-client.key"
        --kubelet-preferred-address-types=InternalIP
        --service-cluster-ip-range="$NODE_SERVICE_CIDR"
        --service-account-issuer=https://kubernetes.default.svc.cluster.local
        --service-account-key-file="$NODE_PKI/service-account.key"
        --service-account-signing-key-file="$NODE_PKI/service-account.key"
        --audit-policy-file="$NODE_ETC/audit-policy.yaml" --audit-log-path="$NODE_AUDIT_LOG"
        --audit-log-mode=blocking --audit-log-maxsize=100000)
}

daemon_argv_kube_controller_manager() {
    DAEMON_ARGV=("$NODE_BIN/kube-controller-manager"
        --kubeconfig="$NODE_ETC/controller-manager.kubeconfig"
        --authentication-kubeconfig="$NODE_ETC/controller-manager.kubeconfig"
        --authorization-kubeconfig="$NODE_ETC/controller-manager.kubeconfig"
        --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true
        --service-account-private-key-file="$NODE_PKI/service-account.key" --root-ca-file="$NODE_PKI/ca.crt"
        --cert-dir="$NODE_PKI/controller-manager" --kube-api-qps=200 --kube-api-burst=400)
}

daemon_argv_kube_scheduler() {
    DAEMON_ARGV=("$NODE_BIN/kube-scheduler"
        --kubeconfig="$NODE_ETC/scheduler.kubeconfig"
        --authentication-kubeconfig="$NODE_ETC/scheduler.kubeconfig"
        --authorization-kubeconfig="$NODE_ETC/scheduler.kubeconfig"
        --bind-address=127.0.0.1 --leader-elect=false --cert-dir="$NODE_PKI/scheduler"
        --kube-api-qps=200 --kube-api-burst=400)
}

daemon_argv_kubelet() {
    DAEMON_ARGV=("$NODE_BIN/kubelet"
        --config="$NODE_ETC/kubelet.yaml" --kubeconfig="$NODE_ETC/kubelet.kubeconfig"
        --root-dir="$NODE_DATA/kubelet" --cert-dir="$NODE_PKI"
        --hostname-override="$NODE_NAME" --node-ip="$NODE_IP")
}

daemon_argv_kube_proxy() {
    DAEMON_ARGV=("$NODE_BIN/kube-proxy" --config="$NODE_ETC/kube-proxy.yaml")
}

# A program that asks a proxy for its neighbour on this machine does not reach it.
daemon_environment() {
    local own=127.0.0.1,localhost,.svc,.cluster.local,$NODE_NET.0.0/16
    export NO_PROXY="${NO_PROXY:+$NO_PROXY,}$own" no_proxy="${no_proxy:+$no_proxy,}$own"
    export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
    unset KUBECONFIG
}

# Starts daemon $1 in the node's cgroup and in a session of its own; its output goes to its log.
daemon_start() {
    local name=$1 DAEMON_ARGV=() group
    group=$(host_cgroup_daemons)
    daemon_argv "$name"
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        daemon_environment
        cd /
        exec setsid "${DAEMON_ARGV[@]}"
    ) </dev/null >>"$NODE_LOGS/$name.log" 2>&1 9>&- &
    daemon_remember "$name" "$!"
}

# A process is known by its number and its start time: a number alone may be someone else's by now.
daemon_start_time() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # The name, in parentheses, may hold anything: count from its end.
    stat=${stat##*) }
    [[ $stat != Z* ]] || return 1
    cut -d' ' -f20 <<<"$stat"
}

daemon_remember() {
    echo "$2 $(daemon_start_time "$2")" >"$NODE_DATA/run/$1.pid"
}

daemon_runs() {
    local pid started
    read -r pid started 2>/dev/null <"$NODE_DATA/run/$1.pid" || return 1
    [[ -n $started && $(daemon_start_time "$pid") == "$started" ]]
}

daemons_dead() {
    local name dead=()
    for name in "${NODE_DAEMONS[@]}"; do
        daemon_runs "$name" || dead+=("$name")
    done
    echo "${dead[*]}"
}

daemons_print() {
    local name pid
    for name in "${NODE_DAEMONS[@]}"; do
        if daemon_runs "$name"; then
            read -r pid _ <"$NODE_DATA/run/$name.pid"
            printf '  %-24s pid %s, %s MiB\n' "$name" "$pid" \
                "$(awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status" 2>/dev/null)"
        else
            printf '  %-24s not running\n' "$name"
        fi
    done
}

# daemon_wait NAME SECONDS WHAT CMD [ARG...]: call CMD until it succeeds; the end of the daemon ends the wait.
daemon_wait() {
    local name=$1 deadline=$((SECONDS + $2)) what=$3
    shift 3
    until "$@" >/dev/null 2>&1; do
        daemon_runs "$name" || daemon_die "$name" "ended"
        ((SECONDS < deadline)) || daemon_die "$name" "$what"
        sleep 0.1
    done
}

daemon_die() {
    kas_log_tail "$NODE_LOGS/$1.log"
    die "$1 $2"
}

daemon_ctr() {
    ctr --address "$NODE_CONTAINERD_SOCKET" --namespace k8s.io "$@"
}

daemon_containerd_ready() {
    daemon_ctr version
}

node_kubectl() {
    "$NODE_BIN/kubectl" --kubeconfig "$NODE_KUBECONFIG" --request-timeout=10s "$@"
}
