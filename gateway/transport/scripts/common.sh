# SPDX-License-Identifier: Apache-2.0
# In front of every job's script. POSIX sh; tools of busybox or GNU. Comments and indentation are
# removed before it is sent, so there are no here-documents and no quoted line breaks in here.
# All names begin with sbx_, as a variable of the image's environment would stay exported.

# Reads a parameter into sbx_v. Bytes that are not printable ASCII, and backslashes, are \0ooo.
sbx_param() {
    IFS= read -r sbx_v || exit 1
    case $sbx_v in
    *\\*)
        sbx_v=$(printf '%b.' "$sbx_v")
        sbx_v=${sbx_v%.}
        ;;
    esac
}

# Ends a file job: both streams end with a line that begins with the nonce.
sbx_done() {
    printf '%s\n' "$sbx_nonce" >&2
    printf '%s %s\n' "$sbx_nonce" "$*"
    exit 0
}

# Says on stderr why sbx_p cannot be reached, and ends the job with the word given.
sbx_explain() {
    command -v ls >/dev/null || sbx_done tool ls
    ls -dL "$sbx_p" >/dev/null
    sbx_done "$1"
}

# Ends the job where one of these tools is missing.
sbx_need() {
    for sbx_v; do
        command -v "$sbx_v" >/dev/null || sbx_done tool "$sbx_v"
    done
}

# Chooses what sums are made with.
sbx_sum_tool() {
    sbx_sum=sha256sum
    command -v sha256sum >/dev/null || sbx_sum=cksum
    sbx_need "$sbx_sum"
}

# The nonce marks the ends of the streams, so nothing else may print it. The id may be seen: it names
# what this job makes.
sbx_param
sbx_nonce=$sbx_v
sbx_param
sbx_id=$sbx_v
