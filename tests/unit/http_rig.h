/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with a few routes and raw sockets against it, for the tests of the HTTP server. The
 * test's thread is the loop's thread: whatever waits turns the loop meanwhile. Waiting has a limit
 * of RIG_PATIENCE_MS, after which the test fails.
 */
#pragma once

#include "tests/unit/cmocka_all.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define RIG_PATIENCE_MS 20000
#define RIG_HELD_MAX 1024

typedef struct Rig {
    Loop *loop;
    HttpServer *server;
    HttpServerRequest *held[RIG_HELD_MAX]; /* deferred, in the order of arrival */
    int n_held;
    int n_gone;
    bool watch; /* held requests are watched at once */
    atomic_int n_completed;
    atomic_int n_peer_gone;
    atomic_int last_status;
} Rig;

static Rig rig;

static int64_t rig_now(void)
{
    return clock_monotonic_ms(&clock_system);
}

#define rig_wait(condition)                                                                        \
    do {                                                                                           \
        int64_t _until = rig_now() + RIG_PATIENCE_MS;                                              \
        while (!(condition)) {                                                                     \
            if (rig_now() > _until)                                                                \
                fail_msg("waited in vain for: %s", #condition);                                    \
            loop_turn(rig.loop, 2);                                                                \
        }                                                                                          \
    } while (0)

static void rig_on_gone(void *userdata)
{
    (void)userdata;
    rig.n_gone++;
}

static void rig_arrived(void *userdata)
{
    assert_true(rig.n_held < RIG_HELD_MAX);
    rig.held[rig.n_held++] = userdata;
    if (rig.watch)
        http_request_on_gone(userdata, rig_on_gone, userdata);
}

static void rig_hello(HttpServerRequest *r, void *userdata)
{
    const HttpHeader headers[] = {{"X-Peer", http_request_peer(r)},
                                  {"X-Agent", http_request_header(r, "user-agent") ?: "none"}};

    assert_ptr_equal(userdata, &rig);
    http_reply(r, 200, "text/plain", "hello", 5, headers, ARRAY_SIZE(headers));
}

static void rig_echo(HttpServerRequest *r, void *userdata)
{
    size_t len;
    const char *body = http_request_body(r, &len);

    (void)userdata;
    http_reply(r, 200, "application/octet-stream", body, len, NULL, 0);
}

static void rig_hold(HttpServerRequest *r, void *userdata)
{
    (void)userdata;
    http_request_defer(r);
    if (loop_post(rig.loop, rig_arrived, r) < 0)
        abort();
}

static void rig_silent(HttpServerRequest *r, void *userdata)
{
    (void)r;
    (void)userdata;
}

#define RIG_BIG (32UL * 1024 * 1024)
static void rig_big(HttpServerRequest *r, void *userdata)
{
    char *body = calloc(1, RIG_BIG);

    (void)userdata;
    http_reply(r, 200, NULL, body, RIG_BIG, NULL, 0);
    free(body);
}

static const HttpRoute rig_routes[] = {
    {"GET", "/hello", rig_hello}, {"POST", "/hello", rig_hello},  {"POST", "/echo", rig_echo},
    {NULL, "/hold", rig_hold},    {"GET", "/silent", rig_silent}, {"GET", "/big", rig_big},
};

static void rig_on_complete(const char *method, const char *path, int status, int64_t duration_ms,
                            void *userdata)
{
    (void)userdata;
    assert_non_null(method);
    assert_non_null(path);
    assert_true(duration_ms >= 0);
    atomic_store(&rig.last_status, status);
    if (status == HTTP_STATUS_PEER_GONE)
        atomic_fetch_add(&rig.n_peer_gone, 1);
    atomic_fetch_add(&rig.n_completed, 1);
}

/* The rest of the options may be set by the caller. */
static void rig_start(HttpServerOptions options)
{
    Error *error = NULL;

    memset(&rig, 0, sizeof rig);
    rig.watch = true;
    assert_int_equal(loop_new(&clock_system, &rig.loop, &error), 0);
    options.listen = options.listen ? options.listen : "127.0.0.1:0";
    options.routes = rig_routes;
    options.n_routes = ARRAY_SIZE(rig_routes);
    options.userdata = &rig;
    options.loop = rig.loop;
    options.on_complete = rig_on_complete;
    if (http_server_new(&options, &rig.server, &error) < 0)
        fail_msg("%s", error_message(error));
}

_unused_ static void rig_stop(void)
{
    rig.server = http_server_free(rig.server);
    rig.loop = loop_free(rig.loop);
}

typedef struct Peer {
    int fd;
    Buf in;
    bool eof;
} Peer;

typedef struct Answer {
    int status; /* 0: the connection ended first */
    char head[4096];
    char *body;
    size_t len;
} Answer;

static Peer peer_open(void)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(rig.server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = RIG_PATIENCE_MS / 1000};
    Peer p = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .in = BUF_INIT(256UL << 20)};

    assert_true(p.fd >= 0);
    assert_int_equal(setsockopt(p.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(connect(p.fd, (const struct sockaddr *)&to, sizeof to), 0);
    return p;
}

static void peer_close(Peer *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = -1;
    buf_done(&p->in);
}

/* The server may have closed already: what is sent into the void is no failure of the test. */
static void peer_send_n(Peer *p, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(p->fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return;
        assert_true(n > 0);
        data += n;
        len -= (size_t)n;
    }
}

static void peer_send(Peer *p, const char *text)
{
    peer_send_n(p, text, strlen(text));
}

static void peer_fill(Peer *p)
{
    char block[65536];
    struct pollfd pfd = {.fd = p->fd, .events = POLLIN};

    loop_turn(rig.loop, 0);
    if (poll(&pfd, 1, 2) != 1)
        return;
    ssize_t n = recv(p->fd, block, sizeof block, MSG_DONTWAIT);
    if (n > 0)
        assert_int_equal(buf_append(&p->in, block, (size_t)n), 0);
    else if (n == 0 || errno != EAGAIN)
        p->eof = true;
}

_unused_ static bool peer_ended(Peer *p) /* reads and drops until the end */
{
    int64_t until = rig_now() + RIG_PATIENCE_MS;

    while (!p->eof && rig_now() < until) {
        peer_fill(p);
        buf_clear(&p->in);
    }
    return p->eof;
}

static const char *answer_header(const Answer *a, const char *name)
{
    static char value[1024];
    size_t len = strlen(name);

    for (const char *line = strstr(a->head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, len) != 0 || line[2 + len] != ':')
            continue;
        const char *from = line + 2 + len + 1 + strspn(line + 2 + len + 1, " ");
        (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(from, "\r"), from);
        return value;
    }
    return NULL;
}

/* The bytes that the chunks at `in` take, 0 where they are not all there; the content goes to out.
 */
static size_t chunks_decode(const char *in, size_t len, Buf *out)
{
    if (len < 5 || (len > 65536 && memcmp(in + len - 5, "0\r\n\r\n", 5) != 0))
        return 0; /* a large one is not tried at each piece */
    for (size_t at = 0;;) {
        const char *end = memmem(in + at, len - at < 20 ? len - at : 20, "\r\n", 2);
        if (!end)
            return 0;
        size_t size = strtoul(in + at, NULL, 16);
        at = (size_t)(end - in) + 2;
        if (at + size + 2 > len)
            return 0;
        assert_memory_equal(in + at + size, "\r\n", 2);
        if (size == 0)
            return at + 2;
        buf_append(out, in + at, size);
        at += size + 2;
    }
}

/* Takes a whole answer from the bytes that are there. */
static bool answer_parse(Peer *p, Answer *a, bool no_body)
{
    size_t near = p->in.len < sizeof a->head ? p->in.len : sizeof a->head;
    const char *end = near ? memmem(p->in.data, near, "\r\n\r\n", 4) : NULL;
    Buf body = BUF_INIT(256UL << 20);
    size_t head = end ? (size_t)(end - p->in.data) + 4 : 0, len = 0;

    if (!end)
        return false;
    assert_true(head < sizeof a->head);
    memcpy(a->head, p->in.data, head);
    a->head[head] = '\0';
    assert_int_equal(sscanf(a->head, "HTTP/1.1 %d ", &a->status), 1);
    if (!no_body && a->status >= 200 && answer_header(a, "Transfer-Encoding")) {
        len = chunks_decode(p->in.data + head, p->in.len - head, &body);
        if (len == 0) {
            buf_done(&body);
            return false;
        }
    } else if (!no_body && answer_header(a, "Content-Length")) {
        len = strtoul(answer_header(a, "Content-Length"), NULL, 10);
        if (p->in.len - head < len)
            return false;
        buf_append(&body, p->in.data + head, len);
    }
    buf_consume(&p->in, head + len);
    a->body = buf_take(&body, &a->len);
    return true;
}

static Answer peer_answer_of(Peer *p, bool no_body)
{
    Answer a = {0};
    int64_t until = rig_now() + RIG_PATIENCE_MS;

    while (!answer_parse(p, &a, no_body)) {
        if (p->eof)
            return (Answer){0};
        if (rig_now() > until)
            fail_msg("no answer in time; so far: %s", buf_str(&p->in));
        peer_fill(p);
    }
    return a;
}

static Answer peer_answer(Peer *p)
{
    return peer_answer_of(p, false);
}

_unused_ static int peer_status(Peer *p) /* of the next answer */
{
    Answer a = peer_answer(p);

    free(a.body);
    return a.status;
}

_unused_ static void peer_expect(Peer *p, int status, const char *body)
{
    Answer a = peer_answer(p);

    assert_int_equal(a.status, status);
    if (body)
        assert_string_equal(a.body, body);
    free(a.body);
}
