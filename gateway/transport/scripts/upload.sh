# SPDX-License-Identifier: Apache-2.0
# Writes stdin to a file: parameters are path, size, SHA-256 and POSIX checksum of what follows.
# The shell stays and keeps its stdout: with a closed stdout the runtime ends stdin.
LC_ALL=C
export LC_ALL
sbx_param
sbx_p=$sbx_v
sbx_param
sbx_size=$sbx_v
sbx_param
sbx_sha=$sbx_v
sbx_param
sbx_crc=$sbx_v

# Where the name is a link, the file that it leads to is replaced. Link by link, as busybox's
# `readlink -f` takes a loose relative link from the wrong folder. The dot keeps a final line break.
sbx_i=0
while [ -L "$sbx_p" ]; do
    sbx_need readlink
    [ "$sbx_i" -lt 40 ] || sbx_done loop
    sbx_i=$((sbx_i + 1))
    sbx_v=$(readlink "$sbx_p" && printf .)
    sbx_v=${sbx_v%??}
    case $sbx_v in
    '') sbx_done failed ;;
    /*) sbx_p=$sbx_v ;;
    *) sbx_p=${sbx_p%/*}/$sbx_v ;;
    esac
done
[ -d "$sbx_p" ] && sbx_done directory
[ -e "$sbx_p" ] && [ ! -f "$sbx_p" ] && sbx_done special
sbx_need head mv rm mkdir
sbx_sum_tool
sbx_d=${sbx_p%/*}/
if [ ! -d "$sbx_d" ]; then
    [ -e "${sbx_d%/}" ] && sbx_done not_directory
    mkdir -p "$sbx_d" || sbx_done failed
fi
sbx_f=$sbx_d.sandbox-upload-$sbx_id

sbx_fail() {
    rm -f "$sbx_f"
    sbx_done "$@"
}

true >"$sbx_f" || sbx_done failed
if [ "$sbx_size" != 0 ] && ! head -c "$sbx_size" >"$sbx_f"; then
    # Busybox's head only says "I/O error"; cat has the reason, a full disk above all.
    command -v cat >/dev/null && head -c 4096 /dev/zero | cat >>"$sbx_f"
    sbx_fail failed
fi
sbx_v=$("$sbx_sum" <"$sbx_f") || sbx_fail failed
case $sbx_sum in
sha256sum) [ "${sbx_v%% *}" = "$sbx_sha" ] || sbx_fail damaged ;;
*) [ "${sbx_v%"${sbx_v##*[0-9]}"}" = "$sbx_crc $sbx_size" ] || sbx_fail damaged ;;
esac
if [ -f "$sbx_p" ] && sbx_v=$(stat -c '%a %u:%g' "$sbx_p"); then
    chown "${sbx_v#* }" "$sbx_f" 2>/dev/null
    chmod "${sbx_v%% *}" "$sbx_f" || sbx_fail failed
fi
mv -f "$sbx_f" "$sbx_p" || sbx_fail failed
sbx_done ok
