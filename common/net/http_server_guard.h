/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request heads that two HTTP parsers could read differently are refused before anything acts on
 * them: repeated or conflicting framing headers, names that are no tokens, control bytes, folded
 * lines and hidden bytes, odd versions. Pure: no sockets, no allocation, any thread.
 *
 * The library below is lenient (it takes two different Content-Length headers, a space before the
 * colon, folded lines), which is why this is here and not there.
 */
#pragma once

#include "common/net/http_server.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct HttpHead {
    const char *method;
    const char *target;  /* as it came, with query; NULL where there was none */
    const char *version; /* "HTTP/1.1" */
    const HttpHeader *headers;
    size_t n_headers;
    size_t wire_bytes; /* from the method to the empty line, 0 where unknown */
} HttpHead;

typedef struct HttpVerdict {
    int status;       /* 0: fine; 400 or 505 otherwise, and the connection must be closed */
    const char *text; /* one sentence, a literal without characters that JSON escapes */
    /* Valid where status is 0. */
    bool has_length;
    uint64_t content_length;
    bool chunked;
    bool expects_continue;
} HttpVerdict;

HttpVerdict http_guard_check(const HttpHead *head);
bool http_is_token(const char *s);
