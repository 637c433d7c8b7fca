/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspend storm: most requests are suspended by libmicrohttpd's threads and resumed by the loop
 * after 0–2 ms, among requests that are answered at once, event streams that pause, pipelined
 * bursts split in the middle of a line, and peers that leave in every way while they wait. Versions
 * of the library before 1.0.3 are known to forget a ready connection when its neighbour is being
 * suspended, so nothing may be lost: every answer comes, is the right one and in its order; every
 * deferred request has exactly one completion; no descriptor and no request stays behind.
 *
 * usage: http_storm [--poll] [--seconds N] [--connections N]
 *
 * Without --seconds it runs for a minute, for ten where SANDBOX_TESTS_MODE is "long". Prints its
 * figures; exit status 1 where something was lost.
 */
#include "tests/wire/http_storm.h"
#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/str.h"
#include "common/net/http_server.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The server's side: all on the loop's thread, except handlers and on_complete. */

typedef struct Call {
    HttpServerRequest *request;
    LoopTimer timer;
    bool stream;
    int events_left;
} Call;

static struct {
    Loop *loop;
    HttpServer *server;
    unsigned seed;
    uint64_t taken, ended, gone, streams; /* loop thread; read after it ended */
    atomic_ullong handled, completed, peer_gone;
} front;

static void call_free(Call *c)
{
    loop_timer_stop(front.loop, &c->timer);
    free(c);
    front.ended++;
}

static void call_answer(Call *c)
{
    const char *id = http_request_header(c->request, STORM_ID_HEADER);

    if (c->stream)
        http_stream_end(c->request);
    else
        http_reply(c->request, 200, "text/plain", id, strlen(id), NULL, 0);
    call_free(c);
}

static int64_t some_delay(void)
{
    return rand_r(&front.seed) % 3;
}

static void call_event(Call *c)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%s\n", http_request_header(c->request, STORM_ID_HEADER));
    int r = http_stream_send(c->request, text, (size_t)len);

    check(r == 0 || r == -EPIPE, "an event was refused with %d", r);
}

static void call_due(void *userdata)
{
    Call *c = userdata;

    if (c->stream && c->events_left-- > 0) {
        call_event(c);
        loop_timer_set(front.loop, &c->timer, some_delay());
        return;
    }
    call_answer(c);
}

/* Every second call whose peer left is answered at once, the others when their time comes. */
static void call_gone(void *userdata)
{
    Call *c = userdata;

    check(http_request_is_gone(c->request), "a notice for one that is not gone");
    if (front.gone++ % 2)
        call_answer(c);
}

static void call_arrived(void *userdata)
{
    Call *c = xnew(Call);

    front.taken++;
    c->request = userdata;
    c->timer.fn = call_due;
    c->timer.userdata = c;
    c->stream = str_eq(http_request_path(c->request), "/stream");
    http_request_on_gone(c->request, call_gone, c);
    if (c->stream) {
        front.streams++;
        c->events_left = STORM_EVENTS;
        http_stream_start(c->request, NULL, 0);
    }
    loop_timer_set(front.loop, &c->timer, some_delay());
}

static void handle_later(HttpServerRequest *r, void *userdata)
{
    (void)userdata;
    atomic_fetch_add(&front.handled, 1);
    http_request_defer(r);
    check(loop_post(front.loop, call_arrived, r) == 0, "the loop takes nothing more");
}

static void handle_now(HttpServerRequest *r, void *userdata)
{
    const char *id = http_request_header(r, STORM_ID_HEADER);

    (void)userdata;
    atomic_fetch_add(&front.handled, 1);
    http_reply(r, 200, "text/plain", id, strlen(id), NULL, 0);
}

static void on_complete(const char *method, const char *path, int status, int64_t duration_ms,
                        void *userdata)
{
    (void)method;
    (void)path;
    (void)duration_ms;
    (void)userdata;
    atomic_fetch_add(&front.completed, 1);
    if (status == HTTP_STATUS_PEER_GONE)
        atomic_fetch_add(&front.peer_gone, 1);
}

static const HttpRoute routes[] = {
    {"GET", "/now", handle_now},
    {"POST", "/later", handle_later},
    {"GET", "/stream", handle_later},
};

static void front_start(bool use_poll, unsigned connections)
{
    Error *error = NULL;
    const HttpServerOptions options = {
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .threads = 2,
        /* Ones that left are freed a little later. */
        .max_connections = 8 * connections + 64,
        .use_poll = use_poll,
        .on_complete = on_complete,
    };
    HttpServerOptions with_loop = options;

    check(loop_new(&clock_system, &front.loop, &error) == 0, "%s", error_message(error));
    with_loop.loop = front.loop;
    check(http_server_new(&with_loop, &front.server, &error) == 0, "%s", error_message(error));
    front.seed = 1;
}

static void *front_run(void *userdata)
{
    (void)userdata;
    (void)loop_run(front.loop);
    return NULL;
}

static void front_exit(void *userdata)
{
    (void)userdata;
    loop_exit(front.loop, 0);
}

static size_t count_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");

    check(dir, "/proc/self/fd: %s", strerror(errno));
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static unsigned long rss_anon_kib(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof line, f))
        if (str_starts_with(line, "RssAnon:"))
            kib = strtoul(line + 8, NULL, 10);
    if (f)
        (void)fclose(f);
    return kib;
}

static double cpu_seconds(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void print_figures(const char *mode, int connections, double seconds, double cpu)
{
    printf("%s, %d connections, %.0f s\n", mode, connections, seconds);
    storm_peers_print(seconds);
    printf("suspended %lu, streams %lu of them, notices of peers that left %lu; handled %llu, "
           "completed %llu, of these without a peer %llu\n",
           front.taken, front.streams, front.gone, atomic_load(&front.handled),
           atomic_load(&front.completed), atomic_load(&front.peer_gone));
    printf("CPU %.1f µs a request, peers included; RssAnon %lu KiB\n",
           cpu * 1e6 / (double)storm_peers_sent(), rss_anon_kib());
}

static void storm(bool use_poll, int connections, int64_t seconds)
{
    pthread_t thread;
    size_t fds = count_fds();

    front_start(use_poll, (unsigned)connections);
    check(pthread_create(&thread, NULL, front_run, NULL) == 0, "no thread");
    storm_peers_run(http_server_port(front.server), connections, seconds);
    double cpu = cpu_seconds();
    int64_t until = clock_monotonic_ms(&clock_system) + STORM_LOST_MS;
    while (http_server_pending(front.server) > 0)
        check(clock_monotonic_ms(&clock_system) < until, "%zu requests never ended",
              http_server_pending(front.server));
    check(loop_post(front.loop, front_exit, NULL) == 0, "the loop takes nothing more");
    check(pthread_join(thread, NULL) == 0, "the loop's thread is lost");
    front.server = http_server_free(front.server);
    front.loop = loop_free(front.loop);
    print_figures(use_poll ? "poll" : "epoll", connections, (double)seconds, cpu);
    check(front.taken == front.ended, "%lu of %lu calls ended", front.ended, front.taken);
    check(atomic_load(&front.completed) >= atomic_load(&front.handled), "a completion is missing");
    check(front.taken > 0 && storm_peers_left() > 0 && front.gone > 0, "it was no storm");
    check(count_fds() == fds, "%zu descriptors, %zu before", count_fds(), fds);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"poll", no_argument, NULL, 'p'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"connections", required_argument, NULL, 'c'},
                                            {NULL, 0, NULL, 0}};
    int64_t seconds = str_eq(getenv("SANDBOX_TESTS_MODE"), "long") ? 600 : 60;
    int64_t connections = 64;
    bool use_poll = false;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int r = c == 'p'   ? 0
                : c == 's' ? str_to_i64(optarg, &seconds)
                : c == 'c' ? str_to_i64(optarg, &connections)
                           : -1;
        check(r == 0, "usage: %s [--poll] [--seconds N] [--connections N]", argv[0]);
        use_poll |= c == 'p';
    }
    check(connections > 0 && connections <= STORM_CONNECTIONS_MAX && seconds > 0, "out of range");
    storm(use_poll, (int)connections, seconds);
    return 0;
}
