# SPDX-License-Identifier: Apache-2.0
# Tells whether a path leads to something: the parameter is the path. Links are followed.
LC_ALL=C
export LC_ALL
sbx_param
sbx_p=$sbx_v
[ -d "$sbx_p" ] && sbx_done yes directory
[ -f "$sbx_p" ] && sbx_done yes file
[ -e "$sbx_p" ] && sbx_done yes other
sbx_explain missing
