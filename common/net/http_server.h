/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 server facade over libmicrohttpd (internal epoll threads, suspend/resume). A request is
 * collected whole (up to the body ceiling), checked for framing tricks (duplicate or conflicting
 * Content-Length, Transfer-Encoding, Host, Authorization, Content-Type, names that are no tokens:
 * 400 and close), then handed to the route's handler on a server thread. The handler answers at
 * once with http_reply(), or takes the request over (http_request_defer) and answers later from the
 * owner thread. Ceilings: connections, connections per IP, header memory, body, bodies in flight
 * (429 with Retry-After), time to receive a request, time to take an answer.
 *
 * Deferred requests: exactly one owner thread at a time may call the functions marked [owner]. The
 * peer's loss is watched once http_request_on_gone was called, and while a stream is paused;
 * on_gone is called on the loop thread given in the options, and from http_request_on_gone on the
 * loop thread is the owner. A peer that closes its sending side counts as gone.
 *
 * Unknown paths get 404, known ones with another method 405 with Allow; HEAD goes to the GET route.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct HttpServer HttpServer;
typedef struct HttpServerRequest HttpServerRequest;

typedef void (*HttpHandlerFn)(HttpServerRequest *request, void *userdata);

typedef struct HttpRoute {
    const char *method; /* NULL: any method (the handler answers 405 itself) */
    const char *path;   /* exact */
    HttpHandlerFn handler;
} HttpRoute;

typedef enum HttpHeadVerdict { HTTP_HEAD_KNOWN, HTTP_HEAD_STRANGER } HttpHeadVerdict;

/* The status that on_complete gets where the peer left before it had the whole answer. */
#define HTTP_STATUS_PEER_GONE 499

typedef struct HttpServerOptions {
    const char *listen;      /* "127.0.0.1:8080", ":8080" (all, v4 and v6), "[::1]:0" */
    const HttpRoute *routes; /* must outlive the server */
    size_t n_routes;
    void *userdata; /* given to handlers */
    Loop *loop; /* where gone-callbacks and stream wake-ups run; NULL: nothing may be deferred */
    unsigned threads;                /* 1 or 2; default 1 */
    unsigned max_connections;        /* default 1024 */
    unsigned max_connections_per_ip; /* 0 = none */
    size_t max_body_bytes;           /* default 64 KiB; larger: 413 */
    size_t max_bodies_bytes; /* sum over all requests under way, default 256 MiB; beyond: 429 */
    size_t connection_memory_bytes; /* default 16 KiB; header block beyond: 431 */
    /* For a connection's first request, and from each further one's request line on. A body adds
     * the time that slowest_bytes_per_s takes for what came of it, an answer for all of it. */
    unsigned receive_timeout_s;   /* default 30 */
    size_t slowest_bytes_per_s;   /* default 64 KiB/s */
    unsigned keepalive_timeout_s; /* idle between two requests of a connection, default 120 */
    bool use_poll;                /* poll instead of epoll */
    /* Called when the head of a request for a route is there, before its body: may answer with
     * http_reply, then the body is not kept and the handler not called. HTTP_HEAD_STRANGER: bodies
     * of such requests get an eighth of max_bodies_bytes together. Server thread; NULL: none. */
    HttpHeadVerdict (*on_head)(HttpServerRequest *request, void *userdata);
    /* Writes the body of an answer that the server makes itself (400, 404, 405, 413, 429, 500, 503,
     * 505), in the content type application/json. text is a literal that needs no escapes. Any
     * server thread. NULL: {"error":"text"}. */
    void (*error_body)(int status, const char *text, Buf *out);
    /* Called once per finished request on a server thread: for metrics and access logs. */
    void (*on_complete)(const char *method, const char *path, int status, int64_t duration_ms,
                        void *userdata);
} HttpServerOptions;

/* With a loop: on its thread, or before it runs. The options are copied. */
int http_server_new(const HttpServerOptions *options, HttpServer **ret, Error **error);
uint16_t http_server_port(const HttpServer *s); /* the real one, for ":0" */
/* From now on replies carry Connection: close, new connections are still served. Any thread. */
void http_server_drain(HttpServer *s);
/* Stops accepting, and drains; requests under way go on. Any thread. */
void http_server_quiesce(HttpServer *s);
size_t http_server_pending(const HttpServer *s); /* requests not yet completed; any thread */
/* Ends connections that took longer than they may. The server does it on its loop; without a loop
 * somebody has to call it every few seconds. Any thread. */
void http_server_sweep(HttpServer *s);
/* On the loop's thread (or after it ended). All deferred requests should be answered first: one
 * that is not is failed, its peer gets no answer, and its owner must still call http_reply or
 * http_stream_end, which then only frees it. Does not wait for peers. */
HttpServer *http_server_free(HttpServer *s);

/* --- in the handler, and [owner] after a defer --- */
const char *http_request_method(const HttpServerRequest *r);
const char *http_request_path(const HttpServerRequest *r);
/* NULL where absent, the first where it is repeated. Copied at arrival, so valid until the reply.
 * Names without regard to case. */
const char *http_request_header(const HttpServerRequest *r, const char *name);
const char *http_request_body(const HttpServerRequest *r, size_t *ret_len);
/* Frees the body early (it stays counted until then). */
void http_request_drop_body(HttpServerRequest *r);
/* Bytes of all answers and streams of this server that their peers have not taken yet: a peer that
 * does not read holds what it asked for. Any thread. */
size_t http_request_answers_bytes(const HttpServerRequest *r);
/* Peer as "192.0.2.1:1234" text. */
const char *http_request_peer(const HttpServerRequest *r);

typedef struct HttpHeader {
    const char *name;
    const char *value;
} HttpHeader;

/* Answers and ends the ownership of r. body is copied (NULL for none). content_type NULL for none.
 * Marks close for status >= 400 where the framing is in doubt only. [owner] */
void http_reply(HttpServerRequest *r, int status, const char *content_type, const void *body,
                size_t len, const HttpHeader *headers, size_t n_headers);

/* In the handler only: suspends the connection; the caller owns r until http_reply or
 * http_stream_end. Call it before r is published to another thread. */
void http_request_defer(HttpServerRequest *r);
/* [owner, loop thread] fn(userdata) runs on the loop thread once when the peer goes away before the
 * end of the answer. The request must still be answered (the reply is dropped). */
void http_request_on_gone(HttpServerRequest *r, LoopFn fn, void *userdata);
bool http_request_is_gone(const HttpServerRequest *r); /* [owner, loop thread] */

/* Server-sent events. start answers 200 text/event-stream at once, with the headers that caches and
 * proxies need beside those given; send appends one event or comment (text complete with its blank
 * line), 0 or -EPIPE where the peer is gone; end closes the body. Unsent bytes are bounded
 * (HTTP_STREAM_MAX): beyond that send returns -ENOBUFS, the stream is cut and on_gone follows.
 * [owner, loop thread] */
#define HTTP_STREAM_MAX (48UL * 1024 * 1024)
void http_stream_start(HttpServerRequest *r, const HttpHeader *headers, size_t n_headers);
int http_stream_send(HttpServerRequest *r, const char *text, size_t len);
void http_stream_end(HttpServerRequest *r); /* ends the ownership of r */
