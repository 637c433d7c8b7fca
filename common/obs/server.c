/* SPDX-License-Identifier: Apache-2.0 */
#include "common/obs/server.h"

#include "common/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define PAGE_MAX (8UL * 1024 * 1024)
#define REASON_MAX 1024
#define CONNECTIONS_MAX 64
#define TEXT "text/plain; charset=utf-8"

struct ObsServer {
    HttpServer *http;
    Metrics *metrics;
    int64_t stall_ms;
    _Atomic int64_t alive_ms;
    pthread_mutex_t lock; /* not_ready */
    char *not_ready;      /* a line; NULL: ready */
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static void reply_text(HttpServerRequest *r, int status, const char *text)
{
    http_reply(r, status, TEXT, text, strlen(text), NULL, 0);
}

static void handle_healthz(HttpServerRequest *r, void *userdata)
{
    ObsServer *s = userdata;

    if (now_ms() - atomic_load(&s->alive_ms) > s->stall_ms)
        reply_text(r, 500, "the main loop does not turn\n");
    else
        reply_text(r, 200, "ok\n");
}

static void handle_readyz(HttpServerRequest *r, void *userdata)
{
    ObsServer *s = userdata;

    pthread_mutex_lock(&s->lock);
    _cleanup_free_ char *reason = xstrdup_null(s->not_ready);
    pthread_mutex_unlock(&s->lock);
    reply_text(r, reason ? 503 : 200, reason ? reason : "ok\n");
}

static void handle_metrics(HttpServerRequest *r, void *userdata)
{
    ObsServer *s = userdata;
    _cleanup_buf_ Buf page = BUF_INIT(PAGE_MAX);

    if (metrics_print(s->metrics, &page) < 0)
        reply_text(r, 500, "the page is too large\n");
    else
        http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", page.data, page.len, NULL,
                   0);
}

static const HttpRoute routes[] = {
    {"GET", "/healthz", handle_healthz},
    {"GET", "/readyz", handle_readyz},
    {"GET", "/metrics", handle_metrics},
};

int obs_server_new(const char *listen, Metrics *metrics, int64_t stall_ms, ObsServer **ret,
                   Error **error)
{
    ObsServer *s = xnew(ObsServer);
    const HttpServerOptions options = {
        .listen = listen,
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .userdata = s,
        .max_connections = CONNECTIONS_MAX,
        .max_body_bytes = 1024,
        .connection_memory_bytes = 8UL * 1024,
        .receive_timeout_s = 5,
    };

    s->metrics = metrics;
    s->stall_ms = stall_ms;
    atomic_store(&s->alive_ms, now_ms());
    pthread_mutex_init(&s->lock, NULL);
    obs_server_set_ready(s, "starting");
    int r = http_server_new(&options, &s->http, error);
    if (r < 0) {
        (void)obs_server_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

ObsServer *obs_server_free(ObsServer *s)
{
    if (!s)
        return NULL;
    s->http = http_server_free(s->http);
    pthread_mutex_destroy(&s->lock);
    free(s->not_ready);
    free(s);
    return NULL;
}

uint16_t obs_server_port(const ObsServer *s)
{
    return http_server_port(s->http);
}

void obs_server_alive(ObsServer *s)
{
    atomic_store(&s->alive_ms, now_ms());
    http_server_sweep(s->http);
}

void obs_server_set_ready(ObsServer *s, const char *not_ready_reason)
{
    char *line = NULL;

    if (not_ready_reason)
        line = xasprintf("%.*s\n", REASON_MAX, not_ready_reason);
    pthread_mutex_lock(&s->lock);
    char *old = s->not_ready;
    s->not_ready = line;
    pthread_mutex_unlock(&s->lock);
    free(old);
}
