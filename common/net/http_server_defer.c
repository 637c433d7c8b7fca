/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred requests. While a connection is suspended libmicrohttpd neither closes nor reuses its
 * descriptor, and does not notice that the peer left; so the descriptor sits in an epoll set of
 * ours, for RDHUP alone (HUP and ERR are always reported). The order that is safe: suspend before
 * the request is published, remove the descriptor before the resume, resume last.
 *
 * The set is read one event at a time: what a callback does to other requests can then not leave
 * an event of a freed one behind.
 */
#include "common/base/log.h"
#include "common/net/http_server-internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define EVENTS_A_TURN 256 /* so that other work of the loop gets its turn */

void http_request_defer(HttpServerRequest *r)
{
    HttpServer *s = r->server;

    assert(s->options.loop && !r->deferred && !r->response);
    r->deferred = true;
    (void)http_request_ref(r);
    MHD_suspend_connection(r->connection);
    pthread_mutex_lock(&s->lock);
    r->abandoned = s->stopping;
    if (!r->abandoned)
        list_push(&s->owned, &r->owned_node);
    pthread_mutex_unlock(&s->lock);
    if (r->abandoned)
        MHD_resume_connection(r->connection);
}

void http_owned_remove(HttpServerRequest *r)
{
    pthread_mutex_lock(&r->server->lock);
    list_remove(&r->owned_node);
    pthread_mutex_unlock(&r->server->lock);
}

static HttpServerRequest *owned_pop(HttpServer *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    List *node = list_pop(&s->owned);
    pthread_mutex_unlock(&s->lock);
    return node ? LIST_ENTRY(node, HttpServerRequest, owned_node) : NULL;
}

void http_owned_abandon_all(HttpServer *s)
{
    for (HttpServerRequest *r = owned_pop(s); r; r = owned_pop(s)) {
        log_error("a request was not answered before the end", LOGF_STR("path", r->path));
        r->abandoned = true;
        if (r->stream) {
            http_stream_cut(r);
            continue;
        }
        http_watch_remove(r);
        MHD_resume_connection(r->connection);
    }
}

int http_watch_add(HttpServerRequest *r)
{
    struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = r};

    if (epoll_ctl(r->server->watch_fd, EPOLL_CTL_ADD, r->link->fd, &event) == 0)
        return 0;
    int saved = errno;
    log_error("cannot watch a connection", LOGF_STR("error", strerror(saved)));
    return -saved;
}

void http_watch_remove(HttpServerRequest *r)
{
    if (!r->watched)
        return;
    r->watched = false;
    (void)epoll_ctl(r->server->watch_fd, EPOLL_CTL_DEL, r->link->fd, NULL);
}

void http_request_on_gone(HttpServerRequest *r, LoopFn fn, void *userdata)
{
    assert(r->deferred);
    r->on_gone = fn;
    r->gone_userdata = userdata;
    if (!r->abandoned && !r->stream && !r->watched && !r->gone)
        r->watched = http_watch_add(r) == 0;
}

bool http_request_is_gone(const HttpServerRequest *r)
{
    return r->gone;
}

/* The callback may answer r, so it is the last thing. */
static void report_gone(HttpServerRequest *r)
{
    if (r->gone)
        return;
    r->gone = true;
    if (r->on_gone)
        r->on_gone(r->gone_userdata);
}

static void peer_left(HttpServerRequest *r)
{
    if (r->stream)
        http_stream_cut(r);
    else
        http_watch_remove(r);
    report_gone(r);
}

static HttpServerRequest *lost_pop(HttpServer *s)
{
    pthread_mutex_lock(&s->lock);
    List *node = list_pop(&s->lost);
    pthread_mutex_unlock(&s->lock);
    return node ? LIST_ENTRY(node, HttpServerRequest, lost_node) : NULL;
}

static void lost_report(HttpServer *s)
{
    uint64_t count;

    (void)!read(s->lost_fd, &count, sizeof count);
    for (HttpServerRequest *r = lost_pop(s); r; r = lost_pop(s)) {
        if (!r->stream->ended)
            report_gone(r);
        http_request_unref(r);
    }
}

static void watch_ready(int fd, uint32_t events, void *userdata)
{
    HttpServer *s = userdata;
    struct epoll_event event;

    (void)events;
    for (int i = 0; i < EVENTS_A_TURN && epoll_wait(fd, &event, 1, 0) == 1; i++) {
        if (event.data.ptr)
            peer_left(event.data.ptr);
        else
            lost_report(s);
    }
}

int http_watch_open(HttpServer *s, Error **error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    s->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    s->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->watch_fd < 0 || s->lost_fd < 0 ||
        epoll_ctl(s->watch_fd, EPOLL_CTL_ADD, s->lost_fd, &event) < 0)
        return error_set(error, ERROR_INTERNAL, "cannot watch connections: %s", strerror(errno));
    if (loop_fd_add(s->options.loop, s->watch_fd, EPOLLIN, watch_ready, s) < 0)
        return error_set(error, ERROR_INTERNAL, "the loop watches too many descriptors");
    return 0;
}

void http_watch_close(HttpServer *s)
{
    if (s->watch_fd >= 0)
        loop_fd_remove(s->options.loop, s->watch_fd);
    for (HttpServerRequest *r = lost_pop(s); r; r = lost_pop(s))
        http_request_unref(r);
    closep(&s->watch_fd);
    closep(&s->lost_fd);
}
