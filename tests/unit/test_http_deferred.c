/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/http_rig.h"

#include <pthread.h>

#define HOLD "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"
#define HELLO "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"

typedef enum Leave { LEAVE_CLOSE, LEAVE_RESET, LEAVE_FIN, LEAVE_MAX } Leave;

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

static void leave(Peer *p, Leave how)
{
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};

    if (how == LEAVE_FIN) {
        assert_int_equal(shutdown(p->fd, SHUT_WR), 0);
        return;
    }
    if (how == LEAVE_RESET)
        assert_int_equal(setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    peer_close(p);
}

static void reply(HttpServerRequest *r, const char *text)
{
    http_reply(r, 200, "text/plain", text, strlen(text), NULL, 0);
}

static void test_reply_later(void **state)
{
    (void)state;
    Peer p = peer_open();
    for (int i = 0; i < 3; i++) {
        rig.n_held = 0;
        peer_send(&p,
                  "POST /hold?a=1 HTTP/1.1\r\nHost: x\r\nX-A: b\r\nContent-Length: 3\r\n\r\nabc");
        rig_wait(rig.n_held == 1);
        size_t len;
        const char *body = http_request_body(rig.held[0], &len);
        assert_int_equal(len, 3);
        assert_string_equal(body, "abc");
        assert_string_equal(http_request_header(rig.held[0], "x-a"), "b");
        assert_string_equal(http_request_method(rig.held[0]), "POST");
        assert_string_equal(http_request_path(rig.held[0]), "/hold");
        assert_null(http_request_header(rig.held[0], "x-b"));
        assert_false(http_request_is_gone(rig.held[0]));
        assert_int_equal(http_server_pending(rig.server), 1);
        reply(rig.held[0], "later");
        peer_expect(&p, 200, "later");
    }
    rig_wait(atomic_load(&rig.n_completed) == 3);
    assert_int_equal(atomic_load(&rig.last_status), 200);
    assert_int_equal(rig.n_gone, 0);
    peer_close(&p);
}

/* A peer that leaves while its request is held is noticed once, whatever way it takes. */
static void test_peer_leaves(void **state)
{
    (void)state;
    for (Leave how = 0; how < LEAVE_MAX; how++) {
        rig.n_held = rig.n_gone = 0;
        int completed = atomic_load(&rig.n_completed);
        Peer p = peer_open();
        peer_send(&p, HOLD);
        rig_wait(rig.n_held == 1);
        leave(&p, how);
        rig_wait(rig.n_gone == 1);
        assert_true(http_request_is_gone(rig.held[0]));
        for (int i = 0; i < 5; i++)
            loop_turn(rig.loop, 1);
        assert_int_equal(rig.n_gone, 1);
        assert_int_equal(atomic_load(&rig.n_completed), completed); /* still ours */
        reply(rig.held[0], "into the void");
        rig_wait(atomic_load(&rig.n_completed) == completed + 1);
        assert_int_equal(atomic_load(&rig.last_status), HTTP_STATUS_PEER_GONE);
        if (how == LEAVE_FIN) {
            assert_int_equal(peer_status(&p), 0);
            peer_close(&p);
        }
    }
}

static void test_peer_left_before_the_watch(void **state)
{
    (void)state;
    rig.watch = false;
    for (Leave how = 0; how < LEAVE_MAX; how++) {
        rig.n_held = rig.n_gone = 0;
        Peer p = peer_open();
        peer_send(&p, HOLD);
        rig_wait(rig.n_held == 1);
        leave(&p, how);
        for (int i = 0; i < 5; i++)
            loop_turn(rig.loop, 1);
        assert_int_equal(rig.n_gone, 0);
        http_request_on_gone(rig.held[0], rig_on_gone, NULL);
        rig_wait(rig.n_gone == 1);
        reply(rig.held[0], "void");
        peer_close(&p);
    }
    rig_wait(atomic_load(&rig.n_completed) == LEAVE_MAX);
}

/* Pipelined requests behind a held one are no loss, and wait their turn. */
static void test_pipeline(void **state)
{
    (void)state;
    Peer p = peer_open();
    peer_send(&p, HOLD HELLO HOLD HOLD HELLO HOLD HELLO);
    peer_send(&p, "GET /hello HTTP/1.1\r\nHo");
    for (int i = 0; i < 4; i++) {
        char text[16];
        rig_wait(rig.n_held == i + 1);
        (void)snprintf(text, sizeof text, "held %d", i);
        reply(rig.held[i], text);
        peer_expect(&p, 200, text);
        if (i != 1)
            peer_expect(&p, 200, "hello");
    }
    peer_send(&p, "st: x\r\n\r\n");
    peer_expect(&p, 200, "hello");
    assert_int_equal(rig.n_gone, 0);
    peer_close(&p);
}

/* An owner that is not the loop: it may answer as long as it did not ask for the watch. */
static void *reply_elsewhere(void *userdata)
{
    reply(userdata, "elsewhere");
    return NULL;
}

static void test_reply_from_another_thread(void **state)
{
    (void)state;
    rig.watch = false;
    Peer p = peer_open();
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        rig.n_held = 0;
        peer_send(&p, HOLD);
        rig_wait(rig.n_held == 1);
        assert_int_equal(pthread_create(&thread, NULL, reply_elsewhere, rig.held[0]), 0);
        peer_expect(&p, 200, "elsewhere");
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    peer_close(&p);
}

#define CROWD 200

static void on_gone_answer_all(void *userdata)
{
    (void)userdata;
    rig.n_gone++;
    for (int i = 0; i < rig.n_held; i++)
        reply(rig.held[i], "all");
    rig.n_held = 0;
}

/* The first notice answers every other request, many of which have their own notice waiting. */
static void test_notices_of_one_batch(void **state)
{
    (void)state;
    Peer p[CROWD];
    rig.watch = false;
    for (int i = 0; i < CROWD; i++) {
        p[i] = peer_open();
        peer_send(&p[i], HOLD);
    }
    rig_wait(rig.n_held == CROWD);
    for (int i = 0; i < CROWD; i++)
        http_request_on_gone(rig.held[i], on_gone_answer_all, NULL);
    for (int i = 0; i < CROWD; i++)
        leave(&p[i], i % 2 ? LEAVE_CLOSE : LEAVE_RESET);
    rig_wait(atomic_load(&rig.n_completed) == CROWD);
    assert_int_equal(rig.n_gone, 1);
}

static void test_crowd_leaves(void **state)
{
    (void)state;
    Peer p[CROWD];
    for (int i = 0; i < CROWD; i++) {
        p[i] = peer_open();
        peer_send(&p[i], HOLD);
    }
    rig_wait(rig.n_held == CROWD);
    for (int i = 0; i < CROWD; i++)
        leave(&p[i], (Leave)(i % LEAVE_MAX));
    rig_wait(rig.n_gone == CROWD);
    for (int i = 0; i < CROWD; i++)
        reply(rig.held[i], "void");
    rig_wait(atomic_load(&rig.n_peer_gone) == CROWD);
    for (int i = 0; i < CROWD; i++)
        peer_close(&p[i]);
}

/* A reply and a peer's leaving at the same moment: one completion, whoever wins. */
static void test_reply_races_with_leaving(void **state)
{
    (void)state;
    const int rounds = 300;
    for (int i = 0; i < rounds; i++) {
        rig.n_held = 0;
        Peer p = peer_open();
        peer_send(&p, HOLD);
        rig_wait(rig.n_held == 1);
        if (i % 2)
            leave(&p, (Leave)(i % LEAVE_MAX));
        reply(rig.held[0], "perhaps");
        if (i % 2 == 0)
            leave(&p, (Leave)(i % LEAVE_MAX));
        peer_close(&p);
    }
    rig_wait(atomic_load(&rig.n_completed) == rounds);
    assert_int_equal(http_server_pending(rig.server), 0);
}

/* The end of the server with requests that nobody answered: no abort, and nothing is leaked once
 * their owner gives them back. */
static void test_free_with_held_requests(void **state)
{
    (void)state;
    rig_start((HttpServerOptions){.threads = 2});
    Peer p[8];
    for (int i = 0; i < 8; i++) {
        p[i] = peer_open();
        peer_send(&p[i], "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    }
    rig_wait(rig.n_held == 8);
    rig.server = http_server_free(rig.server);
    assert_int_equal(atomic_load(&rig.n_completed), 8);
    for (int i = 0; i < 8; i++) {
        size_t len;
        assert_string_equal(http_request_body(rig.held[i], &len), "abc");
        if (i % 2)
            reply(rig.held[i], "too late");
        else {
            http_stream_start(rig.held[i], NULL, 0);
            assert_int_equal(http_stream_send(rig.held[i], "x", 1), -EPIPE);
            http_stream_end(rig.held[i]);
        }
        assert_int_equal(peer_status(&p[i]), 0);
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
        TEST(test_reply_later),
        TEST(test_peer_leaves),
        TEST(test_peer_left_before_the_watch),
        TEST(test_pipeline),
        TEST(test_reply_from_another_thread),
        TEST(test_notices_of_one_batch),
        TEST(test_crowd_leaves),
        TEST(test_reply_races_with_leaving),
        cmocka_unit_test(test_free_with_held_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
