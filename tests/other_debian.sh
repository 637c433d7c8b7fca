#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the preset dev with the libraries of another Debian release and runs its unit tests, simulation, corpus and
# storms, in a root of its own below build/: proves that the sources hold with those versions too.
#
# usage: tests/other_debian.sh [SUITE]      (trixie)
#
# Environment: IMAGE_MIRROR (the mirror of the packages; mmdebstrap's own).
set -euo pipefail

suite=${1:-trixie}
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=e2e/lib/common.sh
. e2e/lib/common.sh
# shellcheck source=e2e/lib/packages.sh
. e2e/lib/packages.sh

other=$root/build/debian-$suite
packages=ca-certificates,cmake,ninja-build,gcc,pkg-config,libc6-dev,libcurl4-openssl-dev,libjson-c-dev,libwebsockets-dev
packages+=,libmicrohttpd-dev,libssl-dev,libyaml-dev,libcmocka-dev,python3,openssl,busybox-static

make_root() {
    rm -rf "$other" "$other.part"
    mkdir -p "$root/build"
    mmdebstrap --mode=root --variant=minbase --include="$packages" --dpkgopt=force-unsafe-io \
        --aptopt='Acquire::Retries "3"' "$suite" "$other.part" ${IMAGE_MIRROR:+"$IMAGE_MIRROR"}
    mv "$other.part" "$other"
}

apt_need mmdebstrap
[ -d "$other" ] || make_root

# What is mounted is seen by this shell and its children alone, and goes with them.
# shellcheck disable=SC2016 # expanded by the inner shells
exec unshare --mount --propagation private bash -euc '
    root=$1 other=$2
    mkdir -p "$other/src"
    mount --bind "$other" "$other"
    mount --bind "$root" "$other/src"
    mount -t proc proc "$other/proc"
    mount --rbind /dev "$other/dev"
    mount -t tmpfs tmpfs "$other/tmp"
    mkdir -p "$other/build"
    exec chroot "$other" /bin/bash -euc "
        export LC_ALL=C.UTF-8 ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:strict_string_checks=1
        cmake --preset dev -S /src -B /build
        cmake --build /build -j \$(nproc)
        ctest --test-dir /build -LE lint --output-on-failure -j \$(nproc)
    "
' bash "$root" "$other"
