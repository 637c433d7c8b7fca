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
    apt_need libcmocka-dev clang clang-format clang-tidy libclang-rt-dev universal-ctags busybox-static \
        python3-venv python3-pip musl-tools shellcheck skopeo docker-registry
}

# The folder for what is built once and kept, images and the like.
project_cache() {
    printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}/k8s-agent-sandbox"
}

# need_venv ROOT: sets VENV to a Python environment with the packages of tests/requirements.txt.
need_venv() {
    local requirements=$1/tests/requirements.txt
    VENV=$(project_cache)/venv-$(sha256sum "$requirements" | cut -c1-16)
    [ ! -x "$VENV/bin/pytest" ] || return 0
    rm -rf "$VENV"
    python3 -m venv "$VENV" &&
        run "Python packages" "$VENV/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
}
