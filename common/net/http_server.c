/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/http_server.h"

#include "common/base/log.h"
#include "common/net/http_server-internal.h"
#include "common/net/http_server_listen.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define THREADS_MAX 2
#define SWEEP_MS 1000
#define LIBRARY_LINE_MAX 256

int64_t http_now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

HttpServer *http_server_ref(HttpServer *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void http_server_unref(HttpServer *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void library_log(void *userdata, const char *fmt, va_list ap) _printf_(2, 0);
static void library_log(void *userdata, const char *fmt, va_list ap)
{
    char line[LIBRARY_LINE_MAX];

    (void)userdata;
    if (!log_enabled(LOG_DEBUG))
        return;
    (void)vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\n")] = '\0';
    log_debug("HTTP library", LOGF_STR("line", line));
}

static void library_panic(void *userdata, const char *file, unsigned line, const char *reason)
{
    (void)userdata;
    log_error("HTTP library cannot go on", LOGF_STR("file", file), LOGF_INT("line", line),
              LOGF_STR("reason", reason));
    abort();
}

/* Paths are matched as they came: an escaped character never turns into a route, or a NUL. */
static size_t library_unescape(void *userdata, struct MHD_Connection *connection, char *text)
{
    (void)userdata;
    (void)connection;
    return strlen(text);
}

static void library_init(void)
{
    MHD_set_panic_func(library_panic, NULL);
}

static HttpServerOptions options_with_defaults(const HttpServerOptions *given)
{
    HttpServerOptions o = *given;

    o.listen = NULL;
    o.threads = o.threads ? o.threads : 1;
    o.max_connections = o.max_connections ? o.max_connections : 1024;
    o.max_body_bytes = o.max_body_bytes ? o.max_body_bytes : 64UL * 1024;
    o.max_bodies_bytes = o.max_bodies_bytes ? o.max_bodies_bytes : 256UL * 1024 * 1024;
    o.connection_memory_bytes = o.connection_memory_bytes ? o.connection_memory_bytes : 16UL * 1024;
    o.receive_timeout_s = o.receive_timeout_s ? o.receive_timeout_s : 30;
    o.slowest_bytes_per_s = o.slowest_bytes_per_s ? o.slowest_bytes_per_s : 64UL * 1024;
    o.keepalive_timeout_s = o.keepalive_timeout_s ? o.keepalive_timeout_s : 120;
    return o;
}

static int daemon_start(HttpServer *s, Error **error)
{
    const HttpServerOptions *o = &s->options;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                     MHD_USE_ERROR_LOG | (unsigned)(o->use_poll ? MHD_USE_POLL : MHD_USE_EPOLL);
    struct MHD_OptionItem more[] = {
#if MHD_VERSION >= HTTP_STRICT_LIBRARY
        {MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL}, /* folded lines are 400, unfolded by default */
#endif
        /* A pool has at least two threads: for one, the option has to be absent. */
        {o->threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, o->threads, NULL},
        {MHD_OPTION_END, 0, NULL},
    };

    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, http_request_on_data, s, MHD_OPTION_EXTERNAL_LOGGER, library_log,
        NULL, MHD_OPTION_LISTEN_SOCKET, s->listen_fd, MHD_OPTION_NOTIFY_COMPLETED,
        http_request_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, http_connection_on_notify, s,
        MHD_OPTION_URI_LOG_CALLBACK, http_request_on_target, s, MHD_OPTION_UNESCAPE_CALLBACK,
        library_unescape, NULL, MHD_OPTION_CONNECTION_LIMIT, o->max_connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, o->max_connections_per_ip,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, o->connection_memory_bytes,
        MHD_OPTION_CONNECTION_TIMEOUT, o->keepalive_timeout_s, MHD_OPTION_ARRAY, more,
        MHD_OPTION_END);
    if (s->daemon)
        return 0;
    s->listen_fd = -1; /* closed by the library, on all but its rarest failures */
    return error_set(error, ERROR_INTERNAL, "cannot start the HTTP server");
}

static void sweep_due(void *userdata)
{
    HttpServer *s = userdata;

    http_server_sweep(s);
    loop_timer_set(s->options.loop, &s->sweep_timer, SWEEP_MS);
}

static int server_open(HttpServer *s, const char *address, Error **error)
{
    int r = http_listen(address, &s->listen_fd, &s->port, error);
    if (r >= 0 && s->options.loop)
        r = http_watch_open(s, error);
    if (r >= 0)
        r = daemon_start(s, error);
    if (r >= 0 && s->options.loop)
        loop_timer_set(s->options.loop, &s->sweep_timer, SWEEP_MS);
    return r;
}

int http_server_new(const HttpServerOptions *options, HttpServer **ret, Error **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, library_init);

    assert(options->threads <= THREADS_MAX);
    HttpServer *s = xnew(HttpServer);
    s->refs = 1;
    s->options = options_with_defaults(options);
    s->listen_fd = s->watch_fd = s->lost_fd = -1;
    s->sweep_timer.fn = sweep_due;
    s->sweep_timer.userdata = s;
    pthread_mutex_init(&s->lock, NULL);
    list_init(&s->connections);
    list_init(&s->owned);
    list_init(&s->lost);
    int r = server_open(s, options->listen, error);
    if (r < 0) {
        (void)http_server_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

uint16_t http_server_port(const HttpServer *s)
{
    return s->port;
}

void http_server_drain(HttpServer *s)
{
    atomic_store(&s->draining, true);
}

void http_server_quiesce(HttpServer *s)
{
    http_server_drain(s);
    if (atomic_exchange(&s->quiesced, true))
        return;
    (void)MHD_quiesce_daemon(s->daemon);
    /* The descriptor stays open until the threads are gone; this makes new connections fail now. */
    (void)shutdown(s->listen_fd, SHUT_RDWR);
}

size_t http_server_pending(const HttpServer *s)
{
    return atomic_load(&s->pending);
}

HttpServer *http_server_free(HttpServer *s)
{
    if (!s)
        return NULL;
    if (s->options.loop)
        loop_timer_stop(s->options.loop, &s->sweep_timer);
    http_owned_abandon_all(s);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    assert(list_empty(&s->connections));
    http_watch_close(s);
    /* Without a quiesce the daemon closed it. */
    if (s->listen_fd >= 0 && (!s->daemon || atomic_load(&s->quiesced)))
        (void)close(s->listen_fd);
    s->daemon = NULL;
    http_server_unref(s);
    return NULL;
}
