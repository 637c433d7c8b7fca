# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the node changes on the machine, and how all of it is undone.
#
# Outside the data folder these are: the folder NODE_RUN (which data folder is in use, how the machine was),
# a cgroup NODE_CGROUP in each hierarchy, two bridges, iptables rules and chains, some sysctls, and a few
# folders that the kubelet, containerd and the CNI library have at fixed places (HOST_FIXED_FOLDERS).
#
# host_clean does not trust that anything is as the node left it: it serves `down`, a failed `up`, and the
# `up` after a crash.

# Longest first: each is removed only if it is empty and was not there before.
HOST_FIXED_FOLDERS=(
    /var/lib/kubelet/device-plugins /var/lib/kubelet/plugins_registry /var/lib/kubelet
    /var/lib/cni/results /var/lib/cni/networks /var/lib/cni
    /var/log/containers /var/log/pods
    /run/containerd/s /run/containerd/fifo /run/containerd/runc /run/containerd
    /run/netns
)

HOST_SYSCTLS=(
    net/ipv4/conf/all/route_localnet net/bridge/bridge-nf-call-iptables net/bridge/bridge-nf-call-ip6tables
    vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops
    kernel/keys/root_maxkeys kernel/keys/root_maxbytes fs/inotify/max_user_instances net/ipv4/ip_forward
)

# One command at a time. The descriptor is closed in daemons, so that the lock ends with this script.
host_lock() {
    mkdir -p "$(dirname "$NODE_LOCK")"
    exec 9>"$NODE_LOCK"
    flock -n 9 && return
    note "another node.sh is at work on this machine; waiting for it"
    flock -w 1200 9 || die "another node.sh is still at work on this machine"
}

host_boot_id() {
    cat /proc/sys/kernel/random/boot_id
}

# /run is empty after a reboot; the data folder keeps a copy of what was there.
host_has_state() {
    if [[ ! -r $NODE_RUN/data && -r $NODE_DATA/host/data ]]; then
        mkdir -p "$NODE_RUN"
        cp -r "$NODE_DATA/host/." "$NODE_RUN"
    fi
    [[ -r $NODE_RUN/data ]]
}

host_load_data() {
    node_set_data "$(cat "$NODE_RUN/data")"
    node_set_net "$(cat "$NODE_RUN/net" 2>/dev/null)"
}

# A node runs when all of its programs do. One of which a part is dead is of no use to anyone: `up` replaces it.
node_refuse_running() {
    local dead
    host_has_state || return 0
    host_load_data
    dead=$(daemons_dead)
    if [[ -z $dead ]]; then
        die "a node runs already: data folder $NODE_DATA, kubeconfig $NODE_KUBECONFIG (stop it with: $0 down)"
    fi
    note "the node in $NODE_DATA is broken, not running: $dead"
}

node_need_running() {
    host_has_state || die "no node is running (start one with: $0 up)"
    host_load_data
}

# ---- before the node starts

host_prepare() {
    local wanted=${K8S_AGENT_SANDBOX_NODE_DIR:-/var/lib/k8s-agent-sandbox-node}
    node_set_data "$wanted"
    host_check_ports
    host_choose_net
    [[ ! -e $NODE_DATA || -z $(ls -A "$NODE_DATA") ]] ||
        die "$NODE_DATA is not empty and belongs to no node: remove it or set K8S_AGENT_SANDBOX_NODE_DIR"
    mkdir -p "$NODE_DATA"
    host_remember
    host_load_modules
    host_set_sysctls
    host_make_cgroups
    host_make_bridge
}

host_check_ports() {
    local port taken
    for port in "$NODE_ETCD_PORT" "$NODE_ETCD_PEER_PORT" 10248 10249 10256 10257 10259; do
        taken=$(ss -Hltnp "sport = :$port")
        [[ -z $taken ]] || die "port $port is taken (is this machine a Kubernetes node already?): $taken"
    done
}

host_choose_net() {
    local octet routes
    if [[ -n ${K8S_AGENT_SANDBOX_NODE_NET:-} ]]; then
        [[ $K8S_AGENT_SANDBOX_NODE_NET =~ ^[0-9]{1,3}\.[0-9]{1,3}$ ]] ||
            die "K8S_AGENT_SANDBOX_NODE_NET must be two octets such as 10.197"
        node_set_net "$K8S_AGENT_SANDBOX_NODE_NET"
        return
    fi
    routes=$(ip -4 route show table all)
    for ((octet = 197; octet < 254; octet++)); do
        if [[ $routes != *" 10.$octet."* && $'\n'$routes != *$'\n'"10.$octet."* ]]; then
            node_set_net "10.$octet"
            return
        fi
    done
    die "no free 10.x network: set K8S_AGENT_SANDBOX_NODE_NET"
}

# Written before anything is changed. "data" comes last: it is what makes a node exist.
host_remember() {
    local folder name
    rm -rf "$NODE_RUN"
    mkdir -p "$NODE_RUN"
    for folder in "${HOST_FIXED_FOLDERS[@]}"; do
        [[ ! -e $folder ]] || echo "$folder"
    done >"$NODE_RUN/folders.before"
    for name in "${HOST_SYSCTLS[@]}"; do
        [[ ! -r /proc/sys/$name ]] || echo "$name $(cat "/proc/sys/$name")"
    done >"$NODE_RUN/sysctls.before"
    for name in iptables ip6tables; do
        host_chains "$name" >"$NODE_RUN/$name.chains.before"
    done
    host_boot_id >"$NODE_RUN/boot"
    echo "$NODE_NET" >"$NODE_RUN/net"
    echo "$NODE_DATA" >"$NODE_RUN/data"
    cp -r "$NODE_RUN" "$NODE_DATA/host"
}

# Built into some kernels, absent as modules then; the checks after it are what counts.
host_load_modules() {
    local module
    for module in overlay br_netfilter nf_conntrack; do
        [[ -d /sys/module/$module ]] || modprobe "$module" 2>/dev/null || true
    done
    [[ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]] ||
        warn "no br_netfilter in this kernel: a pod cannot reach itself or its neighbours through a Service"
}

# Sets $1 to $2 unless it is that already.
host_sysctl() {
    [[ $(cat "/proc/sys/$1") == "$2" ]] || echo "$2" >"/proc/sys/$1"
}

host_set_sysctls() {
    host_sysctl net/ipv4/ip_forward 1 || die "net.ipv4.ip_forward is 0 and cannot be set: pods would have no network"
    [[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ]] || host_sysctl net/bridge/bridge-nf-call-iptables 1
    if (($(cat /proc/sys/fs/inotify/max_user_instances) < 1024)); then
        host_sysctl fs/inotify/max_user_instances 1024 || warn "fs.inotify.max_user_instances stays low"
    fi
}

# ---- cgroups

# All hierarchies that are mounted. In hybrid mode runc makes groups in the one of version 2 as well.
host_cgroup_roots() {
    awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts | sort -u
}

# Those the kubelet works with: on version 2 the one, on version 1 (and in hybrid mode) all of version 1's.
host_cgroup_used_roots() {
    awk -v kind="$([[ $(host_cgroup_version) == 2 ]] && echo cgroup2 || echo cgroup)" \
        '$3 == kind { print $2 }' /proc/mounts | sort -u
}

host_cgroup_version() {
    if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then echo 2; else echo 1; fi
}

# Where the daemons are put, so that they and all their children can be found: any one hierarchy will do.
host_cgroup_daemons() {
    local root
    if [[ $(host_cgroup_version) == 2 ]]; then
        echo "/sys/fs/cgroup/$NODE_CGROUP/daemons"
        return
    fi
    for root in /sys/fs/cgroup/pids /sys/fs/cgroup/systemd $(host_cgroup_used_roots); do
        if [[ -e $root/cgroup.procs ]]; then
            echo "$root/$NODE_CGROUP/daemons"
            return
        fi
    done
    die "no cgroup hierarchy is mounted"
}

host_make_cgroups() {
    local root
    for root in $(host_cgroup_used_roots); do
        mkdir -p "$root/$NODE_CGROUP"
        # A new cpuset of version 1 is empty, and nothing can be put into an empty one.
        if [[ -e $root/$NODE_CGROUP/cpuset.cpus && $(host_cgroup_version) == 1 ]]; then
            cat "$root/cpuset.cpus" >"$root/$NODE_CGROUP/cpuset.cpus"
            cat "$root/cpuset.mems" >"$root/$NODE_CGROUP/cpuset.mems"
        fi
    done
    mkdir -p "$(host_cgroup_daemons)"
    [[ $(host_cgroup_version) == 1 ]] || host_delegate_cgroup
}

# The kubelet wants each of these that the machine has below its root.
host_delegate_cgroup() {
    local controller folder
    for folder in /sys/fs/cgroup "/sys/fs/cgroup/$NODE_CGROUP"; do
        for controller in cpu cpuset memory pids io hugetlb; do
            grep -qw "$controller" "$folder/cgroup.controllers" || continue
            grep -qw "$controller" "$folder/cgroup.subtree_control" && continue
            echo "+$controller" >"$folder/cgroup.subtree_control" 2>/dev/null ||
                die "the cgroup controller $controller cannot be enabled in $folder (a container whose root cgroup has processes?)"
        done
    done
}

host_cgroup_pids() {
    local root
    for root in $(host_cgroup_roots); do
        [[ -d $root/$NODE_CGROUP ]] || continue
        find "$root/$NODE_CGROUP" -name cgroup.procs -exec cat {} + 2>/dev/null || true
    done | sort -nu
}

# Nobody in these groups may resist: SIGKILL until they are empty.
host_kill_all() {
    local deadline=$((SECONDS + 30)) pids
    while pids=$(host_cgroup_pids) && [[ -n $pids ]]; do
        ((SECONDS < deadline)) || die "these processes of the node do not die: $(xargs <<<"$pids")"
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null || true
        sleep 0.05
    done
}

host_remove_cgroups() {
    local root
    for root in $(host_cgroup_roots); do
        [[ -d $root/$NODE_CGROUP ]] || continue
        wait_until 10 find "$root/$NODE_CGROUP" -depth -type d -exec rmdir {} + ||
            warn "the cgroup $root/$NODE_CGROUP could not be removed"
    done
}

# ---- network

host_make_bridge() {
    host_remove_interfaces
    ip link add "$NODE_BRIDGE" type bridge
    ip addr add "$NODE_IP/32" dev "$NODE_BRIDGE"
    ip link set "$NODE_BRIDGE" up
    host_accept_forwarding
}

# Where something else (Docker) drops what is forwarded by default, the pods' traffic is let through.
host_accept_forwarding() {
    [[ $(iptables -w -S FORWARD 2>/dev/null) == *"-P FORWARD DROP"* ]] || return 0
    iptables -w -N KAS-FORWARD
    iptables -w -A KAS-FORWARD -i "$NODE_POD_BRIDGE" -j ACCEPT
    iptables -w -A KAS-FORWARD -o "$NODE_POD_BRIDGE" -j ACCEPT
    iptables -w -I FORWARD -j KAS-FORWARD
}

host_remove_interfaces() {
    local link
    for link in $(ip -o link show master "$NODE_POD_BRIDGE" 2>/dev/null | awk -F'[ :@]+' '{ print $2 }') \
        "$NODE_POD_BRIDGE" "$NODE_BRIDGE"; do
        [[ ! -e /sys/class/net/$link ]] || ip link del "$link" 2>/dev/null || true
    done
}

# "TABLE CHAIN" of each chain that is one of ours by its name.
host_chains() {
    "$1-save" 2>/dev/null | awk -v pattern="$NODE_CHAIN_PATTERN" '
        /^\*/ { table = substr($1, 2) }
        /^:/ { chain = substr($1, 2); if (chain ~ pattern) print table, chain }'
}

# Removes the chains that were not there before the node, and each rule that jumps to one, at once per table.
host_remove_rules() {
    local command=$1 before=$NODE_RUN/$1.chains.before
    [[ -e $before ]] || before=/dev/null
    "$command-save" 2>/dev/null | awk -v pattern="$NODE_CHAIN_PATTERN" -v before="$before" '
        BEGIN { while ((getline line < before) > 0) kept[line] = 1 }
        function ours(chain) { return chain ~ pattern && !((table " " chain) in kept) }
        function flush_table(   i) {
            if (chains == 0) return
            print "*" table
            for (i = 0; i < chains; i++) print ":" chain[i] " - [0:0]"
            for (i = 0; i < rules; i++) print rule[i]
            for (i = 0; i < chains; i++) print "-X " chain[i]
            print "COMMIT"
        }
        /^\*/ { table = substr($1, 2); chains = rules = 0 }
        /^:/ { name = substr($1, 2); if (ours(name)) chain[chains++] = name }
        /^-A / && !ours($2) {
            for (i = 3; i < NF; i++)
                if (($i == "-j" || $i == "-g") && ours($(i + 1))) { $1 = "-D"; rule[rules++] = $0 }
        }
        /^COMMIT/ { flush_table() }' | "$command-restore" --noflush -w 10 ||
        warn "some $command rules of the node could not be removed"
}

# ---- mounts and files

# Deepest first. A lazy unmount is the last resort for one that is busy for longer than it should be.
host_unmount() {
    local point
    while read -r point; do
        umount "$point" 2>/dev/null || wait_until 2 umount "$point" || umount -l "$point" 2>/dev/null || true
    done < <(awk -v data="$NODE_DATA/" 'index($5, data) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
}

# A shim's socket has a fixed place; the container's folder says which it is.
host_remove_shim_sockets() {
    local address
    for address in "$NODE_DATA"/containerd/state/io.containerd.runtime.v2.task/*/*/address; do
        [[ -r $address ]] || continue
        address=$(cat "$address")
        [[ $address != unix:///run/containerd/s/* ]] || rm -f "${address#unix://}"
    done
}

host_remove_fixed_files() {
    local file folder
    for file in /var/log/containers/*.log; do
        [[ $(readlink "$file" 2>/dev/null) != "$NODE_DATA"/* ]] || rm -f "$file"
    done
    rm -f "/var/lib/cni/results/$NODE_CNI_NAME"-*
    for folder in "$NODE_DATA"/containerd/root/io.containerd.grpc.v1.cri/sandboxes/*; do
        rm -f "/var/lib/cni/results/cni-loopback-${folder##*/}-lo"
    done
    for folder in "${HOST_FIXED_FOLDERS[@]}"; do
        grep -qxF "$folder" "$NODE_RUN/folders.before" 2>/dev/null && continue
        [[ ! -d $folder ]] || find "$folder" -depth \( -type d -o -type s -o -name kubelet_internal_checkpoint \) \
            -delete 2>/dev/null || true
    done
}

host_restore_sysctls() {
    local name value
    [[ -r $NODE_RUN/sysctls.before ]] || return 0
    while read -r name value; do
        host_sysctl "$name" "$value" 2>/dev/null || warn "the sysctl $name could not be put back to $value"
    done <"$NODE_RUN/sysctls.before"
}

# After a reboot only files are left of a node.
host_clean() {
    local rebooted=""
    node_set_data "$(cat "$NODE_RUN/data")"
    [[ $(cat "$NODE_RUN/boot" 2>/dev/null) == "$(host_boot_id)" ]] || rebooted=yes
    host_kill_all
    host_remove_shim_sockets
    host_unmount
    host_remove_interfaces
    if [[ -z $rebooted ]]; then
        host_remove_rules iptables
        host_remove_rules ip6tables
        host_restore_sysctls
    fi
    host_remove_cgroups
    host_remove_fixed_files
    rm -rf --one-file-system "$NODE_DATA"
    rm -rf "$NODE_RUN"
}

# kube-proxy has written the API server's Service when its address is in the rules.
host_proxy_ready() {
    [[ $(iptables-save -t nat 2>/dev/null) == *"KUBE-SERVICES -d $NODE_SERVICE_IP/32"* ]]
}
