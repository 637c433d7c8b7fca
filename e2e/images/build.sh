#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the images of the demo and the tests as archives that `node.sh load`, docker, podman and skopeo take:
#
#   build.sh [WHAT...] --out DIR     WHAT: controller, gateway, sandbox-python, busybox, pause;
#                                    sandbox (the last three) or all (the default)
#
# writes DIR/sandbox-controller.tar, DIR/sandbox-gateway.tar, DIR/sandbox-python.tar, DIR/busybox.tar and
# DIR/pause.tar, named k8s-agent-sandbox/NAME:dev. No registry is needed: the base is made from Debian packages
# with mmdebstrap. Everything is kept in the cache (common.sh) under a hash of what it was made from, so
# nothing is built twice; an archive that is up to date already is not written again.
#
# Environment: IMAGE_SUITE (Debian suite; the machine's own, or bookworm), IMAGE_MIRROR (the machine's own).
# shellcheck disable=SC2016 # the hooks of mmdebstrap and the format of apt-get are expanded by those
set -euo pipefail

IMAGES_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$IMAGES_DIR/../.." && pwd)
# shellcheck source=../lib/common.sh
source "$IMAGES_DIR/../lib/common.sh"
# shellcheck source=../lib/image.sh
source "$IMAGES_DIR/../lib/image.sh"

CACHE=$(kas_cache)/images
BUILDAH_ROOT=$CACHE/buildah
MACHINE_TRUST=/etc/ssl/certs/ca-certificates.crt

usage() {
    sed -n '4,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

hash_of() {
    sha256sum | cut -c1-16
}

# The contents and the names of these files and folders.
hash_tree() {
    (cd "$ROOT" && find "$@" -type f -print0 | sort -z | xargs -0 sha256sum)
}

# ---- Debian

debian_suite() {
    local suite=""
    if [[ -n ${IMAGE_SUITE:-} ]]; then
        echo "$IMAGE_SUITE"
        return
    fi
    # shellcheck disable=SC1091
    [[ ! -r /etc/os-release ]] || suite=$(. /etc/os-release && [[ $ID == debian ]] && echo "${VERSION_CODENAME:-}") || true
    echo "${suite:-bookworm}"
}

# The mirror that this machine gets its own packages from; nothing where it has none: mmdebstrap's own then.
debian_mirror() {
    local mirror=${IMAGE_MIRROR:-}
    [[ -n $mirror ]] || mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
        awk -v suite="$(debian_suite)" '$2 == suite && $3 == "Debian" { print $1; exit }') || true
    echo "$mirror"
}

# debian_root OUT PACKAGES [OPTION...]: the tar of a minimal Debian with these packages (comma separated).
debian_root() {
    local out=$1 packages=$2 mirror
    mirror=$(debian_mirror)
    shift 2
    mmdebstrap --mode=root --variant=minbase --include="$packages" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt=force-unsafe-io \
        --aptopt='Acquire::Retries "3"' "$@" \
        --format=tar "$(debian_suite)" "$out.part" ${mirror:+"$mirror"} &&
        mv "$out.part" "$out"
}

# ---- images of the programs

# Where overlay mounts do not work buildah copies whole images instead: the same result, slower.
buildah_prepare() {
    apt_need buildah
    mkdir -p "$BUILDAH_ROOT"
    DRIVER=vfs
    ! image_overlay_works "$BUILDAH_ROOT" || DRIVER=overlay
}

buildah_here() {
    buildah --root "$BUILDAH_ROOT/$DRIVER" --runroot "$BUILDAH_ROOT/run" --storage-driver "$DRIVER" "$@"
}

# Sets BASE to a local image of Debian that has the packages of the build.
base_image() {
    local packages tar
    packages=$(paste -sd, "$ROOT/manifests/build-packages.txt"),ccache
    BASE_KEY=$(echo "$packages $(debian_suite) $(image_arch)" | hash_of)
    BASE=localhost/k8s-agent-sandbox-build:$BASE_KEY
    ! buildah_here inspect --type image "$BASE" >/dev/null 2>&1 || return 0
    tar=$CACHE/base-$BASE_KEY.tar
    apt_need mmdebstrap
    [[ -e $tar ]] || run "Making a Debian base to build in (once)" debian_root "$tar" "$packages"
    run "Importing the base" base_import "$tar"
    rm -f "$tar"
}

base_import() {
    image_archive "$1" "$BASE" '{"Cmd":["/bin/sh"]}' "$1.image" &&
        buildah_here pull "docker-archive:$1.image" &&
        rm -f "$1.image"
}

program_image() {
    local name=$1 out=$2
    mkdir -p "$CACHE/ccache"
    buildah_here bud --isolation chroot --layers=false --pull-never --build-arg "BASE=$BASE" \
        --build-arg "PROGRAMS=$name" \
        --volume "$CACHE/ccache:/ccache" --timestamp "$IMAGE_EPOCH" \
        --file "$ROOT/manifests/Containerfile" --target "$name" --tag "k8s-agent-sandbox/$name:dev" "$ROOT" &&
        rm -f "$out.part" &&
        buildah_here push --quiet "k8s-agent-sandbox/$name:dev" \
            "docker-archive:$out.part:k8s-agent-sandbox/$name:dev" &&
        mv "$out.part" "$out" &&
        buildah_here rmi --prune
}

key_program() {
    {
        hash_tree CMakeLists.txt CMakePresets.json common controller gateway manifests/Containerfile \
            manifests/build-packages.txt manifests/build-deps.sh manifests/runtime-root.sh
        debian_suite
    } | hash_of
}

key_sandbox_controller() { key_program; }
key_sandbox_gateway() { key_program; }

build_program() {
    buildah_prepare
    base_image
    run "Building the image $1" program_image "$1" "$2"
}

build_sandbox_controller() { build_program sandbox-controller "$1"; }
build_sandbox_gateway() { build_program sandbox-gateway "$1"; }

# ---- images to run in sandboxes

key_sandbox_python() {
    { declare -f python_image debian_root image_archive && debian_suite && cat "$MACHINE_TRUST" 2>/dev/null; } | hash_of
}

# Python as an image of its kind has it: `python` is there, pip may install for the user, and the user who
# owns /workspace is not root. It trusts the authorities that this machine trusts: behind a company's proxy
# pip works in a sandbox where it works outside.
python_image() {
    local out=$1 work trust=()
    work=$(mktemp -d "$CACHE/python.XXXXXX") || return 1
    [[ ! -r $MACHINE_TRUST ]] || trust+=(--customize-hook="copy-in $MACHINE_TRUST /etc/ssl/certs")
    debian_root "$work/root.tar" python3,python3-pip,python-is-python3,ca-certificates "${trust[@]}" \
        --customize-hook='rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED' \
        --customize-hook='chroot "$1" useradd --uid 1000 --home-dir /workspace --create-home --shell /bin/bash sandbox' &&
        image_archive "$work/root.tar" k8s-agent-sandbox/sandbox-python:dev \
            '{"Cmd":["sleep","infinity"],"User":"1000:1000","WorkingDir":"/workspace","Env":["PATH=/workspace/.local/bin:/usr/local/bin:/usr/bin:/bin","HOME=/workspace","LANG=C.UTF-8"]}' "$out" &&
        rm -rf "$work"
}

build_sandbox_python() {
    apt_need mmdebstrap
    run "Making the image sandbox-python from Debian packages (once)" python_image "$1"
}

key_busybox() {
    { declare -f busybox_image image_archive image_layer && dpkg-query -W busybox-static 2>/dev/null; } | hash_of
}

busybox_image() {
    local out=$1 work applet
    work=$(mktemp -d "$CACHE/busybox.XXXXXX") || return 1
    mkdir -p "$work/root"/{bin,etc,root,tmp} && chmod 1777 "$work/root/tmp" &&
        cp "$(command -v busybox)" "$work/root/bin/busybox" || return 1
    for applet in $(busybox --list); do
        [[ $applet == busybox ]] || ln -s busybox "$work/root/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$work/root/etc/passwd"
    echo 'root:x:0:' >"$work/root/etc/group"
    image_layer "$work/root" "$work/layer.tar" &&
        image_archive "$work/layer.tar" k8s-agent-sandbox/busybox:dev '{"Cmd":["sh"],"Env":["PATH=/bin"]}' "$out" &&
        rm -rf "$work"
}

build_busybox() {
    run "Making the image busybox" busybox_image "$1"
}

key_pause() { image_pause_key; }

build_pause() {
    image_pause # the node's own copy
    cp "$IMAGE_PAUSE" "$1"
}

# ---- all of it

# The archive of image $1 in the folder $2, from the cache if it was made before.
make_image() {
    local name=$1 out=$2/$1.tar stamp=$2/.$1.key key made function=${1//-/_}
    key=$("key_$function")
    if [[ -e $out && $(cat "$stamp" 2>/dev/null) == "$key" ]]; then
        note "the image $name is up to date"
        return 0
    fi
    made=$CACHE/$name-$key.tar
    if [[ ! -e $made ]]; then
        rm -f "$CACHE/$name"-*.tar
        "build_$function" "$made"
    fi
    rm -f "$stamp"
    cp "$made" "$out.part"
    mv "$out.part" "$out"
    echo "$key" >"$stamp"
    note "$out, $(du -m "$out" | cut -f1) MB"
}

wanted() {
    case $1 in
    controller | sandbox-controller) echo sandbox-controller ;;
    gateway | sandbox-gateway) echo sandbox-gateway ;;
    sandbox-python | busybox | pause) echo "$1" ;;
    sandbox) printf '%s\n' pause busybox sandbox-python ;;
    all) printf '%s\n' pause busybox sandbox-python sandbox-controller sandbox-gateway ;;
    *) return 1 ;;
    esac
}

main() {
    local out="" names=() name list
    while (($# > 0)); do
        case $1 in
        -h | --help)
            usage
            return 0
            ;;
        --out)
            out=${2:?--out needs a folder}
            shift
            ;;
        *)
            list=$(wanted "$1") || die "no image is called $1"
            mapfile -t -O "${#names[@]}" names <<<"$list"
            ;;
        esac
        shift
    done
    [[ -n $out ]] || die "--out DIR is missing"
    ((${#names[@]} > 0)) || mapfile -t names < <(wanted all)
    mkdir -p "$out" "$CACHE"
    exec 9>"$CACHE/lock"
    flock -n 9 || note "another build.sh is at work; waiting for it"
    flock 9
    rm -rf "$CACHE"/*.part "$CACHE"/python.* "$CACHE"/busybox.??????
    command -v busybox >/dev/null || [[ " ${names[*]} " != *" busybox "* ]] || apt_need busybox-static
    for name in "${names[@]}"; do
        make_image "$name" "$out"
    done
}

main "$@"
