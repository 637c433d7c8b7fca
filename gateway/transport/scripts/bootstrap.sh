# SPDX-License-Identifier: Apache-2.0
# The one argument of `sh -c` in the exec request, so it has to be short: it says hello, then reads
# the job's script from stdin up to a line that is a dot, and runs it. What the script needs to know
# follows on the next lines of stdin; `read` takes not one byte more than a line.
printf 'sandbox-exec 1\n'
sbx_s=
while IFS= read -r sbx_l; do
    [ "$sbx_l" = . ] && { eval "$sbx_s"; exit; }
    sbx_s="$sbx_s$sbx_l
"
done
