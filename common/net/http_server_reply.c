/* SPDX-License-Identifier: Apache-2.0 */
/* Making an answer and giving it to libmicrohttpd. */
#include "common/base/log.h"
#include "common/net/http_server-internal.h"

#include <assert.h>

#define ERROR_BODY_MAX 4096

void http_response_add_headers(struct MHD_Response *response, const HttpHeader *headers,
                               size_t n_headers)
{
    for (size_t i = 0; i < n_headers; i++)
        if (MHD_add_response_header(response, headers[i].name, headers[i].value) != MHD_YES)
            log_error("a response header was refused", LOGF_STR("name", headers[i].name));
}

static struct MHD_Response *response_new(int status, const char *content_type, const void *body,
                                         size_t len)
{
    /* The library does not write to what it copies, though it does not say so in the type. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        len, len ? (void *)(uintptr_t)body : (void *)(uintptr_t) "", MHD_RESPMEM_MUST_COPY);

    if (!response) {
        log_error("no memory for an answer", LOGF_INT("status", status), LOGF_INT("bytes", len));
        return NULL;
    }
    if (content_type)
        http_response_add_headers(response, &(HttpHeader){"Content-Type", content_type}, 1);
    return response;
}

/* Last touch of r by whoever answers. */
static void answer(HttpServerRequest *r)
{
    if (!r->deferred)
        return;
    if (!r->abandoned) {
        http_owned_remove(r);
        http_watch_remove(r);
        MHD_resume_connection(r->connection);
    }
    http_request_unref(r);
}

void http_reply(HttpServerRequest *r, int status, const char *content_type, const void *body,
                size_t len, const HttpHeader *headers, size_t n_headers)
{
    assert(!r->response && !r->stream);
    if (!r->gone && !r->abandoned) {
        r->status = status;
        r->response_bytes = len;
        atomic_fetch_add(&r->server->answers_bytes, len);
        r->response = response_new(status, content_type, body, len);
        if (r->response)
            http_response_add_headers(r->response, headers, n_headers);
    }
    answer(r);
}

void http_reply_error(HttpServerRequest *r, int status, const char *text, const char *allow,
                      bool close_after)
{
    const HttpServerOptions *o = &r->server->options;
    _cleanup_buf_ Buf body = BUF_INIT(ERROR_BODY_MAX);
    HttpHeader headers[3];
    size_t n = 0;

    if (o->error_body)
        o->error_body(status, text, &body);
    else
        (void)buf_printf(&body, "{\"error\":\"%s\"}", text);
    if (allow)
        headers[n++] = (HttpHeader){"Allow", allow};
    if (status == 429 || status == 503)
        headers[n++] = (HttpHeader){"Retry-After", "1"};
    if (close_after)
        headers[n++] = (HttpHeader){"Connection", "close"};
    http_reply(r, status, "application/json", body.data, body.len, headers, n);
}

enum MHD_Result http_reply_queue(HttpServerRequest *r)
{
    HttpServer *s = r->server;

    if (!r->response || r->gone)
        return MHD_NO;
    http_connection_set_reading(r->link, false);
    if (atomic_load_explicit(&s->draining, memory_order_relaxed))
        (void)MHD_add_response_header(r->response, "Connection", "close");
    if (!r->stream)
        http_connection_wait(r->link, (int64_t)s->options.receive_timeout_s * 1000 +
                                          http_transfer_ms(s, r->response_bytes));
    enum MHD_Result ret = MHD_queue_response(r->connection, (unsigned)r->status, r->response);
    MHD_destroy_response(TAKE_PTR(r->response));
    return ret;
}
