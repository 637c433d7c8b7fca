/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/http_rig.h"

#define HOLD "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"
#define HELLO "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"

static int setup(void **state)
{
    (void)state;
    rig_start((HttpServerOptions){.threads = 2});
    return 0;
}

static int setup_poll(void **state)
{
    (void)state;
    rig_start((HttpServerOptions){.threads = 2, .use_poll = true});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_stop();
    return 0;
}

static HttpServerRequest *hold(Peer *p)
{
    int before = rig.n_held;

    peer_send(p, HOLD);
    rig_wait(rig.n_held == before + 1);
    return rig.held[before];
}

static HttpServerRequest *start(Peer *p)
{
    HttpServerRequest *r = hold(p);

    http_stream_start(r, &(HttpHeader){"X-Extra", "1"}, 1);
    return r;
}

static int send_text(HttpServerRequest *r, const char *text)
{
    return http_stream_send(r, text, strlen(text));
}

static void wait_for_bytes(Peer *p, const char *text)
{
    int64_t until = rig_now() + RIG_PATIENCE_MS;

    while (!p->in.len || !memmem(p->in.data, p->in.len, text, strlen(text))) {
        assert_false(p->eof);
        assert_true(rig_now() < until);
        peer_fill(p);
    }
}

/* Each event is there before the next is sent: nothing waits for more. */
static void test_events(void **state)
{
    (void)state;
    Peer p = peer_open();
    for (int round = 0; round < 2; round++) {
        HttpServerRequest *r = start(&p);
        wait_for_bytes(&p, "X-Extra: 1\r\n");
        wait_for_bytes(&p, "\r\n\r\n"); /* the head alone, before any event */
        assert_int_equal(send_text(r, ": keepalive\n\n"), 0);
        wait_for_bytes(&p, ": keepalive\n\n");
        assert_int_equal(send_text(r, "data: 1\n\n"), 0);
        wait_for_bytes(&p, "data: 1\n\n");
        assert_int_equal(send_text(r, "data: 2\n\n"), 0);
        http_stream_end(r);
        Answer a = peer_answer(&p);
        assert_int_equal(a.status, 200);
        assert_string_equal(a.body, ": keepalive\n\ndata: 1\n\ndata: 2\n\n");
        assert_string_equal(answer_header(&a, "content-type"), "text/event-stream");
        assert_string_equal(answer_header(&a, "cache-control"), "no-cache, no-transform");
        assert_string_equal(answer_header(&a, "x-accel-buffering"), "no");
        free(a.body);
        peer_send(&p, HELLO); /* the connection stays usable */
        peer_expect(&p, 200, "hello");
    }
    assert_int_equal(rig.n_gone, 0);
    rig_wait(atomic_load(&rig.n_completed) == 4);
    assert_int_equal(atomic_load(&rig.n_peer_gone), 0);
    peer_close(&p);
}

static void test_end_without_events(void **state)
{
    (void)state;
    Peer p = peer_open();
    http_stream_end(start(&p));
    peer_expect(&p, 200, "");
    peer_close(&p);
}

static void test_http_1_0_reads_to_the_end(void **state)
{
    (void)state;
    Peer p = peer_open();
    peer_send(&p, "GET /hold HTTP/1.0\r\n\r\n");
    rig_wait(rig.n_held == 1);
    http_stream_start(rig.held[0], NULL, 0);
    assert_int_equal(send_text(rig.held[0], "data: 1\n\n"), 0);
    http_stream_end(rig.held[0]);
    int64_t until = rig_now() + RIG_PATIENCE_MS;
    while (!p.eof && rig_now() < until)
        peer_fill(&p);
    assert_true(p.eof && str_ends_with(buf_str(&p.in), "\r\n\r\ndata: 1\n\n"));
    peer_close(&p);
}

static void test_large_events_arrive_whole(void **state)
{
    (void)state;
    const size_t len = 22UL << 20;
    char *text = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + i % 23);
    text[len] = '\0';
    Peer p = peer_open();
    HttpServerRequest *r = start(&p);
    assert_int_equal(http_stream_send(r, text, len), 0);
    assert_int_equal(http_stream_send(r, text, len), 0);
    http_stream_end(r);
    Answer a = peer_answer(&p);
    assert_int_equal(a.len, 2 * len);
    assert_memory_equal(a.body, text, len);
    assert_memory_equal(a.body + len, text, len);
    free(a.body);
    free(text);
    peer_close(&p);
}

/* The peer of a paused stream leaves: noticed once, by itself. */
static void test_peer_leaves_in_a_pause(void **state)
{
    (void)state;
    for (int fin = 0; fin < 2; fin++) {
        Peer p = peer_open();
        HttpServerRequest *r = start(&p);
        rig.n_gone = 0;
        assert_int_equal(send_text(r, "data: 1\n\n"), 0);
        wait_for_bytes(&p, "data: 1\n\n");
        if (fin)
            assert_int_equal(shutdown(p.fd, SHUT_WR), 0);
        else
            peer_close(&p);
        rig_wait(rig.n_gone == 1);
        assert_true(http_request_is_gone(r));
        assert_int_equal(send_text(r, "data: 2\n\n"), -EPIPE);
        rig_wait(atomic_load(&rig.n_peer_gone) == fin + 1);
        for (int i = 0; i < 5; i++)
            loop_turn(rig.loop, 1);
        assert_int_equal(rig.n_gone, 1);
        http_stream_end(r);
        peer_close(&p);
    }
    assert_int_equal(http_server_pending(rig.server), 0);
}

/* It leaves while bytes are on their way to it. */
static void test_peer_leaves_while_sending(void **state)
{
    (void)state;
    const size_t len = 24UL << 20;
    char *text = calloc(1, len);
    Peer p = peer_open();
    HttpServerRequest *r = start(&p);
    assert_int_equal(http_stream_send(r, text, len), 0);
    wait_for_bytes(&p, "\r\n\r\n");
    peer_close(&p);
    rig_wait(rig.n_gone == 1);
    assert_int_equal(http_stream_send(r, "x", 1), -EPIPE);
    http_stream_end(r);
    rig_wait(atomic_load(&rig.n_peer_gone) == 1);
    free(text);
}

/* It left before the stream began. */
static void test_peer_left_before_the_start(void **state)
{
    (void)state;
    Peer p = peer_open();
    HttpServerRequest *r = hold(&p);
    peer_close(&p);
    rig_wait(rig.n_gone == 1);
    http_stream_start(r, NULL, 0);
    assert_int_equal(send_text(r, "data: 1\n\n"), -EPIPE);
    http_stream_end(r);
    rig_wait(atomic_load(&rig.n_peer_gone) == 1);
    assert_int_equal(rig.n_gone, 1);
}

static void test_peer_that_does_not_read(void **state)
{
    (void)state;
    const size_t len = 8UL << 20;
    char *text = calloc(1, len);
    Peer p = peer_open();
    HttpServerRequest *r = start(&p);
    int q = 0, sends = 0;
    for (; q == 0 && sends < 20; sends++)
        q = http_stream_send(r, text, len);
    assert_int_equal(q, -ENOBUFS);
    assert_true(sends > 6 && sends < 20); /* 48 MiB, and what the sockets hold */
    assert_int_equal(http_stream_send(r, "x", 1), -EPIPE);
    rig_wait(rig.n_gone == 1);
    http_stream_end(r);
    rig_wait(atomic_load(&rig.n_peer_gone) == 1);
    peer_close(&p);
    free(text);
}

/* What it has not taken is counted meanwhile. */
static void test_peer_that_does_not_read_the_rest(void **state)
{
    (void)state;
    const size_t len = 32UL << 20;
    char *text = calloc(1, len);
    rig_stop();
    rig_start((HttpServerOptions){.receive_timeout_s = 1, .slowest_bytes_per_s = 1UL << 30});
    Peer other = peer_open(), p = peer_open();
    HttpServerRequest *asked = start(&other);
    assert_int_equal(http_request_answers_bytes(asked), 0);
    HttpServerRequest *r = start(&p);
    assert_int_equal(http_stream_send(r, text, len), 0);
    http_stream_end(r);
    assert_true(http_request_answers_bytes(asked) > len / 2);
    rig_wait(atomic_load(&rig.n_peer_gone) == 1);
    rig_wait(http_request_answers_bytes(asked) == 0);
    http_stream_end(asked);
    peer_close(&p);
    peer_close(&other);
    free(text);
}

#define STREAMS 100

static void test_many_streams(void **state)
{
    (void)state;
    Peer p[STREAMS];
    char text[64];
    for (int i = 0; i < STREAMS; i++) {
        p[i] = peer_open();
        (void)start(&p[i]);
    }
    for (int event = 0; event < 20; event++)
        for (int i = 0; i < STREAMS; i++) {
            (void)snprintf(text, sizeof text, "data: %d\n\n", event);
            assert_int_equal(send_text(rig.held[i], text), 0);
            if (event % 7 == 0)
                wait_for_bytes(&p[i], text);
        }
    for (int i = 0; i < STREAMS; i++) {
        http_stream_end(rig.held[i]);
        Answer a = peer_answer(&p[i]);
        assert_int_equal(a.len, 10 * 9 + 10 * 10);
        free(a.body);
        peer_close(&p[i]);
    }
    rig_wait(atomic_load(&rig.n_completed) == STREAMS);
    assert_int_equal(rig.n_gone, 0);
}

/* Ends, events and leaving in all orders, as fast as they go. */
static void test_races(void **state)
{
    (void)state;
    const int rounds = 300;
    for (int i = 0; i < rounds; i++) {
        rig.n_held = 0;
        Peer p = peer_open();
        HttpServerRequest *r = start(&p);
        if (i & 1)
            (void)send_text(r, "data: 1\n\n");
        if (i & 2)
            peer_close(&p);
        if (i & 4)
            loop_turn(rig.loop, 0);
        if (i & 8)
            (void)send_text(r, "data: 2\n\n");
        http_stream_end(r);
        peer_close(&p);
    }
    rig_wait(atomic_load(&rig.n_completed) == rounds);
    assert_int_equal(http_server_pending(rig.server), 0);
}

static void test_free_with_open_streams(void **state)
{
    (void)state;
    rig_start((HttpServerOptions){.threads = 2});
    Peer p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = peer_open();
        HttpServerRequest *r = start(&p[i]);
        assert_int_equal(send_text(r, "data: 1\n\n"), 0);
        if (i % 2)
            wait_for_bytes(&p[i], "data: 1\n\n");
    }
    rig.server = http_server_free(rig.server);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(send_text(rig.held[i], "data: 2\n\n"), -EPIPE);
        http_stream_end(rig.held[i]);
        assert_true(peer_ended(&p[i]));
        peer_close(&p[i]);
    }
    rig.loop = loop_free(rig.loop);
}

int main(void)
{
#define TEST(fn)                                                                                   \
    cmocka_unit_test_setup_teardown(fn, setup, teardown),                                          \
    {                                                                                              \
#fn " (poll)", fn, setup_poll, teardown, NULL                                              \
    }
    const struct CMUnitTest tests[] = {
        TEST(test_events),
        TEST(test_end_without_events),
        TEST(test_http_1_0_reads_to_the_end),
        TEST(test_large_events_arrive_whole),
        TEST(test_peer_leaves_in_a_pause),
        TEST(test_peer_leaves_while_sending),
        TEST(test_peer_left_before_the_start),
        TEST(test_peer_that_does_not_read),
        TEST(test_peer_that_does_not_read_the_rest),
        TEST(test_many_streams),
        TEST(test_races),
        cmocka_unit_test(test_free_with_open_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
