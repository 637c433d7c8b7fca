#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every test; installs what is missing first.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: tests/run.sh [--fast | --long] [--keep-node]

  (nothing)    unit, simulation, wire, fuzz corpus and lint under ASan+UBSan, the first three under
               TSan too, a clang build, then e2e on a one-node Kubernetes of its own
  --fast       unit, simulation, wire, corpus and lint of the preset dev, without what is marked as slow:
               clang-tidy, the storms, and tests that cost more than they add
  --long       everything, with the soak and storm tests at their full length, and with Debian 13's libraries too
  --keep-node  leave the one-node cluster running (it is also left when it ran before)

Ends with `N passed, N failed, N skipped`; exit status 0 only when all pass. Logs and JUnit files:
build/results.
TEXT
}

mode=full keep=no
while [ $# -gt 0 ]; do
    case $1 in
    --fast) mode=fast ;;
    --long) mode=long ;;
    --keep-node) keep=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=e2e/lib/common.sh
. e2e/lib/common.sh
# shellcheck source=e2e/lib/packages.sh
. e2e/lib/packages.sh

results=$root/build/results
mkdir -p "$results"
rm -f "$results"/*.xml
cache=$(project_cache)
jobs=$(nproc)
programs_at_once=$jobs tests_at_once=$((jobs * 2))
[ "$mode" != fast ] || programs_at_once=$((jobs * 3)) tests_at_once=$((jobs * 4)) # most wait most of the time
failed_stages=()
expected=()

# stage NAME LOG-NAME COMMAND… : runs it with its output in a log, shows the end of the log on failure.
stage() {
    local name=$1 log=$results/$2.log started=$SECONDS
    shift 2
    printf '== %s\n' "$name"
    if "$@" >"$log" 2>&1; then
        printf '   ok, %d s: %s\n' $((SECONDS - started)) "$(closing_line "$log")"
    else
        printf '   FAILED, %d s; the end of %s:\n' $((SECONDS - started)) "$log"
        tail -n 60 "$log" | sed 's/^/   | /'
        failed_stages+=("$name")
        return 1
    fi
}

closing_line() { grep -E 'tests passed|passed.* in |[0-9]+ passed' "$1" | tail -n 1 || true; }

build_preset() {
    local preset=$1
    shift
    cmake --preset "$preset" "$@"
    cmake --build "build/$preset" -j "$jobs"
}

run_ctest() { # PRESET LABEL-ARGUMENTS…
    local preset=$1 junit=$results/ctest-$1.xml
    shift
    ctest --test-dir "build/$preset" --output-on-failure -j "$programs_at_once" --output-junit "$junit" "$@"
}

run_pytest() { # NAME PATH… : environment comes from the caller
    local name=$1
    shift
    "$VENV/bin/python" -m pytest -q -rs -p no:cacheprovider --junitxml="$results/pytest-$name.xml" "$@"
}

# The Python tests in tests/unit are of files that no preset changes (CRDs, manifests): once is enough.
wire() {
    local paths=(tests/wire) which=()
    [ "$1" != dev ] || paths+=(tests/unit)
    [ "$mode" != fast ] || which=(-m "not slow")
    BUILD_DIR=$root/build/$1 run_pytest "wire-$1" -n "$tests_at_once" --dist loadgroup "${which[@]}" "${paths[@]}"
}

run_checks() { # a sanitizer preset: build, ctest, wire
    local preset=$1 labels=()
    expected+=("$results/ctest-$preset.xml" "$results/pytest-wire-$preset.xml")
    [ "$mode" != fast ] || labels=(-LE slow)
    [ "$preset" != tsan ] || labels=(-L "fast|slow" -LE lint)
    stage "build ($preset)" "build-$preset" build_preset "$preset" || return 0
    local wire_stage="wire ($preset)" wire_pid=
    if [ "$mode" = fast ]; then # side by side: each leaves a core idle for half of its time
        stage "$wire_stage" "wire-$preset" wire "$preset" >"$results/stage-wire.txt" 2>&1 &
        wire_pid=$!
    fi
    stage "unit, simulation, corpus ($preset)" "ctest-$preset" run_ctest "$preset" "${labels[@]}" || true
    if [ "$mode" = fast ]; then
        wait "$wire_pid" || failed_stages+=("$wire_stage")
        cat "$results/stage-wire.txt"
        left_out "$preset"
    else
        stage "$wire_stage" "wire-$preset" wire "$preset" || true
    fi
}

left_out() {
    local programs tests
    programs=$(ctest --test-dir "build/$1" -N -L slow | sed -n 's/.*Test *#[0-9]*: //p')
    tests=$(sed -n 's/^left out: //p' "$results/wire-$1.log")
    printf '   left out as slow: %s of pytest, and %s of ctest (%s).\n' "${tests:-no tests}" \
        "$(wc -w <<<"$programs")" "$(tr '\n' ' ' <<<"$programs" | sed 's/ *$//')"
    printf '   tests/run.sh without --fast runs them all.\n'
}

clang_build() {
    cmake -S . -B build/clang -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Release -DSANDBOX_WERROR=ON
    cmake --build build/clang -j "$jobs"
}

# Starts, crashes and stops nodes, and compares the machine before and after: needs it without a node.
node_tests() { env -u KUBECONFIG "$VENV/bin/python" -m pytest -q -rs -p no:cacheprovider --junitxml="$results/pytest-node.xml" e2e/node; }

e2e() {
    KUBECONFIG=$(e2e/node/node.sh kubeconfig)
    export KUBECONFIG
    BUILD_DIR=$root/build/release run_pytest e2e e2e
}

own_cluster() {
    KUBECONFIG=$(e2e/node/node.sh kubeconfig)
    export KUBECONFIG
    SANDBOX_E2E_OWN_CLUSTER=1 run_pytest own-cluster e2e/own_cluster
}

finish() {
    if [ "${started_node:-no}" = yes ] && [ "$keep" = no ]; then
        e2e/node/node.sh down >"$results/node-down.log" 2>&1 || failed_stages+=("node down")
    fi
}

export SANDBOX_TESTS_MODE=$mode
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=$root/tests/tsan.supp:second_deadlock_stack=1}

apt_need_everything() { apt_need_build && apt_need_tests; }
stage "packages" packages apt_need_everything || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
stage "python packages" python need_venv "$root" || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
# First: tests of the CRDs use its kubectl.
[ "$mode" = fast ] || stage "Kubernetes" node-programs e2e/node/node.sh build || true

run_checks dev
if [ "$mode" != fast ]; then
    run_checks tsan
    stage "clang build without warnings" clang clang_build || true
    [ "$mode" != long ] || stage "Debian 13's libraries" other-debian tests/other_debian.sh trixie || true
    stage "build (release)" build-release build_preset release || true
    expected+=("$results/pytest-e2e.xml")
    trap finish EXIT
    if e2e/node/node.sh status >/dev/null 2>&1; then
        echo "== one-node Kubernetes: running already, so its own tests are left out"
    else
        expected+=("$results/pytest-node.xml")
        stage "one-node Kubernetes: start, crash, stop" node node_tests || true
        stage "one-node Kubernetes" node-up e2e/node/node.sh up && started_node=yes
    fi
    stage "images" images e2e/images/build.sh all --out "$cache/images" || true
    stage "e2e" e2e e2e || true
    expected+=("$results/pytest-own-cluster.xml")
    stage "the demo on a cluster of one's own, with a registry" own-cluster own_cluster || true
    finish
    trap - EXIT
    for log in "$results"/wire-dev.log "$results"/e2e.log; do
        [ ! -f "$log" ] || closing_line "$log"
    done
fi

rc=0
python3 tests/summary.py "${expected[@]}" || rc=1
if [ ${#failed_stages[@]} -gt 0 ]; then
    printf 'failed stages: %s\n' "$(IFS=,; echo "${failed_stages[*]}")" >&2
    rc=1
fi
exit $rc
