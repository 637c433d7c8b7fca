# SPDX-License-Identifier: Apache-2.0
# Sends a file: parameters are the path and the greatest size. The bytes are summed on their way
# out, in one pass, so that the sum is of what was sent even where the file changes.
LC_ALL=C
export LC_ALL
sbx_param
sbx_p=$sbx_v
sbx_param
sbx_max=$sbx_v
[ -d "$sbx_p" ] && sbx_done directory
[ -e "$sbx_p" ] || sbx_explain missing
[ -f "$sbx_p" ] || sbx_done special
[ -r "$sbx_p" ] || sbx_done denied
sbx_need head tee stat
sbx_sum_tool
sbx_size=$(stat -L -c %s "$sbx_p") || sbx_done failed
[ "$sbx_size" -gt "$sbx_max" ] && sbx_done large "$sbx_size"
exec 4>&1
sbx_v=$({ head -c "$((sbx_max + 1))" "$sbx_p" | tee /proc/self/fd/6 >&4; } 6>&1 | "$sbx_sum")
sbx_done "$sbx_sum" "$sbx_size" "$sbx_v"
