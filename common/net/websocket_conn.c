/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/contract.h"
#include "common/base/str.h"
#include "common/net/websocket-internal.h"

#include <errno.h>
#include <openssl/x509.h>
#include <string.h>

#define OPEN_TIMEOUT_MS 10000
#define SUBPROTOCOL_MAX 128
#define CLOSE_NORMAL 1000

typedef struct WsMessage {
    List link;
    size_t len;
    unsigned char data[]; /* LWS_PRE bytes of headroom, then the message */
} WsMessage;

struct WsConn {
    List link;
    WsClient *client;
    struct lws *wsi; /* NULL once the library let go of it */
    WsHandlers handlers;
    void *userdata;

    List queue; /* of WsMessage */
    size_t queued;
    char *bearer_token;
    char *subprotocol;
    const char *tls_problem; /* static text */

    bool connecting; /* inside ws_connect: closed() must not be called */
    bool opened;
    bool closing; /* by us */
    bool ping_due;
    unsigned close_code; /* the peer's; 0: no close frame */
    int64_t last_rx_ms;
    LoopTimer deadline; /* opening, or waiting for the peer's close */
    LoopTimer watch;    /* silence */
};

WsConn *ws_conn_from_link(List *link)
{
    return LIST_ENTRY(link, WsConn, link);
}

static void conn_free(WsConn *conn)
{
    WsClient *c = conn->client;

    ws_timer_stop(c, &conn->deadline);
    ws_timer_stop(c, &conn->watch);
    if (conn->wsi)
        lws_set_wsi_user(conn->wsi, NULL);
    if (list_linked(&conn->link)) {
        list_remove(&conn->link);
        c->n_conns--;
    }
    for (List *l = NULL; (l = list_pop(&conn->queue));)
        free(LIST_ENTRY(l, WsMessage, link));
    if (conn->bearer_token)
        explicit_bzero(conn->bearer_token, strlen(conn->bearer_token));
    free(conn->bearer_token);
    free(conn->subprotocol);
    free(conn);
}

void ws_conn_finish(WsConn *conn, const Error *error)
{
    if (conn->wsi) {
        lws_set_wsi_user(conn->wsi, NULL);
        lws_set_timeout(conn->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        conn->wsi = NULL;
    }
    if (!conn->connecting)
        conn->handlers.closed(conn, error, conn->userdata);
    conn_free(conn);
}

static void conn_fail(WsConn *conn, ErrorKind kind, const char *text)
{
    _cleanup_error_ Error *error = NULL;

    error_set(&error, kind, "%s", text);
    ws_conn_finish(conn, error);
}

/* --- deadlines --- */

static void deadline_passed(void *userdata)
{
    WsConn *conn = userdata;

    if (conn->closing && conn->opened)
        ws_conn_finish(conn, NULL);
    else if (conn->closing)
        conn_fail(conn, ERROR_CANCELLED, "the stream was closed before it was open");
    else
        conn_fail(conn, ERROR_TIMEOUT, "the stream did not open in time");
}

/* Pings go out after a third of the silence that ends a stream; looked at three times as often. */
static int64_t silence_step_ms(const WsConn *conn)
{
    return conn->client->silence_ms / 9 + 1;
}

static void silence_check(void *userdata)
{
    WsConn *conn = userdata;
    int64_t silent_ms = ws_now_ms() - conn->last_rx_ms;

    if (silent_ms >= conn->client->silence_ms) {
        conn_fail(conn, ERROR_UNAVAILABLE, "the API server does not answer any more");
        return;
    }
    if (silent_ms >= conn->client->silence_ms / 3 && !conn->closing) {
        conn->ping_due = true;
        lws_callback_on_writable(conn->wsi);
    }
    ws_timer_set(conn->client, &conn->watch, silence_step_ms(conn));
}

/* --- what the library reports; each returns what its callback shall return --- */

static int on_handshake_header(struct lws *wsi, WsConn *conn, void *in, size_t len)
{
    unsigned char **p = in, *end = *p + len;
    const char *agent = conn->client->user_agent;

    if (lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_USER_AGENT, (const unsigned char *)agent,
                                     (int)strlen(agent), p, end))
        return -1;
    if (!conn->bearer_token)
        return 0;
    _cleanup_free_ char *value = xasprintf("Bearer %s", conn->bearer_token);
    int r = lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_AUTHORIZATION,
                                         (const unsigned char *)value, (int)strlen(value), p, end);
    explicit_bzero(value, strlen(value));
    return r ? -1 : 0;
}

/* The only place where the subprotocol that the server chose can be read. */
static int on_established_filter(struct lws *wsi, WsConn *conn, void *in _unused_,
                                 size_t len _unused_)
{
    char name[SUBPROTOCOL_MAX];
    int n = lws_hdr_copy(wsi, name, sizeof(name), WSI_TOKEN_PROTOCOL);

    if (n <= 0)
        return -1;
    str_replace(&conn->subprotocol, name);
    return 0;
}

static int on_established(struct lws *wsi _unused_, WsConn *conn, void *in _unused_,
                          size_t len _unused_)
{
    WsClient *c = conn->client;

    conn->opened = true;
    conn->last_rx_ms = ws_now_ms();
    if (!conn->closing)
        ws_timer_stop(c, &conn->deadline);
    ws_timer_set(c, &conn->watch, silence_step_ms(conn));
    conn->handlers.opened(conn, conn->subprotocol, conn->userdata);
    return 0;
}

static int on_receive(struct lws *wsi, WsConn *conn, void *in, size_t len)
{
    conn->last_rx_ms = ws_now_ms();
    if (!conn->closing)
        conn->handlers.message(conn, in, len, lws_is_first_fragment(wsi) != 0,
                               lws_is_final_fragment(wsi) != 0, conn->userdata);
    return 0;
}

static int on_pong(struct lws *wsi _unused_, WsConn *conn, void *in _unused_, size_t len _unused_)
{
    conn->last_rx_ms = ws_now_ms();
    return 0;
}

static int ping_send(struct lws *wsi)
{
    unsigned char ping[LWS_PRE + 1] = {0};
    return lws_write(wsi, ping + LWS_PRE, 0, LWS_WRITE_PING) < 0 ? -1 : 0;
}

static int message_send(WsConn *conn)
{
    WsMessage *m = LIST_ENTRY(list_pop(&conn->queue), WsMessage, link);
    size_t len = m->len;
    int r = lws_write(conn->wsi, m->data + LWS_PRE, len, LWS_WRITE_BINARY);

    conn->queued -= len;
    free(m);
    return r < 0 || (size_t)r < len ? -1 : 0;
}

/* One write per call: libwebsockets asks for that. */
static int on_writable(struct lws *wsi, WsConn *conn, void *in _unused_, size_t len _unused_)
{
    int r = 0;

    if (!list_empty(&conn->queue)) {
        r = message_send(conn);
        if (r == 0 && (!list_empty(&conn->queue) || conn->closing || conn->ping_due))
            lws_callback_on_writable(wsi);
        if (r == 0 && list_empty(&conn->queue) && !conn->closing)
            conn->handlers.writable(conn, conn->userdata);
        return r;
    }
    if (conn->closing) {
        lws_close_reason(wsi, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
        return -1;
    }
    if (conn->ping_due) {
        conn->ping_due = false;
        return ping_send(wsi);
    }
    return 0;
}

static int on_peer_close(struct lws *wsi _unused_, WsConn *conn, void *in, size_t len)
{
    const unsigned char *code = in;

    conn->last_rx_ms = ws_now_ms();
    conn->close_code = len >= 2 ? (unsigned)(code[0] << 8 | code[1]) : CLOSE_NORMAL;
    return 0;
}

static void closed_error(const WsConn *conn, Error **error)
{
    if (conn->closing || conn->close_code == CLOSE_NORMAL)
        return;
    if (conn->close_code)
        error_set(error, ERROR_UNAVAILABLE, "the stream was closed with code %u", conn->close_code);
    else
        error_set(error, ERROR_UNAVAILABLE, "the connection to the API server was lost");
}

static int on_closed(struct lws *wsi _unused_, WsConn *conn, void *in _unused_, size_t len _unused_)
{
    _cleanup_error_ Error *error = NULL;

    closed_error(conn, &error);
    lws_set_wsi_user(conn->wsi, NULL);
    conn->wsi = NULL;
    ws_conn_finish(conn, error);
    return 0;
}

typedef struct RefusalKind {
    int status;
    ErrorKind kind;
} RefusalKind;

static const RefusalKind refusal_kinds[] = {
    {400, ERROR_INVALID},   {401, ERROR_UNAUTHENTICATED}, {403, ERROR_DENIED},
    {404, ERROR_NOT_FOUND}, {429, ERROR_EXHAUSTED},
};

static ErrorKind refusal_kind(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(refusal_kinds); i++)
        if (refusal_kinds[i].status == status)
            return refusal_kinds[i].kind;
    return ERROR_UNAVAILABLE;
}

static int on_connection_error(struct lws *wsi, WsConn *conn, void *in, size_t len)
{
    _cleanup_error_ Error *error = NULL;
    int status = (int)lws_http_client_http_response(wsi);

    if (status >= 300) {
        error_set(&error, refusal_kind(status), "the API server refused the stream (HTTP %d)",
                  status);
        error->http_status = status;
    } else if (conn->tls_problem) {
        error_set(&error, ERROR_UNAVAILABLE, "the API server's certificate is not accepted: %s",
                  conn->tls_problem);
    } else {
        error_set(&error, ERROR_UNAVAILABLE, "cannot open a stream to the API server: %.*s",
                  (int)(len ? len : strlen("no reason given")),
                  len ? (const char *)in : "no reason given");
    }
    if (status == 0)
        ws_client_address_failed(conn->client);
    lws_set_wsi_user(wsi, NULL);
    conn->wsi = NULL;
    ws_conn_finish(conn, error);
    return 0;
}

static int on_destroyed(struct lws *wsi, WsConn *conn, void *in _unused_, size_t len _unused_)
{
    lws_set_wsi_user(wsi, NULL);
    conn->wsi = NULL;
    if (!conn->connecting)
        conn_fail(conn, ERROR_UNAVAILABLE, "the connection to the API server was lost");
    return 0;
}

typedef struct Reason {
    enum lws_callback_reasons reason;
    int (*fn)(struct lws *wsi, WsConn *conn, void *in, size_t len);
} Reason;

static const Reason reasons[] = {
    {LWS_CALLBACK_CLIENT_RECEIVE, on_receive},
    {LWS_CALLBACK_CLIENT_WRITEABLE, on_writable},
    {LWS_CALLBACK_CLIENT_RECEIVE_PONG, on_pong},
    {LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER, on_handshake_header},
    {LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH, on_established_filter},
    {LWS_CALLBACK_CLIENT_ESTABLISHED, on_established},
    {LWS_CALLBACK_WS_PEER_INITIATED_CLOSE, on_peer_close},
    {LWS_CALLBACK_CLIENT_CLOSED, on_closed},
    {LWS_CALLBACK_CLIENT_CONNECTION_ERROR, on_connection_error},
    {LWS_CALLBACK_WSI_DESTROY, on_destroyed},
};

/* The library calls this once per certificate of the chain, with what OpenSSL thinks of it. */
static int on_certificate(struct lws *wsi, X509_STORE_CTX *store, bool verified)
{
    WsConn *conn = lws_wsi_user(wsi);

    if (verified || !conn)
        return verified ? 0 : -1;
    if (conn->client->insecure) {
        X509_STORE_CTX_set_error(store, X509_V_OK);
        return 0;
    }
    conn->tls_problem = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
    return -1;
}

static int ws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                       size_t len)
{
    if (reason == LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION)
        return on_certificate(wsi, user, len != 0);
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (reasons[i].reason == reason)
            return user ? reasons[i].fn(wsi, user, in, len) : 0;
    return 0;
}

const struct lws_protocols ws_protocols[] = {
    {.name = WS_PROTOCOL_NAME, .callback = ws_callback, .rx_buffer_size = WS_READ_BYTES},
    {.name = NULL},
};

/* --- for the user --- */

static struct lws *conn_start(WsConn *conn, const char *path, const char *subprotocols)
{
    WsClient *c = conn->client;
    /* SNI and Host are one field here: a name given for the certificate wins. */
    const char *host = c->ssl && !str_eq(c->sni, c->url.host) ? c->sni : c->authority;
    struct lws_client_connect_info info = {
        .context = c->context,
        .vhost = c->vhost,
        .address = c->addresses.text[c->address],
        .port = c->url.port,
        .path = path,
        .host = host,
        .protocol = subprotocols,
        .local_protocol_name = WS_PROTOCOL_NAME,
        .ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT,
        .userdata = conn,
        .pwsi = &conn->wsi,
        .alpn = "http/1.1",
    };

    if (c->ssl) /* the name is checked by the context, see websocket_tls.c */
        info.ssl_connection |= LCCSCF_USE_SSL | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK;
    return lws_client_connect_via_info(&info);
}

static WsConn *conn_new(WsClient *c, const WsConnectOptions *options, const WsHandlers *handlers,
                        void *userdata)
{
    WsConn *conn = xnew(WsConn);

    conn->client = c;
    conn->handlers = *handlers;
    conn->userdata = userdata;
    conn->connecting = true;
    conn->bearer_token = xstrdup_null(options->bearer_token);
    list_init(&conn->queue);
    conn->deadline = (LoopTimer){.fn = deadline_passed, .userdata = conn};
    conn->watch = (LoopTimer){.fn = silence_check, .userdata = conn};
    return conn;
}

int ws_connect(WsClient *c, const WsConnectOptions *options, const WsHandlers *handlers,
               void *userdata, WsConn **ret, Error **error)
{
    _cleanup_free_ char *path = xasprintf("%s%s", c->url.prefix, options->path);

    if (strlen(path) > WS_PATH_MAX)
        return error_set(error, ERROR_TOO_LARGE, "a request line of %zu bytes is too long",
                         strlen(path));
    if (c->n_conns >= c->max_connections)
        return error_set(error, ERROR_EXHAUSTED, "all %u streams are in use", c->max_connections);
    WsConn *conn = conn_new(c, options, handlers, userdata);
    if (!conn_start(conn, path, options->subprotocols)) {
        conn->wsi = NULL;
        conn_free(conn);
        ws_client_address_failed(c);
        return error_set(error, ERROR_UNAVAILABLE, "cannot connect to the API server");
    }
    conn->connecting = false;
    list_push(&c->conns, &conn->link);
    c->n_conns++;
    ws_timer_set(c, &conn->deadline,
                 options->open_timeout_ms ? options->open_timeout_ms : OPEN_TIMEOUT_MS);
    *ret = conn;
    return 0;
}

int ws_send(WsConn *conn, const void *data, size_t len)
{
    if (conn->closing || !conn->opened || !conn->wsi)
        return -ESHUTDOWN;
    if (len > WS_QUEUE_MAX - conn->queued)
        return -ENOBUFS;
    WsMessage *m = xmalloc(sizeof(*m) + LWS_PRE + len + 1);
    *m = (WsMessage){.len = len};
    if (len > 0)
        memcpy(m->data + LWS_PRE, data, len);
    list_push(&conn->queue, &m->link);
    conn->queued += len;
    lws_callback_on_writable(conn->wsi);
    return 0;
}

size_t ws_queued(const WsConn *conn)
{
    return conn->queued;
}

void ws_pause(WsConn *conn, bool paused)
{
    if (conn->wsi)
        (void)lws_rx_flow_control(conn->wsi, paused ? 0 : 1);
}

void ws_close(WsConn *conn)
{
    if (conn->closing)
        return;
    conn->closing = true;
    if (conn->opened && conn->wsi)
        lws_callback_on_writable(conn->wsi);
    ws_timer_set(conn->client, &conn->deadline, conn->opened ? WS_CLOSE_WAIT_MS : 0);
}
