/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines of connections. libmicrohttpd's own time-out counts from the last byte, so a peer that
 * sends one byte a minute would hold its connection for ever; these count from the beginning.
 *
 * In its epoll mode (edge-triggered) it also misses the end of a connection that comes together
 * with bytes of a request, be it whole or not: a read that does not fill its buffer counts as the
 * last one. Such a connection would stay until a deadline; the sweep ends it.
 */
#include "common/net/http_server-internal.h"

#include <sys/socket.h>

#define SWEEP_MIN_MS 500 /* a caller may be quicker */

static int connection_fd(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void connection_started(HttpServer *s, struct MHD_Connection *connection, void **link)
{
    HttpConnection *c = xnew(HttpConnection);

    c->fd = connection_fd(connection);
    c->reading = true;
    http_connection_wait(c, (int64_t)s->options.receive_timeout_s * 1000);
    pthread_mutex_lock(&s->lock);
    list_push(&s->connections, &c->node);
    pthread_mutex_unlock(&s->lock);
    *link = c;
}

static void connection_closed(HttpServer *s, void **link)
{
    HttpConnection *c = *link;

    if (!c)
        return;
    pthread_mutex_lock(&s->lock);
    list_remove(&c->node);
    pthread_mutex_unlock(&s->lock);
    free(c);
    *link = NULL;
}

void http_connection_on_notify(void *server, struct MHD_Connection *connection, void **link,
                               enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_started(server, connection, link);
    else
        connection_closed(server, link);
}

void http_connection_wait(HttpConnection *c, int64_t ms)
{
    atomic_store_explicit(&c->deadline_ms, ms ? http_now_ms() + ms : 0, memory_order_relaxed);
}

void http_connection_extend(HttpConnection *c, int64_t ms)
{
    atomic_fetch_add_explicit(&c->deadline_ms, ms, memory_order_relaxed);
}

int64_t http_transfer_ms(const HttpServer *s, size_t bytes)
{
    return (int64_t)(bytes * 1000 / s->options.slowest_bytes_per_s);
}

void http_connection_set_reading(HttpConnection *c, bool reading)
{
    atomic_store_explicit(&c->reading, reading, memory_order_relaxed);
}

/* The peer will send nothing more, everything it sent was read, and it is not a whole request. */
static bool at_end(const HttpConnection *c)
{
    char byte;

    return atomic_load_explicit(&c->reading, memory_order_relaxed) &&
           recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* An end has to be found twice: the first time a request may have been read just now. */
static bool is_over(HttpConnection *c, int64_t now)
{
    int64_t deadline = atomic_load_explicit(&c->deadline_ms, memory_order_relaxed);
    bool ended = at_end(c), ended_before = c->ended;

    c->ended = ended;
    return (ended && ended_before) || (deadline && deadline <= now);
}

static void sweep(HttpServer *s, int64_t now)
{
    s->swept_ms = now;
    list_foreach (node, &s->connections) {
        HttpConnection *c = LIST_ENTRY(node, HttpConnection, node);
        if (is_over(c, now))
            (void)shutdown(c->fd, SHUT_RDWR);
    }
}

void http_server_sweep(HttpServer *s)
{
    int64_t now = http_now_ms();

    /* Under the lock a connection in the list cannot be closed, so the descriptor is its own. */
    pthread_mutex_lock(&s->lock);
    if (now - s->swept_ms >= SWEEP_MIN_MS)
        sweep(s, now);
    pthread_mutex_unlock(&s->lock);
}
