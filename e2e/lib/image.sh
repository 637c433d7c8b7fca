# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Image archives (docker-archive: a layer, a configuration, a manifest) made with tar alone, and the image
# that every pod of the node needs first. common.sh must have been sourced.

IMAGE_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
IMAGE_EPOCH=1704067200
NODE_PAUSE_IMAGE=docker.io/k8s-agent-sandbox/pause:dev

image_arch() {
    case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
    esac
}

# Do overlay mounts work below folder $1? They do not stack on themselves: not in a container whose root is
# an overlay.
image_overlay_works() {
    local try=$1/overlay-try status=0
    mkdir -p "$try"/{lower,upper,work,merged}
    if mount -t overlay overlay -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" "$try/merged" \
        2>/dev/null; then
        umount "$try/merged"
    else
        status=1
    fi
    rm -rf "$try"
    return "$status"
}

# image_archive LAYER_TAR NAME CONFIG_JSON OUT: an archive of one layer. CONFIG_JSON is the image's "config"
# (Cmd, Env, User, ...). OUT appears whole or not at all.
image_archive() {
    local layer=$1 name=$2 config=$3 out=$4 work sum image
    work=$(mktemp -d "$out.XXXXXX") || return 1
    sum=$(sha256sum "$layer" | cut -d' ' -f1) &&
        cp --reflink=auto "$layer" "$work/layer.tar" || return 1
    printf '{"created":"%s","architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s"}]}' \
        "$(date -u -d "@$IMAGE_EPOCH" +%FT%TZ)" "$(image_arch)" "$config" "$sum" \
        "$(date -u -d "@$IMAGE_EPOCH" +%FT%TZ)" >"$work/config.json"
    image=$(sha256sum "$work/config.json" | cut -d' ' -f1)
    mv "$work/config.json" "$work/$image.json"
    printf '[{"Config":"%s.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$image" "$name" >"$work/manifest.json"
    tar -C "$work" --owner=0 --group=0 --mtime="@$IMAGE_EPOCH" -cf "$work/archive" manifest.json "$image.json" layer.tar &&
        mv "$work/archive" "$out" &&
        rm -rf "$work"
}

# image_layer FOLDER OUT: the folder as a layer, the same bytes for the same content.
image_layer() {
    tar -C "$1" --sort=name --numeric-owner --owner=0 --group=0 --mtime="@$IMAGE_EPOCH" -cf "$2" .
}

image_pause_build() {
    local out=$1 work
    work=$(mktemp -d "$out.XXXXXX") || return 1
    mkdir "$work/root" &&
        cc -O2 -Wall -Wextra -Werror -static -s -o "$work/root/pause" "$IMAGE_LIB/../images/pause.c" &&
        image_layer "$work/root" "$work/layer.tar" &&
        image_archive "$work/layer.tar" "$NODE_PAUSE_IMAGE" '{"Entrypoint":["/pause"],"User":"65535:65535"}' "$out" &&
        rm -rf "$work"
}

# A hash of what the image is made from.
image_pause_key() {
    { declare -f image_pause_build image_archive image_layer && cat "$IMAGE_LIB/../images/pause.c"; } |
        sha256sum | cut -c1-16
}

# Sets IMAGE_PAUSE to the archive of the pause image, made once and kept in the cache.
image_pause() {
    IMAGE_PAUSE="$(kas_cache)/pause-$(image_pause_key).tar"
    if [[ ! -e $IMAGE_PAUSE ]]; then
        command -v cc >/dev/null || apt_need gcc libc6-dev
        mkdir -p "$(kas_cache)"
        run "Building the pause image" image_pause_build "$IMAGE_PAUSE"
    fi
}
