#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the folder $2 the root of an image for the program $1: the program, stripped, the shared libraries it
# is linked with, and the few files the C library reads. No shell, no package manager.
set -eu

program=$1
root=$2

rm -rf "$root"
mkdir -p "$root/usr/bin" "$root/etc" "$root/tmp"
chmod 1777 "$root/tmp"
strip -o "$root/usr/bin/${program##*/}" "$program"

# ldd prints "name => path (address)", and the loader as "path (address)".
libraries=$(ldd "$program")
case $libraries in
*'not found'*)
    echo "$libraries" >&2
    exit 1
    ;;
esac
echo "$libraries" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' | sort -u |
    while read -r library; do
        mkdir -p "$root${library%/*}"
        cp -L "$library" "$root$library"
    done

echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >"$root/etc/passwd"
echo 'nonroot:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
