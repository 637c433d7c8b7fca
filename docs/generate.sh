#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the pages that come from tables of the programs.
#   docs/generate.sh BIN_DIR            writes docs/tools.md and docs/configuration.md
#   docs/generate.sh --check BIN_DIR    compares them and says what to do where they differ
set -eu

check=no
if [ "${1-}" = --check ]; then
    check=yes
    shift
fi
bin=${1:?usage: docs/generate.sh [--check] BIN_DIR}
docs=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/sandbox-gateway" --print-tools-markdown >"$work/tools.md"
{
    cat <<'TEXT'
# Configuration

Both programs are configured by flags alone. They are given as `--name=value` or `--name value`;
`--help` prints the same tables. This page is generated from them (`docs/generate.sh`); a test
checks that it is current.

## Metrics and health

Each program serves `/metrics` (Prometheus' text format), `/healthz` and `/readyz` at its `--obs-address`, over plain HTTP
and without authentication. The manifests set `:9090` for both pods. The Services keep the ports that
collectors know: `agent-sandbox-controller` has it at 8080, `sandbox-gateway` at 9090 (its 8080 is MCP). To have a look:

```sh
kubectl -n agent-sandbox-system port-forward service/agent-sandbox-controller 9091:8080 >/dev/null &
kubectl -n agent-sandbox-system port-forward service/sandbox-gateway 9090:9090 >/dev/null &
curl -s --retry 5 --retry-connrefused http://127.0.0.1:9091/metrics http://127.0.0.1:9090/metrics
```

## sandbox-gateway

TEXT
    "$bin/sandbox-gateway" --help-markdown
    printf '\n## sandbox-controller\n\n'
    "$bin/sandbox-controller" --help-markdown
} >"$work/configuration.md"

status=0
for page in tools.md configuration.md; do
    if [ "$check" = no ]; then
        cp "$work/$page" "$docs/$page"
    elif ! diff -u "$docs/$page" "$work/$page"; then
        echo "docs/$page is out of date: run docs/generate.sh $bin" >&2
        status=1
    fi
done
exit "$status"
