# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What demo.sh and tests/run.sh install on a bare Debian. To be sourced after common.sh.

# Compilers, libraries and tools to build and test everything.
apt_need_build() {
    apt_need build-essential cmake ninja-build pkg-config git ca-certificates \
        libcurl4-openssl-dev libjson-c-dev libwebsockets-dev libmicrohttpd-dev libssl-dev libyaml-dev \
        python3 openssl curl
}

apt_need_tests() {
    apt_need libcmocka-dev clang clang-format clang-tidy libclang-rt-14-dev universal-ctags busybox-static \
        python3-venv python3-pip musl-tools shellcheck skopeo docker-registry
}
