/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSocket client over libwebsockets for one purpose: Kubernetes streaming subresources. A
 * WsClient is a service thread of its own; connections are driven by callbacks on that thread. Only
 * ws_post() may be called from other threads. Names are resolved before the thread sees them;
 * proxies of the environment are ignored, redirects are not followed; only the given CA is trusted.
 * A stream on which nothing arrives, pings being answered included, is ended (silence_ms).
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct WsClient WsClient;
typedef struct WsConn WsConn;

typedef struct WsClientOptions {
    const char *url; /* "https://host:port" of the server */
    const char *ca_pem, *client_cert_pem, *client_key_pem, *tls_server_name;
    bool insecure_skip_verify;
    const char *user_agent;
    unsigned max_connections; /* default 256; beyond: ERROR_EXHAUSTED */
    int64_t silence_ms; /* default 45,000: no byte for so long, pings included, ends a stream */
} WsClientOptions;

/* All callbacks run on the service thread. message is called with pieces: first marks the first
 * piece of a message, last its end. closed is called exactly once per connection that ws_connect
 * accepted, after which conn is invalid; error is NULL after a clean close (code 1000), its
 * http_status is set where the upgrade was refused. */
typedef struct WsHandlers {
    void (*opened)(WsConn *conn, const char *subprotocol, void *userdata);
    void (*message)(WsConn *conn, const char *data, size_t len, bool first, bool last,
                    void *userdata);
    void (*writable)(WsConn *conn, void *userdata); /* the queue is empty: more may be sent */
    void (*closed)(WsConn *conn, const Error *error, void *userdata);
} WsHandlers;

/* Starts the service thread. Blocks for the resolver where the host is no number. */
int ws_client_new(const WsClientOptions *options, WsClient **ret, Error **error);
/* Closes all connections (closed is called for each), joins the thread. */
WsClient *ws_client_free(WsClient *c);
/* Replaces trust and client certificate for connections opened from now on (thread-safe). */
int ws_client_set_tls(WsClient *c, const char *ca_pem, const char *cert_pem, const char *key_pem,
                      Error **error);
/* Thread-safe: fn runs on the service thread, in order of posting. At most LOOP_POSTS_MAX wait:
 * -ENOBUFS beyond; -ESHUTDOWN once ws_client_free began. What did not run by then is dropped. */
int ws_post(WsClient *c, LoopFn fn, void *userdata) _warn_unused_;

/* --- service thread only --- */
typedef struct WsConnectOptions {
    const char *path;         /* with query; with the server's own prefix at most 1,800 bytes */
    const char *subprotocols; /* "v5.channel.k8s.io" */
    const char *bearer_token; /* or NULL; never logged */
    int64_t open_timeout_ms;  /* default 10,000 */
} WsConnectOptions;
/* Error kinds, here or in closed: EXHAUSTED (too many streams), TIMEOUT (did not open), by status
 * where the upgrade was refused (400 INVALID, 401, 403, 404, 429, else UNAVAILABLE), UNAVAILABLE.
 */
int ws_connect(WsClient *c, const WsConnectOptions *options, const WsHandlers *handlers,
               void *userdata, WsConn **ret, Error **error);
/* Queues one binary message (copied). At most WS_QUEUE_MAX bytes wait; beyond: -ENOBUFS. -ESHUTDOWN
 * before opened and after ws_close. */
#define WS_QUEUE_MAX (1024 * 1024)
int ws_send(WsConn *conn, const void *data, size_t len);
size_t ws_queued(const WsConn *conn);
/* Receive flow control. Its loss-freedom at the end of a stream is not proven (1 in 9 downloads was
 * short in a measurement): whoever uses it checks lengths. */
void ws_pause(WsConn *conn, bool paused);
/* Sends what is queued, then a close frame; closed() follows within two seconds. */
void ws_close(WsConn *conn);
/* A one-shot timer on the service thread; same rules as loop timers. */
void ws_timer_set(WsClient *c, LoopTimer *t, int64_t delay_ms);
void ws_timer_stop(WsClient *c, LoopTimer *t);
