/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the WebSocket client share. */
#pragma once

#include "common/base/buf.h"
#include "common/base/heap.h"
#include "common/base/list.h"
#include "common/net/websocket.h"

#include <libwebsockets.h>
#include <openssl/ssl.h>
#include <pthread.h>

#define WS_PROTOCOL_NAME "websocket-client"
#define WS_PATH_MAX 1800    /* libwebsockets cuts a request line at 2,048 bytes */
#define WS_HOST_MAX 100     /* and the Host line at 128 */
#define WS_READ_BYTES 65536 /* a read, and a piece of a message, are at most this long */
#define WS_SILENCE_MS 45000
#define WS_CLOSE_WAIT_MS 2000 /* for the answer to our close frame */
#define WS_RESOLVE_PAUSE_MS 5000
#define WS_ADDRESSES_MAX 8

/* --- websocket_address.c --- */
typedef struct WsUrl {
    bool tls;
    char *host; /* without brackets */
    int port;
    char *prefix; /* "" or "/path" without a final slash */
} WsUrl;

int ws_url_parse(const char *url, WsUrl *ret, Error **error);
void ws_url_done(WsUrl *u);
/* "host:port", IPv6 in brackets: the Host header. */
char *ws_url_authority(const WsUrl *u) _warn_unused_;

typedef struct WsAddresses {
    char text[WS_ADDRESSES_MAX][64]; /* numeric */
    size_t len;
} WsAddresses;

/* Blocks. */
int ws_resolve(const char *host, WsAddresses *ret, Error **error);
bool ws_is_numeric(const char *host);

/* --- websocket_tls.c --- */
typedef struct WsTlsMaterial WsTlsMaterial;

int ws_tls_material_new(const char *ca_pem, const char *cert_pem, const char *key_pem,
                        WsTlsMaterial **ret, Error **error);
WsTlsMaterial *ws_tls_material_free(WsTlsMaterial *m);
static inline void ws_tls_material_freep(WsTlsMaterial **m)
{
    *m = ws_tls_material_free(*m);
}
/* verify_name: the name or address that the server's certificate must carry. */
SSL_CTX *ws_tls_context_new(const char *verify_name, Error **error);
/* Replaces trust and client certificate; for connections that start afterwards. */
int ws_tls_context_apply(SSL_CTX *ctx, const WsTlsMaterial *m, Error **error);

/* --- websocket.c --- */
struct WsClient {
    WsUrl url;
    char *authority;
    char *sni;
    char *user_agent;
    bool insecure;
    unsigned max_connections;
    int64_t silence_ms;
    struct lws_context *context;
    struct lws_vhost *vhost;
    SSL_CTX *ssl;

    pthread_t thread;
    bool thread_started;
    pthread_mutex_t lock; /* posts, n_posts, closed */
    List posts;
    size_t n_posts;
    bool closed;

    /* --- service thread only from here --- */
    bool stopping;
    List conns;
    unsigned n_conns;
    Heap timers;
    lws_sorted_usec_list_t sul;

    WsAddresses addresses;
    size_t address; /* the one in use */
    pthread_t resolver;
    bool resolving, resolver_started;
    int64_t resolved_ms;
};

/* The address in use did not answer: the next one, and new ones from the resolver. */
void ws_client_address_failed(WsClient *c);
int64_t ws_now_ms(void);

/* --- websocket_conn.c --- */
extern const struct lws_protocols ws_protocols[];
/* Ends the connection at once; closed() is called with error (may be NULL). */
void ws_conn_finish(WsConn *conn, const Error *error);
WsConn *ws_conn_from_link(List *link);
