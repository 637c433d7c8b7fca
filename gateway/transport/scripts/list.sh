# SPDX-License-Identifier: Apache-2.0
# Lists a directory: the parameter is its path. Records begin with the id, as names may hold line
# breaks: ID KIND MODE SIZE MTIME PATH. Kinds: d the directory itself (proof that stat works), f an
# entry, l an entry that is a link, t where such a link leads to (absent: nowhere).
LC_ALL=C
export LC_ALL
sbx_param
sbx_p=$sbx_v
if [ ! -d "$sbx_p" ]; then
    [ -e "$sbx_p" ] && sbx_done not_directory
    sbx_explain missing
fi
[ -r "$sbx_p" ] && [ -x "$sbx_p" ] || sbx_done denied
sbx_need find stat
stat -c "$sbx_id d %f %s %Y %n" "$sbx_p/." || sbx_done failed
# No parentheses: busybox forgets an -exec + inside of them.
find "$sbx_p/." ! -name . -prune ! -type l -exec stat -c "$sbx_id f %f %s %Y %n" {} + \
    -o ! -name . -type l -exec stat -c "$sbx_id l %f %s %Y %n" {} + \
    -exec stat -L -c "$sbx_id t %f %s %Y %n" {} + 2>/dev/null
sbx_done ok
