/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any answer of a server makes an error that is fit to be shown. The first line of the input is the
 * path, the first two bytes of it choose the status code; the rest is the body.
 */
#include "common/kube/client.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_text(const char *text)
{
    if (!text)
        return;
    FUZZ_CHECK(strlen(text) <= ERROR_MESSAGE_MAX);
    for (; *text; text++)
        FUZZ_CHECK((unsigned char)*text >= 0x20 && *text != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    int status = 300 + (data[0] + data[1]) % 300;
    const char *text = (const char *)data + 2;
    const char *body = memchr(text, '\n', size - 2);
    size_t path_len = body ? (size_t)(body - text) : size - 2;
    _cleanup_free_ char *path = xstrndup(text, path_len);
    size_t body_len = body ? size - 3 - path_len : 0;
    _cleanup_error_ Error *e =
        kube_status_error("create", path, status, body ? body + 1 : "", body_len, 0);

    FUZZ_CHECK(e && e->message && e->http_status == status && e->retry_after_ms >= 0);
    FUZZ_CHECK(e->kind < ERROR_KIND_MAX);
    check_text(e->message);
    check_text(e->hint);
    return 0;
}
