/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/contract.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/net/websocket-internal.h"

#include <errno.h>
#include <string.h>

#define CONNECTIONS_DEFAULT 256
#define FDS_SPARE 16 /* what libwebsockets opens for itself */
#define HEADER_BYTES_MAX 16384

typedef struct WsPost {
    List link;
    LoopFn fn;
    LoopFn drop; /* instead of fn where the thread ended first; may be NULL */
    void *userdata;
} WsPost;

int64_t ws_now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

/* --- functions posted by other threads --- */

static int post_add(WsClient *c, LoopFn fn, LoopFn drop, void *userdata)
{
    int r = 0;

    pthread_mutex_lock(&c->lock);
    if (c->closed)
        r = -ESHUTDOWN;
    else if (c->n_posts >= LOOP_POSTS_MAX)
        r = -ENOBUFS;
    if (r == 0) {
        WsPost *post = xnew(WsPost);
        *post = (WsPost){.fn = fn, .drop = drop, .userdata = userdata};
        list_push(&c->posts, &post->link);
        if (c->n_posts++ == 0)
            lws_cancel_service(c->context);
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

int ws_post(WsClient *c, LoopFn fn, void *userdata)
{
    return post_add(c, fn, NULL, userdata);
}

static WsPost *post_take(WsClient *c)
{
    pthread_mutex_lock(&c->lock);
    List *link = list_pop(&c->posts);
    if (link)
        c->n_posts--;
    pthread_mutex_unlock(&c->lock);
    return link ? LIST_ENTRY(link, WsPost, link) : NULL;
}

static void posts_run(WsClient *c)
{
    /* What a post posts is run in the same turn; a turn is bounded by what was there before. */
    pthread_mutex_lock(&c->lock);
    size_t n = c->n_posts;
    pthread_mutex_unlock(&c->lock);

    while (n-- > 0 && !c->stopping) {
        _cleanup_free_ WsPost *post = post_take(c);
        if (!post)
            return;
        post->fn(post->userdata);
    }
    pthread_mutex_lock(&c->lock);
    if (c->n_posts > 0)
        lws_cancel_service(c->context);
    pthread_mutex_unlock(&c->lock);
}

/* --- timers --- */

static void timers_run(lws_sorted_usec_list_t *sul);

static void timers_arm(WsClient *c)
{
    const HeapTimer *first = heap_peek(&c->timers);

    if (!first) {
        lws_sul_cancel(&c->sul);
        return;
    }
    int64_t delay_ms = first->due_ms - ws_now_ms();
    lws_sul_schedule(c->context, 0, &c->sul, timers_run,
                     (delay_ms > 0 ? delay_ms : 0) * LWS_US_PER_MS + 1);
}

static void timers_run(lws_sorted_usec_list_t *sul)
{
    WsClient *c = CONTAINER_OF(sul, WsClient, sul);
    int64_t now_ms = ws_now_ms();

    for (HeapTimer *due = NULL; (due = heap_pop_due(&c->timers, now_ms));) {
        LoopTimer *t = CONTAINER_OF(due, LoopTimer, heap);
        t->fn(t->userdata);
    }
    timers_arm(c);
}

void ws_timer_set(WsClient *c, LoopTimer *t, int64_t delay_ms)
{
    heap_set(&c->timers, &t->heap, ws_now_ms() + (delay_ms > 0 ? delay_ms : 0));
    timers_arm(c);
}

void ws_timer_stop(WsClient *c, LoopTimer *t)
{
    heap_remove(&c->timers, &t->heap);
}

/* --- addresses --- */

typedef struct Resolved {
    WsClient *client;
    WsAddresses addresses;
    bool ok;
} Resolved;

static void resolved_apply(void *userdata)
{
    _cleanup_free_ Resolved *r = userdata;
    WsClient *c = r->client;

    c->resolving = false;
    if (!r->ok)
        return;
    c->addresses = r->addresses;
    c->address = 0;
}

static void *resolver_run(void *userdata)
{
    Resolved *r = userdata;
    _cleanup_error_ Error *error = NULL;

    r->ok = ws_resolve(r->client->url.host, &r->addresses, &error) >= 0;
    if (!r->ok)
        log_warn("cannot find the API server's address", LOGF_STR("error", error_message(error)));
    if (post_add(r->client, resolved_apply, free, r) < 0)
        free(r);
    return NULL;
}

void ws_client_address_failed(WsClient *c)
{
    int64_t now_ms = ws_now_ms();

    c->address = (c->address + 1) % c->addresses.len;
    if (c->resolving || ws_is_numeric(c->url.host) || now_ms - c->resolved_ms < WS_RESOLVE_PAUSE_MS)
        return;
    if (c->resolver_started)
        pthread_join(c->resolver, NULL);
    Resolved *r = xnew(Resolved);
    r->client = c;
    c->resolver_started = pthread_create(&c->resolver, NULL, resolver_run, r) == 0;
    c->resolving = c->resolver_started;
    c->resolved_ms = now_ms;
    if (!c->resolver_started)
        free(r);
}

/* --- the service thread --- */

static void client_stop(void *userdata)
{
    WsClient *c = userdata;
    c->stopping = true;
}

static void conns_end(WsClient *c)
{
    _cleanup_error_ Error *error = NULL;

    error_set(&error, ERROR_CANCELLED, "the connection was closed, as the program ends");
    while (!list_empty(&c->conns))
        ws_conn_finish(ws_conn_from_link(c->conns.next), error);
}

static void *service_run(void *userdata)
{
    WsClient *c = userdata;

    while (!c->stopping) {
        posts_run(c);
        if (!c->stopping && lws_service(c->context, 0) < 0)
            break;
    }
    conns_end(c);
    return NULL;
}

static void library_log(int level, const char *line)
{
    /* Its complaints are about single connections, and each of those reports its own error. */
    log_debug("libwebsockets", LOGF_INT("level", level), LOGF_STR("line", line));
}

static void library_init(void)
{
    lws_set_log_level(LLL_ERR, library_log);
}

/* An empty proxy address keeps the environment's http_proxy and socks_proxy out. */
static int context_open(WsClient *c, Error **error)
{
    static const lws_retry_bo_t no_idle_policy; /* pings are ours, see websocket_conn.c */
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .protocols = ws_protocols,
        .http_proxy_address = "",
#ifdef LWS_WITH_SOCKS5
        .socks_proxy_address = "",
#endif
        .options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
        .fd_limit_per_thread = c->max_connections + FDS_SPARE,
        .pt_serv_buf_size = WS_READ_BYTES,
        .max_http_header_data2 = HEADER_BYTES_MAX,
        .retry_and_idle_policy = &no_idle_policy,
        .provided_client_ssl_ctx = c->ssl,
        .timeout_secs = 3600, /* deadlines are ours, too */
        .connect_timeout_secs = 3600,
        .vhost_name = "websocket-client",
        .gid = (__typeof__(info.gid))-1, /* signed or not, by version */
        .uid = (__typeof__(info.uid))-1,
        .user = c,
    };

    c->context = lws_create_context(&info);
    c->vhost = c->context ? lws_create_vhost(c->context, &info) : NULL;
    if (!c->vhost)
        return error_set(error, ERROR_INTERNAL, "cannot set the WebSocket library up");
    return 0;
}

static int tls_open(WsClient *c, const WsClientOptions *o, Error **error)
{
    _cleanup_(ws_tls_material_freep) WsTlsMaterial *material = NULL;

    if (str_empty(o->ca_pem) && !o->insecure_skip_verify)
        return error_set(error, ERROR_INVALID, "no CA is given for '%s'", o->url);
    if (strlen(c->sni) > WS_HOST_MAX)
        return error_set(error, ERROR_INVALID, "server name '%.200s' is too long", c->sni);
    int r = ws_tls_material_new(o->ca_pem, o->client_cert_pem, o->client_key_pem, &material, error);
    if (r < 0)
        return r;
    c->ssl = ws_tls_context_new(c->sni, error);
    return c->ssl ? ws_tls_context_apply(c->ssl, material, error) : -EINVAL;
}

static int client_open(WsClient *c, const WsClientOptions *o, Error **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int r = ws_url_parse(o->url, &c->url, error);

    if (r < 0)
        return r;
    pthread_once(&once, library_init);
    c->authority = ws_url_authority(&c->url);
    c->sni = xstrdup(str_empty(o->tls_server_name) ? c->url.host : o->tls_server_name);
    c->user_agent = xstrdup(o->user_agent ? o->user_agent : "sandbox");
    c->insecure = o->insecure_skip_verify;
    c->max_connections = o->max_connections ? o->max_connections : CONNECTIONS_DEFAULT;
    c->silence_ms = o->silence_ms ? o->silence_ms : WS_SILENCE_MS;
    r = ws_resolve(c->url.host, &c->addresses, error);
    if (r >= 0 && c->url.tls)
        r = tls_open(c, o, error);
    if (r >= 0)
        r = context_open(c, error);
    return r;
}

int ws_client_new(const WsClientOptions *options, WsClient **ret, Error **error)
{
    WsClient *c = xnew(WsClient);

    list_init(&c->posts);
    list_init(&c->conns);
    pthread_mutex_init(&c->lock, NULL);
    int r = client_open(c, options, error);
    if (r >= 0) {
        c->thread_started = pthread_create(&c->thread, NULL, service_run, c) == 0;
        if (!c->thread_started)
            r = error_set(error, ERROR_INTERNAL, "cannot start the WebSocket thread");
    }
    if (r < 0) {
        ws_client_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

static void thread_stop(WsClient *c)
{
    /* The stop goes in front of what is queued, whatever its number. */
    WsPost *stop = xnew(WsPost);

    stop->fn = client_stop;
    stop->userdata = c;
    pthread_mutex_lock(&c->lock);
    c->closed = true;
    list_push(c->posts.next, &stop->link);
    c->n_posts++;
    lws_cancel_service(c->context);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    if (c->resolver_started)
        pthread_join(c->resolver, NULL);
}

static void posts_drop(WsClient *c)
{
    for (WsPost *post = NULL; (post = post_take(c));) {
        if (post->drop)
            post->drop(post->userdata);
        free(post);
    }
}

WsClient *ws_client_free(WsClient *c)
{
    if (!c)
        return NULL;
    if (c->thread_started)
        thread_stop(c);
    if (c->context)
        lws_context_destroy(c->context);
    SSL_CTX_free(c->ssl);
    posts_drop(c);
    heap_done(&c->timers);
    pthread_mutex_destroy(&c->lock);
    ws_url_done(&c->url);
    free(c->authority);
    free(c->sni);
    free(c->user_agent);
    free(c);
    return NULL;
}

/* --- rotation --- */

typedef struct TlsChange {
    WsClient *client;
    WsTlsMaterial *material;
} TlsChange;

static void tls_change_drop(void *userdata)
{
    TlsChange *change = userdata;
    ws_tls_material_free(change->material);
    free(change);
}

static void tls_change_apply(void *userdata)
{
    TlsChange *change = userdata;
    _cleanup_error_ Error *error = NULL;

    if (ws_tls_context_apply(change->client->ssl, change->material, &error) < 0)
        log_error("cannot renew TLS credentials", LOGF_STR("error", error_message(error)));
    tls_change_drop(change);
}

int ws_client_set_tls(WsClient *c, const char *ca_pem, const char *cert_pem, const char *key_pem,
                      Error **error)
{
    _cleanup_(ws_tls_material_freep) WsTlsMaterial *material = NULL;
    int r = ws_tls_material_new(ca_pem, cert_pem, key_pem, &material, error);

    if (r < 0 || !c->ssl)
        return r;
    TlsChange *change = xnew(TlsChange);
    change->client = c;
    change->material = TAKE_PTR(material);
    r = post_add(c, tls_change_apply, tls_change_drop, change);
    if (r < 0) {
        tls_change_drop(change);
        return error_set(error, ERROR_UNAVAILABLE, "the WebSocket client is busy or ends");
    }
    return 0;
}
