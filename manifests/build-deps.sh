#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that stand in the file $1 and are not installed yet. In a base image that has them
# all nothing is asked of the network.
set -eu

missing=
while read -r package; do
    case $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true) in
    ii*) ;;
    *) missing="$missing $package" ;;
    esac
done <"$1"

if [ -n "$missing" ]; then
    apt-get update -q
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
fi
