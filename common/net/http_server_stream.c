/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events. The owner appends on the loop thread, libmicrohttpd's reader takes on a
 * server thread; the stream's lock is around "nothing to send → paused → suspend → watch" on one
 * side and "append → unwatch → resume" on the other, so no wake-up is lost. Only the owner ends a
 * pause, and a paused connection is not closed by libmicrohttpd; hence the watch can be added by
 * the reader, and an event in it always belongs to a stream that its owner still has.
 */
#include "common/net/http_server-internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READER_BLOCK 4096
#define KEEP_MAX (64 * 1024UL) /* an empty buffer larger than this is given back */

/* All with the stream's lock held. */

static size_t unsent(const HttpStream *st)
{
    return st->out.len - st->sent;
}

static void reclaim(HttpStream *st)
{
    if (unsent(st) == 0 && st->out.cap > KEEP_MAX)
        buf_done(&st->out);
    else if (unsent(st) == 0)
        buf_clear(&st->out);
    else if (st->sent > KEEP_MAX && st->sent > st->out.len / 2)
        buf_consume(&st->out, st->sent);
    else
        return;
    st->sent = 0;
}

static size_t take(HttpServerRequest *r, char *to, size_t max)
{
    HttpStream *st = r->stream;
    size_t n = unsent(st) < max ? unsent(st) : max;

    if (n == 0)
        return 0;
    memcpy(to, st->out.data + st->sent, n);
    st->sent += n;
    atomic_fetch_sub(&r->server->answers_bytes, n);
    reclaim(st);
    return n;
}

static void pause_reading(HttpServerRequest *r)
{
    r->stream->paused = true;
    MHD_suspend_connection(r->connection);
    r->watched = http_watch_add(r) == 0;
}

static void wake(HttpServerRequest *r)
{
    if (!r->stream->paused)
        return;
    r->stream->paused = false;
    http_watch_remove(r);
    MHD_resume_connection(r->connection);
}

static ssize_t next_bytes(HttpServerRequest *r, char *to, size_t max)
{
    HttpStream *st = r->stream;

    if (st->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = take(r, to, max);
    if (n > 0)
        return (ssize_t)n;
    if (st->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    pause_reading(r);
    return 0;
}

static ssize_t stream_read(void *userdata, uint64_t position, char *to, size_t max)
{
    HttpServerRequest *r = userdata;

    (void)position;
    pthread_mutex_lock(&r->stream->lock);
    ssize_t n = next_bytes(r, to, max);
    pthread_mutex_unlock(&r->stream->lock);
    return n;
}

static void stream_released(void *userdata)
{
    http_request_unref(userdata);
}

static struct MHD_Response *response_new(HttpServerRequest *r, const HttpHeader *headers,
                                         size_t n_headers)
{
    static const HttpHeader always[] = {
        {"Content-Type", "text/event-stream"},
        {"Cache-Control", "no-cache, no-transform"},
        {"X-Accel-Buffering", "no"},
    };
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, READER_BLOCK, stream_read, http_request_ref(r), stream_released);

    if (!response) {
        http_request_unref(r);
        return NULL;
    }
    http_response_add_headers(response, always, ARRAY_SIZE(always));
    http_response_add_headers(response, headers, n_headers);
    return response;
}

static HttpStream *stream_new(void)
{
    HttpStream *st = xnew(HttpStream);

    pthread_mutex_init(&st->lock, NULL);
    st->out = BUF_INIT(2 * HTTP_STREAM_MAX); /* what is sent already included */
    return st;
}

void http_stream_free(HttpServerRequest *r)
{
    HttpStream *st = TAKE_PTR(r->stream);

    if (!st)
        return;
    atomic_fetch_sub(&r->server->answers_bytes, unsent(st));
    buf_done(&st->out);
    pthread_mutex_destroy(&st->lock);
    free(st);
}

void http_stream_start(HttpServerRequest *r, const HttpHeader *headers, size_t n_headers)
{
    assert(r->deferred && !r->stream && !r->response);
    r->stream = stream_new();
    r->stream->cut = r->abandoned;
    if (r->abandoned)
        return;
    http_watch_remove(r);
    r->status = 200;
    r->response = response_new(r, headers, n_headers);
    MHD_resume_connection(r->connection);
}

/* A peer that does not read: the sweep ends its connection, which may be waiting for the socket. */
static int overflow(HttpServerRequest *r)
{
    r->stream->cut = true;
    http_connection_wait(r->link, -1);
    wake(r);
    return -ENOBUFS;
}

static int append(HttpServerRequest *r, const char *text, size_t len)
{
    HttpStream *st = r->stream;

    assert(!st->ended);
    if (st->cut || st->completed || r->gone)
        return -EPIPE;
    if (unsent(st) + len > HTTP_STREAM_MAX)
        return overflow(r);
    int q = buf_append(&st->out, text, len);
    if (q < 0)
        return q;
    atomic_fetch_add(&r->server->answers_bytes, len);
    wake(r);
    return 0;
}

int http_stream_send(HttpServerRequest *r, const char *text, size_t len)
{
    pthread_mutex_lock(&r->stream->lock);
    int q = append(r, text, len);
    pthread_mutex_unlock(&r->stream->lock);
    return q;
}

/* From now on a peer may take only as long for the rest as for any answer. */
static void limit_rest(HttpServerRequest *r)
{
    http_connection_wait(r->link, (int64_t)r->server->options.receive_timeout_s * 1000 +
                                      http_transfer_ms(r->server, unsent(r->stream)));
}

void http_stream_end(HttpServerRequest *r)
{
    pthread_mutex_lock(&r->stream->lock);
    r->stream->ended = true;
    if (!r->stream->completed) {
        if (!r->abandoned && !r->stream->cut)
            limit_rest(r);
        wake(r);
    }
    pthread_mutex_unlock(&r->stream->lock);
    http_owned_remove(r);
    http_request_unref(r);
}

void http_stream_cut(HttpServerRequest *r)
{
    pthread_mutex_lock(&r->stream->lock);
    r->stream->cut = true;
    wake(r);
    pthread_mutex_unlock(&r->stream->lock);
}

/* The owner learns on its own thread that nobody listens any more. */
static void tell_owner(HttpServerRequest *r)
{
    HttpServer *s = r->server;
    const uint64_t one = 1;

    (void)http_request_ref(r);
    pthread_mutex_lock(&s->lock);
    list_push(&s->lost, &r->lost_node);
    pthread_mutex_unlock(&s->lock);
    (void)!write(s->lost_fd, &one, sizeof one);
}

void http_stream_on_completed(HttpServerRequest *r)
{
    HttpStream *st = r->stream;

    if (!st)
        return;
    pthread_mutex_lock(&st->lock);
    st->completed = true;
    bool early = !st->ended;
    pthread_mutex_unlock(&st->lock);
    if (early)
        tell_owner(r);
}
