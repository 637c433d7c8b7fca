/* SPDX-License-Identifier: Apache-2.0 */
#include "common/obs/server.h"

#include "tests/unit/cmocka_all.h"

#include "common/base/clock.h"
#include "common/base/str.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STALL_MS 60000

static const MetricSpec specs[] = {
    {.name = "things_total", .type = METRIC_COUNTER, .help = "Things."},
};

typedef struct Fixture {
    Metrics *metrics;
    ObsServer *server;
    Buf page;
} Fixture;

static int setup_stall(void **state, int64_t stall_ms)
{
    Fixture *f = xnew(Fixture);

    f->metrics = metrics_new(specs, ARRAY_SIZE(specs));
    f->page = BUF_INIT(1 << 20);
    *state = f;
    return obs_server_new("127.0.0.1:0", f->metrics, stall_ms, &f->server, NULL);
}

static int setup(void **state)
{
    return setup_stall(state, STALL_MS);
}

static int setup_short(void **state)
{
    return setup_stall(state, 50);
}

static int teardown(void **state)
{
    Fixture *f = *state;

    f->server = obs_server_free(f->server);
    f->metrics = metrics_free(f->metrics);
    buf_done(&f->page);
    free(f);
    return 0;
}

static int connect_to(const Fixture *f)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(obs_server_port(f->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* The status; the page has head and body. */
static int get(Fixture *f, const char *path)
{
    char request[128], block[4096];
    _cleanup_close_ int fd = connect_to(f);
    int status = 0;

    int len = snprintf(request, sizeof request,
                       "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    buf_clear(&f->page);
    for (ssize_t n; (n = recv(fd, block, sizeof block, 0)) > 0;)
        buf_append(&f->page, block, (size_t)n);
    assert_int_equal(sscanf(buf_str(&f->page), "HTTP/1.1 %d", &status), 1);
    return status;
}

static bool page_has(const Fixture *f, const char *text)
{
    return strstr(buf_str(&f->page), text) != NULL;
}

static void test_readyz(void **state)
{
    Fixture *f = *state;

    assert_int_equal(get(f, "/readyz"), 503);
    assert_true(page_has(f, "\r\n\r\nstarting\n"));
    obs_server_set_ready(f->server, NULL);
    assert_int_equal(get(f, "/readyz"), 200);
    assert_true(page_has(f, "\r\n\r\nok\n"));
    obs_server_set_ready(f->server, "draining");
    assert_int_equal(get(f, "/readyz"), 503);
    assert_true(page_has(f, "\r\n\r\ndraining\n"));
    char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    obs_server_set_ready(f->server, longest);
    assert_int_equal(get(f, "/readyz"), 503);
    assert_true(page_has(f, "xxx\n"));
}

static void test_healthz(void **state)
{
    Fixture *f = *state;

    assert_int_equal(get(f, "/healthz"), 200);
    assert_true(page_has(f, "\r\n\r\nok\n"));
}

static void test_healthz_of_a_stalled_loop(void **state)
{
    Fixture *f = *state;
    int64_t until = clock_monotonic_ms(&clock_system) + 20000;

    while (get(f, "/healthz") == 200)
        assert_true(clock_monotonic_ms(&clock_system) < until);
    assert_true(page_has(f, " 500 "));
    obs_server_alive(f->server);
    assert_int_equal(get(f, "/healthz"), 200);
}

static void test_metrics_page(void **state)
{
    Fixture *f = *state;

    metrics_add(f->metrics, 0, NULL, NULL, 3);
    assert_int_equal(get(f, "/metrics"), 200);
    assert_true(page_has(f, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert_true(page_has(f, "\nthings_total 3\n"));
    assert_true(page_has(f, "\nprocess_open_fds "));
    assert_int_equal(get(f, "/"), 404);
}

/* Its connections have deadlines too, kept by the main loop's sign of life. */
static void test_idle_peer_is_ended(void **state)
{
    Fixture *f = *state;
    _cleanup_close_ int fd = connect_to(f);
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    int64_t began = clock_monotonic_ms(&clock_system);
    char c;

    while (poll(&pfd, 1, 50) == 0) {
        assert_true(clock_monotonic_ms(&clock_system) - began < 20000);
        obs_server_alive(f->server);
    }
    assert_true(recv(fd, &c, 1, 0) <= 0);
    assert_true(clock_monotonic_ms(&clock_system) - began > 3000);
}

static void test_address_in_use(void **state)
{
    Fixture *f = *state;
    char address[40];
    ObsServer *second = NULL;
    _cleanup_error_ Error *error = NULL;

    (void)snprintf(address, sizeof address, "127.0.0.1:%u", obs_server_port(f->server));
    assert_true(obs_server_new(address, f->metrics, STALL_MS, &second, &error) < 0);
    assert_null(second);
    assert_non_null(error);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_readyz),
        TEST(test_healthz),
        cmocka_unit_test_setup_teardown(test_healthz_of_a_stalled_loop, setup_short, teardown),
        TEST(test_metrics_page),
        TEST(test_idle_peer_is_ended),
        TEST(test_address_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
