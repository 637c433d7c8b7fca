# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Where the node's programs come from: the cache, PATH, the official release, or a build with Go.
# binaries_get sets BINARIES to a folder that holds all of BINARY_NAMES.

BINARY_NAMES=(etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
BINARIES=""
RELEASE_URL=https://dl.k8s.io
ETCD_URL=https://github.com/etcd-io/etcd/releases/download

binaries_arch() {
    case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) die "no Kubernetes for the processor $(uname -m)" ;;
    esac
}

binaries_key() {
    cat "$NODE_DIR/go.mod" "$NODE_DIR/main.go" <(echo "$KUBERNETES_VERSION $(uname -m)") | sha256sum | cut -c1-16
}

binaries_get() {
    local source
    BINARIES="$(kas_cache)/bin-$(binaries_key)"
    for source in ${K8S_AGENT_SANDBOX_NODE_GET:-cache path download build}; do
        case $source in
        cache | path | download | build) ;;
        *) die "K8S_AGENT_SANDBOX_NODE_GET: '$source' is none of cache, path, download, build" ;;
        esac
        if "binaries_from_$source"; then
            return 0
        fi
    done
    die "no Kubernetes $KUBERNETES_VERSION: neither cached nor in PATH, and neither a download nor a build worked"
}

# A folder counts only when it was finished: it is made under another name and moved into place.
binaries_from_cache() {
    [[ -d $BINARIES ]]
}

binaries_publish() {
    rm -rf "$BINARIES"
    mv "$1" "$BINARIES"
}

binaries_from_path() {
    local name found
    for name in "${BINARY_NAMES[@]}"; do
        found=$(command -v "$name") || return 1
        case $name in
        etcd) [[ $("$found" --version 2>/dev/null) == *"etcd Version: 3."[5-9]* ]] || return 1 ;;
        kubectl) [[ $("$found" version --client 2>/dev/null) == *"$KUBERNETES_VERSION"* ]] || return 1 ;;
        *) [[ $("$found" --version 2>/dev/null) == "Kubernetes $KUBERNETES_VERSION"* ]] || return 1 ;;
        esac
    done
    BINARIES="$(kas_cache)/bin-path"
    rm -rf "$BINARIES"
    mkdir -p "$BINARIES"
    for name in "${BINARY_NAMES[@]}"; do
        ln -s "$(command -v "$name")" "$BINARIES/$name"
    done
    note "using Kubernetes $KUBERNETES_VERSION and etcd from PATH"
}

binaries_curl() {
    curl --fail --silent --show-error --location --connect-timeout 5 --speed-limit 10000 --speed-time 20 "$@"
}

binaries_from_download() {
    local probe answer
    probe=$RELEASE_URL/$KUBERNETES_VERSION/bin/linux/$(binaries_arch)/kubectl.sha256
    apt_need ca-certificates curl
    step "Looking for the official release of Kubernetes $KUBERNETES_VERSION"
    if ! answer=$(binaries_curl --max-time 15 "$probe" 2>&1) || [[ ! $answer =~ ^[0-9a-f]{64} ]]; then
        ok "out of reach (${answer:0:80})"
        return 1
    fi
    ok
    KAS_TICK=binaries_download_tick run "Downloading the official release and checking its sums" binaries_download
}

binaries_download_tick() {
    du -sh "$BINARIES.download" 2>/dev/null | sed 's/\t.*/ so far/'
}

binaries_sum_ok() {
    echo "$1  $2" | sha256sum --check --strict
}

# Each file is compared with the sum the release publishes beside it.
binaries_download_one() {
    local name=$1 url sum
    url=$RELEASE_URL/$KUBERNETES_VERSION/bin/linux/$(binaries_arch)/$name
    sum=$(binaries_curl --max-time 30 "$url.sha256") &&
        binaries_curl -o "$name" "$url" &&
        binaries_sum_ok "$sum" "$name"
}

binaries_download_etcd() {
    local etcd sum
    etcd=etcd-$ETCD_VERSION-linux-$(binaries_arch)
    sum=$(binaries_curl --max-time 30 "$ETCD_URL/$ETCD_VERSION/SHA256SUMS" |
        awk -v file="$etcd.tar.gz" '$2 == file { print $1 }') &&
        binaries_curl -o "$etcd.tar.gz" "$ETCD_URL/$ETCD_VERSION/$etcd.tar.gz" &&
        binaries_sum_ok "$sum" "$etcd.tar.gz" &&
        tar -xzf "$etcd.tar.gz" --strip-components=1 "$etcd/etcd" &&
        rm -f "$etcd.tar.gz"
}

binaries_download() {
    local folder=$BINARIES.download name
    rm -rf "$folder"
    mkdir -p "$folder" && cd "$folder" || return 1
    for name in "${BINARY_NAMES[@]}"; do
        case $name in
        etcd) binaries_download_etcd || return 1 ;;
        *) binaries_download_one "$name" || return 1 ;;
        esac
    done
    chmod 755 ./* && binaries_publish "$folder"
}

binaries_from_build() {
    need_go || return 1
    mkdir -p "$(kas_cache)"
    BINARIES_TOTAL=$(cd "$NODE_DIR" && CGO_ENABLED=0 GOTOOLCHAIN=local "$GO" list -deps -tags providerless . \
        2>/dev/null | wc -l) || true
    KAS_TICK=binaries_build_tick run "Building Kubernetes $KUBERNETES_VERSION with $("$GO" env GOVERSION) (about 5 min on 2 cores, once)" \
        binaries_build
}

binaries_build_tick() {
    local built
    built=$(wc -l <"$BINARIES.packages" 2>/dev/null) || built=0
    echo "$built of about $BINARIES_TOTAL packages"
}

binaries_go_build() {
    local version=k8s.io/component-base/version minor=${KUBERNETES_VERSION#v1.} flags
    flags="-s -w -X $version.gitVersion=$KUBERNETES_VERSION -X $version.gitMajor=1"
    flags+=" -X $version.gitMinor=${minor%%.*}"
    cd "$NODE_DIR" && CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-buildvcs=false "$GO" build -v -mod=readonly \
        -trimpath -tags providerless -ldflags "$flags" -o "$1" .
}

binaries_build() {
    local folder=$BINARIES.build name
    rm -rf "$folder"
    mkdir -p "$folder" || return 1
    if ! binaries_go_build "$folder/k8s-node" 2>"$BINARIES.packages"; then
        tail -n 20 "$BINARIES.packages" >&2
        return 1
    fi
    for name in "${BINARY_NAMES[@]}"; do
        ln -s k8s-node "$folder/$name" || return 1
    done
    rm -f "$BINARIES.packages"
    "$folder/kube-apiserver" --version && binaries_publish "$folder"
}
