# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Writes everything the node's programs read: keys and certificates, kubeconfigs, and configuration files.

config_write_all() {
    mkdir -p "$NODE_BIN" "$NODE_LOGS" "$NODE_ETC" "$NODE_PKI" "$NODE_DATA"/{run,etcd,audit,kubelet,pod-logs} \
        "$NODE_DATA"/containerd/{root,state,certs.d} "$NODE_DATA"/cni/net.d "$NODE_DATA"/kubelet-plugins
    chmod 700 "$NODE_PKI" "$NODE_DATA/etcd" "$NODE_DATA/audit"
    config_link_programs
    config_write_pki
    config_write_kubeconfigs
    config_write_containerd
    config_write_cni
    config_write_audit_policy
    config_write_kubelet
    config_write_kube_proxy
}

config_link_programs() {
    local name
    for name in "${BINARY_NAMES[@]}"; do
        ln -sfn "$(readlink -f "$BINARIES")/$name" "$NODE_BIN/$name"
    done
}

# One line of openssl's chatter per certificate is worth nothing unless it fails.
config_openssl() {
    local said
    said=$(openssl "$@" 2>&1) || die "openssl $1 failed: $said"
}

config_key() {
    config_openssl ecparam -name prime256v1 -genkey -noout -out "$NODE_PKI/$1.key"
}

config_ca() {
    config_key ca
    config_openssl req -x509 -new -sha256 -key "$NODE_PKI/ca.key" -days 3650 -subj /CN=k8s-agent-sandbox-node \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature \
        -out "$NODE_PKI/ca.crt"
}

# config_certificate NAME SUBJECT USAGE [ALTERNATIVE NAMES]
config_certificate() {
    local name=$1 subject=$2 usage=$3 names=${4:-} extensions
    extensions=$(printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=%s\n' "$usage")
    [[ -z $names ]] || extensions+=$'\n'"subjectAltName=$names"
    config_key "$name"
    config_openssl req -new -sha256 -key "$NODE_PKI/$name.key" -subj "$subject" -out "$NODE_PKI/$name.csr"
    config_openssl x509 -req -sha256 -in "$NODE_PKI/$name.csr" -CA "$NODE_PKI/ca.crt" -CAkey "$NODE_PKI/ca.key" \
        -CAcreateserial -days 3650 -extfile <(printf '%s\n' "$extensions") -out "$NODE_PKI/$name.crt"
    rm -f "$NODE_PKI/$name.csr"
}

config_write_pki() {
    local kubernetes=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
    kubernetes+=,DNS:kubernetes.default.svc.cluster.local,DNS:localhost
    config_ca
    config_certificate etcd /CN=etcd serverAuth,clientAuth DNS:localhost,IP:127.0.0.1
    config_certificate apiserver /CN=kube-apiserver serverAuth \
        "$kubernetes,IP:127.0.0.1,IP:$NODE_SERVICE_IP,IP:$NODE_IP"
    config_certificate apiserver-client /O=system:masters/CN=kube-apiserver clientAuth
    config_certificate admin /O=system:masters/CN=kubernetes-admin clientAuth
    config_certificate controller-manager /CN=system:kube-controller-manager clientAuth
    config_certificate scheduler /CN=system:kube-scheduler clientAuth
    config_certificate proxy /CN=system:kube-proxy clientAuth
    config_certificate node "/O=system:nodes/CN=system:node:$NODE_NAME" serverAuth,clientAuth \
        "DNS:$NODE_NAME,IP:$NODE_IP"
    config_openssl genrsa -out "$NODE_PKI/service-account.key" 2048
}

# config_kubeconfig FILE CERTIFICATE
config_kubeconfig() {
    cat >"$1" <<YAML
apiVersion: v1
kind: Config
clusters:
  - name: $NODE_NAME
    cluster:
      server: https://$NODE_IP:6443
      certificate-authority-data: $(base64 -w0 <"$NODE_PKI/ca.crt")
users:
  - name: $2
    user:
      client-certificate-data: $(base64 -w0 <"$NODE_PKI/$2.crt")
      client-key-data: $(base64 -w0 <"$NODE_PKI/$2.key")
contexts:
  - name: $NODE_NAME
    context:
      cluster: $NODE_NAME
      user: $2
current-context: $NODE_NAME
YAML
    chmod 600 "$1"
}

config_write_kubeconfigs() {
    config_kubeconfig "$NODE_KUBECONFIG" admin
    config_kubeconfig "$NODE_ETC/controller-manager.kubeconfig" controller-manager
    config_kubeconfig "$NODE_ETC/scheduler.kubeconfig" scheduler
    config_kubeconfig "$NODE_ETC/kubelet.kubeconfig" node
    config_kubeconfig "$NODE_ETC/proxy.kubeconfig" proxy
}

config_write_containerd() {
    local snapshotter=overlayfs
    if ! image_overlay_works "$NODE_DATA/containerd"; then
        snapshotter=native
        warn "no overlay mounts below $NODE_DATA: containerd copies image layers (slower, more disk)"
    fi
    cat >"$NODE_ETC/containerd.toml" <<TOML
version = 2
root = "$NODE_DATA/containerd/root"
state = "$NODE_DATA/containerd/state"

[grpc]
  address = "$NODE_CONTAINERD_SOCKET"

[plugins."io.containerd.grpc.v1.cri"]
  # A machine without CAP_SYS_RESOURCE may not lower a score; without this every pod fails there.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  sandbox_image = "$NODE_PAUSE_IMAGE"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$(config_cni_programs)"
    conf_dir = "$NODE_DATA/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$NODE_DATA/containerd/certs.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "$NODE_DATA/run/runc"
TOML
}

config_cni_programs() {
    local folder
    for folder in /usr/lib/cni /opt/cni/bin; do
        if [[ -x $folder/bridge ]]; then
            echo "$folder"
            return 0
        fi
    done
    die "no CNI plugins in /usr/lib/cni or /opt/cni/bin"
}

config_write_cni() {
    cat >"$NODE_DATA/cni/net.d/10-node.conflist" <<JSON
{
  "cniVersion": "1.0.0",
  "name": "$NODE_CNI_NAME",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "$NODE_POD_BRIDGE",
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "$NODE_DATA/cni/ipam",
        "ranges": [[{ "subnet": "$NODE_POD_CIDR" }]],
        "routes": [{ "dst": "0.0.0.0/0" }]
      }
    },
    { "type": "portmap", "capabilities": { "portMappings": true } }
  ]
}
JSON
}

# Every request with its user name and user agent. Left out: what the control plane does every few seconds
# whether or not anyone uses the cluster.
config_write_audit_policy() {
    cat >"$NODE_ETC/audit-policy.yaml" <<'YAML'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
  - RequestReceived
rules:
  - level: None
    nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]
  - level: None
    users: ["system:apiserver", "system:node:sandbox-node", "system:kube-controller-manager", "system:kube-scheduler"]
    resources:
      - group: coordination.k8s.io
        resources: ["leases"]
  - level: Metadata
YAML
}

# Debian's systemd-resolved, where it is used, listens on a loopback address that no pod can reach.
config_resolv_conf() {
    if grep -q '^nameserver 127\.0\.0\.53' /etc/resolv.conf 2>/dev/null && [[ -r /run/systemd/resolve/resolv.conf ]]; then
        echo /run/systemd/resolve/resolv.conf
    else
        echo /etc/resolv.conf
    fi
}

config_write_kubelet() {
    cat >"$NODE_ETC/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
port: 10250
readOnlyPort: 0
healthzBindAddress: 127.0.0.1
authentication:
  anonymous: { enabled: false }
  webhook: { enabled: true }
  x509: { clientCAFile: $NODE_PKI/ca.crt }
authorization: { mode: Webhook }
tlsCertFile: $NODE_PKI/node.crt
tlsPrivateKeyFile: $NODE_PKI/node.key
containerRuntimeEndpoint: unix://$NODE_CONTAINERD_SOCKET
cgroupDriver: cgroupfs
cgroupRoot: /$NODE_CGROUP
failCgroupV1: false
failSwapOn: false
podLogsDir: $NODE_DATA/pod-logs
volumePluginDir: $NODE_DATA/kubelet-plugins
resolvConf: $(config_resolv_conf)
clusterDomain: cluster.local
makeIPTablesUtilChains: false
maxPods: 300
serializeImagePulls: false
imageGCHighThresholdPercent: 100
registryPullQPS: 0
kubeAPIQPS: 200
kubeAPIBurst: 400
eventRecordQPS: 100
eventBurst: 200
evictionHard:
  memory.available: 100Mi
  nodefs.available: 1%
  nodefs.inodesFree: 1%
  imagefs.available: 1%
YAML
}

# The node may not write the connection tracker's sysctls everywhere: zero leaves them as they are.
config_write_kube_proxy() {
    cat >"$NODE_ETC/kube-proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection:
  kubeconfig: $NODE_ETC/proxy.kubeconfig
clusterCIDR: $NODE_POD_CIDR
hostnameOverride: $NODE_NAME
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
nodePortAddresses: ["$NODE_IP/32"]
iptables:
  localhostNodePorts: false
  minSyncPeriod: 100ms
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
YAML
}

# containerd reads this folder anew for each pull.
config_write_registry() {
    local folder=$NODE_DATA/containerd/certs.d/$1
    [[ $1 =~ ^[A-Za-z0-9.-]+:[0-9]+$ ]] || die "'$1' is no HOST:PORT"
    mkdir -p "$folder"
    cat >"$folder/hosts.toml" <<TOML
server = "http://$1"

[host."http://$1"]
  capabilities = ["pull", "resolve"]
TOML
}
