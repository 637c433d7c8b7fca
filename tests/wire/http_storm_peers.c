/* SPDX-License-Identifier: Apache-2.0 */
/* The peers of the suspend storm: one thread, raw sockets, every answer checked. */
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "tests/wire/http_storm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#define BURST_MAX 8

typedef struct Peer {
    int fd;
    Buf in;
    uint64_t ids[BURST_MAX];
    bool streams[BURST_MAX];
    int sent, answered; /* of the burst under way */
    Buf rest;           /* of the burst: sent later */
    int64_t rest_at_ms;
    int64_t leave_at_ms; /* 0: stays */
    bool finished;       /* sent a FIN: waits for the server's end of it */
    int64_t sent_us;
} Peer;

static struct {
    Peer peers[STORM_CONNECTIONS_MAX];
    int n;
    uint16_t port;
    int epoll_fd;
    unsigned seed;
    uint64_t next_id, sent, answered, given_up, left, bursts;
    uint64_t latency[64 * 16]; /* by sixteenths of a power of two, in µs */
    int64_t longest_us;
    int64_t now_ms;
    bool stopping;
} crowd;

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static unsigned pick(unsigned n)
{
    return (unsigned)rand_r(&crowd.seed) % n;
}

static size_t latency_slot(int64_t us)
{
    uint64_t v = us > 0 ? (uint64_t)us : 1;
    unsigned power = 63U - (unsigned)__builtin_clzll(v);
    uint64_t fraction = power >= 4 ? (v >> (power - 4)) & 15 : (v << (4 - power)) & 15;

    return power * 16 + fraction;
}

static double latency_ms(double quantile)
{
    uint64_t wanted = (uint64_t)(quantile * (double)crowd.answered), seen = 0;

    for (size_t i = 0; i < ARRAY_SIZE(crowd.latency); i++) {
        seen += crowd.latency[i];
        if (seen > wanted)
            return (double)(1ULL << (i / 16)) * (1 + (double)(i % 16) / 16) / 1000;
    }
    return (double)crowd.longest_us / 1000;
}

static void peer_connect(Peer *p)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(crowd.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;

    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(p->fd >= 0, "socket: %s", strerror(errno));
    check(connect(p->fd, (const struct sockaddr *)&to, sizeof to) == 0, "connect: %s",
          strerror(errno));
    (void)setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
    check(epoll_ctl(crowd.epoll_fd, EPOLL_CTL_ADD, p->fd, &event) == 0, "epoll_ctl: %s",
          strerror(errno));
    p->in = BUF_INIT(1 << 20);
    p->rest = BUF_INIT(1 << 20);
}

static void peer_close(Peer *p)
{
    crowd.given_up += (uint64_t)(p->sent - p->answered);
    (void)close(p->fd);
    buf_done(&p->in);
    buf_done(&p->rest);
    memset(p, 0, sizeof *p);
    p->fd = -1;
}

static void peer_reconnect(Peer *p)
{
    peer_close(p);
    peer_connect(p);
}

static void peer_leave(Peer *p)
{
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};
    unsigned way = pick(3);

    crowd.left++;
    p->leave_at_ms = 0;
    if (way == 0) {
        p->finished = true;
        (void)shutdown(p->fd, SHUT_WR);
        return;
    }
    if (way == 1)
        (void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    peer_reconnect(p);
}

static void add_request(Buf *out, Peer *p)
{
    unsigned kind = pick(10);
    int i = p->sent++;

    p->ids[i] = crowd.next_id++;
    p->streams[i] = kind == 0;
    if (kind == 0)
        buf_printf(out, "GET /stream HTTP/1.1\r\nHost: x\r\n" STORM_ID_HEADER ": %lu\r\n\r\n",
                   p->ids[i]);
    else if (kind <= 2)
        buf_printf(out, "GET /now HTTP/1.1\r\nHost: x\r\n" STORM_ID_HEADER ": %lu\r\n\r\n",
                   p->ids[i]);
    else
        buf_printf(out,
                   "POST /later HTTP/1.1\r\nHost: x\r\n" STORM_ID_HEADER ": %lu\r\n"
                   "Content-Length: 8\r\n\r\n12345678",
                   p->ids[i]);
}

static void peer_write(Peer *p, const char *data, size_t len)
{
    ssize_t n = send(p->fd, data, len, MSG_NOSIGNAL);

    check(n == (ssize_t)len, "the server ended a connection: %s", strerror(errno));
}

/* Mostly one request; now and then several in one write, the last bytes of which come later. */
static void peer_burst(Peer *p)
{
    unsigned n = pick(8) == 0 ? 1 + pick(BURST_MAX) : 1;
    _cleanup_buf_ Buf out = BUF_INIT(1 << 16);

    p->sent = p->answered = 0;
    for (unsigned i = 0; i < n; i++)
        add_request(&out, p);
    size_t held = n > 1 && pick(2) ? 1 + pick(20) : 0;
    peer_write(p, out.data, out.len - held);
    if (held) {
        buf_append(&p->rest, out.data + out.len - held, held);
        p->rest_at_ms = crowd.now_ms + pick(4);
    }
    if (pick(150) == 0)
        p->leave_at_ms = crowd.now_ms + 1 + pick(3);
    p->sent_us = now_us();
    crowd.sent += n;
    crowd.bursts++;
}

/* Length of the answer at the front, 0 where it is not whole; its content starts at *ret_body. */
static size_t answer_len(const Peer *p, bool stream, size_t *ret_body)
{
    static const char last[] = "\r\n0\r\n\r\n";
    const char *head = memmem(p->in.data, p->in.len, "\r\n\r\n", 4);

    if (!head)
        return 0;
    *ret_body = (size_t)(head - p->in.data) + 4;
    if (stream) {
        const char *end = memmem(head, p->in.len - (*ret_body - 4), last, sizeof last - 1);
        return end ? (size_t)(end - p->in.data) + sizeof last - 1 : 0;
    }
    const char *length = memmem(p->in.data, *ret_body, "Content-Length: ", 16);
    check(length, "an answer without length: %s", p->in.data);
    size_t whole = *ret_body + strtoul(length + 16, NULL, 10);
    return whole <= p->in.len ? whole : 0;
}

static void check_answer(const Peer *p, size_t body, size_t len)
{
    uint64_t id = p->ids[p->answered];
    const char *at = p->in.data + body;

    check(strncmp(p->in.data, "HTTP/1.1 200 ", 13) == 0, "not 200: %.200s", p->in.data);
    if (!p->streams[p->answered]) {
        check(strtoul(at, NULL, 10) == id, "answer of another request: %s", p->in.data);
        return;
    }
    int events = 0;
    for (const char *chunk = at;
         (chunk = memmem(chunk, len - (size_t)(chunk - p->in.data), "\r\n", 2)) != NULL;) {
        chunk += 2;
        for (; *chunk >= '0' && *chunk <= '9' && strtoul(chunk, NULL, 10) == id; events++)
            chunk += strcspn(chunk, "\n") + 1;
    }
    check(events == STORM_EVENTS, "%d events: %s", events, p->in.data);
}

static void note_latency(const Peer *p)
{
    int64_t us = now_us() - p->sent_us;

    crowd.latency[latency_slot(us)]++;
    crowd.longest_us = us > crowd.longest_us ? us : crowd.longest_us;
}

static void peer_take_answers(Peer *p)
{
    size_t body = 0, len;

    while (p->answered < p->sent && (len = answer_len(p, p->streams[p->answered], &body)) > 0) {
        check_answer(p, body, len);
        note_latency(p);
        buf_consume(&p->in, len);
        p->answered++;
        crowd.answered++;
    }
}

static void peer_read(Peer *p)
{
    char block[16384];
    ssize_t n = recv(p->fd, block, sizeof block, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (p->finished) {
        if (n <= 0)
            peer_reconnect(p);
        return;
    }
    check(n > 0, "the server ended a connection with %d of %d answered", p->answered, p->sent);
    check(buf_append(&p->in, block, (size_t)n) == 0, "an answer without end");
    peer_take_answers(p);
}

static bool peer_is_busy(const Peer *p)
{
    return p->answered < p->sent || p->rest.len || p->finished;
}

static void peer_tick(Peer *p)
{
    if (p->rest.len && !p->finished && crowd.now_ms >= p->rest_at_ms) {
        peer_write(p, p->rest.data, p->rest.len);
        buf_clear(&p->rest);
    }
    if (p->leave_at_ms && crowd.now_ms >= p->leave_at_ms) {
        peer_leave(p);
    } else if (!peer_is_busy(p)) {
        check(p->in.len == 0, "bytes behind the last answer: %s", p->in.data);
        if (!crowd.stopping)
            peer_burst(p);
    } else {
        check(now_us() - p->sent_us < STORM_LOST_MS * 1000L,
              "LOST: %d of %d answered, the next is %lu%s", p->answered, p->sent,
              p->ids[p->answered], p->finished ? ", no end after its FIN" : "");
    }
}

static bool crowd_is_idle(void)
{
    for (int i = 0; i < crowd.n; i++)
        if (peer_is_busy(&crowd.peers[i]))
            return false;
    return true;
}

static void crowd_turn(void)
{
    struct epoll_event events[256];
    int n = epoll_wait(crowd.epoll_fd, events, ARRAY_SIZE(events), 1);

    crowd.now_ms = clock_monotonic_ms(&clock_system);
    for (int i = 0; i < n; i++)
        peer_read(events[i].data.ptr);
    for (int i = 0; i < crowd.n; i++)
        peer_tick(&crowd.peers[i]);
}

void storm_peers_run(uint16_t port, int connections, int64_t seconds)
{
    crowd.port = port;
    crowd.n = connections;
    crowd.seed = 2;
    crowd.next_id = 1000000;
    crowd.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < connections; i++)
        peer_connect(&crowd.peers[i]);
    int64_t until = clock_monotonic_ms(&clock_system) + seconds * 1000;
    while (crowd.now_ms < until)
        crowd_turn();
    crowd.stopping = true;
    while (!crowd_is_idle())
        crowd_turn();
    for (int i = 0; i < connections; i++)
        peer_close(&crowd.peers[i]);
    (void)close(crowd.epoll_fd);
}

uint64_t storm_peers_sent(void)
{
    return crowd.sent;
}

uint64_t storm_peers_left(void)
{
    return crowd.left;
}

void storm_peers_print(double seconds)
{
    printf("%lu requests in %lu bursts, %.0f/s, answered %lu, lost 0, given up by peers that left "
           "%lu (%lu peers)\n",
           crowd.sent, crowd.bursts, (double)crowd.sent / seconds, crowd.answered, crowd.given_up,
           crowd.left);
    printf("latency p50 %.2f, p99 %.2f, longest %.0f ms\n", latency_ms(0.5), latency_ms(0.99),
           (double)crowd.longest_us / 1000);
}
