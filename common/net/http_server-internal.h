/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the HTTP server share. http_server.c makes and ends the daemon, _request.c
 * collects a request and answers it, _defer.c hands it to an owner and watches its peer, _stream.c
 * streams, _connection.c keeps the deadlines of connections.
 *
 * A request is counted: one reference for the server (until the completion callback, which alone is
 * certain to come), one for the owner of a deferred one, one for each queue it is in. The server's
 * memory lives until its last request is gone.
 *
 * Locks, in the order in which they may nest: a stream's, then the server's, then libmicrohttpd's
 * own. Callbacks run without any of them.
 */
#pragma once

#include "common/base/list.h"
#include "common/net/http_server.h"
#include "common/net/http_server_guard.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#define HTTP_PEER_MAX 64
/* libmicrohttpd from here on can be told to be strict: folded lines, NUL and the like are 400. */
#define HTTP_STRICT_LIBRARY 0x00097701

typedef struct HttpConnection {
    List node; /* in server->connections */
    int fd;
    atomic_bool reading; /* the peer owes bytes, of a request under way or of the next one */
    bool ended;          /* the last sweep found the peer's end of it; under the server's lock */
    /* Monotonic ms; 0: none, while a handler or an owner has the request. */
    _Atomic int64_t deadline_ms;
} HttpConnection;

struct HttpServer {
    _Atomic unsigned refs;
    HttpServerOptions options; /* with defaults filled in; listen is not kept */
    struct MHD_Daemon *daemon;
    int listen_fd;
    uint16_t port;
    atomic_bool draining;
    atomic_bool quiesced;
    atomic_size_t pending;
    atomic_size_t bodies_bytes;
    atomic_size_t strangers_bytes; /* the part of them that strangers send */
    atomic_size_t answers_bytes;   /* made, and not yet taken by their peers */

    pthread_mutex_t lock; /* the lists, stopping */
    List connections;     /* HttpConnection */
    List owned;           /* HttpServerRequest: deferred and not yet answered */
    List lost;            /* HttpServerRequest: streams that ended under their owner */
    bool stopping;

    int watch_fd; /* epoll set of descriptors of suspended connections; and lost_fd, with no data */
    int lost_fd;  /* eventfd: the list lost is not empty */
    LoopTimer sweep_timer;
    int64_t swept_ms; /* under the lock */
};

typedef struct HttpStream {
    pthread_mutex_t lock;
    Buf out;
    size_t sent; /* bytes of out that are gone already */
    bool paused; /* the reader suspended the connection and watches its peer */
    bool ended;  /* by the owner */
    bool cut;    /* the rest is not sent */
    bool completed;
} HttpStream;

struct HttpServerRequest {
    _Atomic unsigned refs;
    HttpServer *server;
    struct MHD_Connection *connection;
    HttpConnection *link;
    int64_t began_ms;

    /* What came. Read-only once the handler has it. */
    char *target;
    const char *method; /* in text */
    const char *path;   /* in text */
    char *text;
    HttpHeader *headers;
    size_t n_headers;
    char peer[HTTP_PEER_MAX];
    bool begun; /* the head is complete */

    /* While it is collected: server thread. */
    const HttpRoute *route;
    int refused_status; /* 0: not refused */
    const char *refused_text;
    bool refused_close;
    size_t discarded_bytes;
    bool handled; /* its handler ran, or it was refused */

    Buf body;
    size_t counted_bytes; /* of the body, in server->bodies_bytes */
    bool stranger;        /* and in server->strangers_bytes */

    /* The answer: written by the handler or the owner, read by the server thread afterwards. */
    struct MHD_Response *response;
    int status;
    size_t response_bytes; /* also in server->answers_bytes until the request is completed */

    /* Deferred. */
    bool deferred;   /* server thread */
    bool abandoned;  /* the server ended first; read by the owner */
    List owned_node; /* in server->owned */
    LoopFn on_gone;
    void *gone_userdata;
    bool watched; /* its descriptor is in server->watch_fd; not used while it streams */
    bool gone;    /* loop thread */

    HttpStream *stream; /* NULL: none */
    List lost_node;     /* in server->lost */
};

/* http_server.c */
HttpServer *http_server_ref(HttpServer *s);
void http_server_unref(HttpServer *s);
int64_t http_now_ms(void);

/* http_server_request.c: libmicrohttpd's callbacks, and what the other parts need. */
void *http_request_on_target(void *server, const char *target, struct MHD_Connection *connection);
enum MHD_Result http_request_on_data(void *server, struct MHD_Connection *connection,
                                     const char *url, const char *method, const char *version,
                                     const char *data, size_t *size, void **request);
void http_request_on_completed(void *server, struct MHD_Connection *connection, void **request,
                               enum MHD_RequestTerminationCode code);
HttpServerRequest *http_request_ref(HttpServerRequest *r);
void http_request_unref(HttpServerRequest *r);

/* http_server_reply.c */
void http_response_add_headers(struct MHD_Response *response, const HttpHeader *headers,
                               size_t n_headers);
/* Answers in the server's own words; allow NULL or the value of the header Allow. */
void http_reply_error(HttpServerRequest *r, int status, const char *text, const char *allow,
                      bool close_after);
/* Server thread: queues the answer that is there. */
enum MHD_Result http_reply_queue(HttpServerRequest *r);

/* http_server_defer.c */
int http_watch_open(HttpServer *s, Error **error);
void http_watch_close(HttpServer *s);
int http_watch_add(HttpServerRequest *r);
void http_watch_remove(HttpServerRequest *r);
void http_owned_remove(HttpServerRequest *r);
/* Fails every deferred request; later ones fail at once. */
void http_owned_abandon_all(HttpServer *s);

/* http_server_stream.c */
void http_stream_free(HttpServerRequest *r);
/* Loop thread: cuts the stream after the watch reported its peer. */
void http_stream_cut(HttpServerRequest *r);
void http_stream_on_completed(HttpServerRequest *r); /* server thread */

/* http_server_connection.c */
void http_connection_on_notify(void *server, struct MHD_Connection *connection, void **link,
                               enum MHD_ConnectionNotificationCode code);
void http_connection_wait(HttpConnection *c, int64_t ms); /* a deadline from now; 0: none */
void http_connection_set_reading(HttpConnection *c, bool reading);
void http_connection_extend(HttpConnection *c, int64_t ms);
/* The longest that so many bytes may take. */
int64_t http_transfer_ms(const HttpServer *s, size_t bytes);
