/* SPDX-License-Identifier: Apache-2.0 */
/* Timers, posts, descriptors and signals of the event loop. */
#include "tests/unit/cmocka_all.h"

#include "common/net/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A clock that the test moves. */
static int64_t virtual_ms;

static int64_t virtual_now(void *userdata)
{
    (void)userdata;
    return virtual_ms;
}

static const Clock virtual_clock = {.realtime_ms = virtual_now, .monotonic_ms = virtual_now};

static Loop *make(const Clock *clock)
{
    Loop *l = NULL;
    assert_int_equal(loop_new(clock, &l, NULL), 0);
    return l;
}

static char order[128];

typedef struct Named {
    LoopTimer timer;
    Loop *loop;
    char name;
    int64_t again_ms; /* re-armed with this delay; -1: not */
    int fired;
} Named;

static void note(void *userdata)
{
    Named *n = userdata;
    size_t len = strlen(order);
    if (len + 1 < sizeof(order))
        order[len] = n->name;
    n->fired++;
    if (n->again_ms >= 0)
        loop_timer_set(n->loop, &n->timer, n->again_ms);
}

static Named named(Loop *l, char name)
{
    return (Named){.timer = {.fn = note}, .loop = l, .name = name, .again_ms = -1};
}

static void arm(Named *n, int64_t delay_ms)
{
    n->timer.userdata = n;
    loop_timer_set(n->loop, &n->timer, delay_ms);
}

static int setup(void **state)
{
    (void)state;
    memset(order, 0, sizeof(order));
    virtual_ms = 1000;
    return 0;
}

static void test_timers_fire_in_order_and_once(void **state)
{
    (void)state;
    Loop *l = make(&virtual_clock);
    Named a = named(l, 'a'), b = named(l, 'b'), c = named(l, 'c'), d = named(l, 'd');
    arm(&a, 30);
    arm(&b, 10);
    arm(&c, 20);
    arm(&d, -5);
    loop_turn(l, 0);
    assert_string_equal(order, "d");
    virtual_ms += 19;
    loop_turn(l, 0);
    assert_string_equal(order, "db");
    virtual_ms += 100;
    loop_turn(l, 0);
    loop_turn(l, 0);
    assert_string_equal(order, "dbca");
    loop_free(l);
}

static void test_timer_is_moved_and_stopped(void **state)
{
    (void)state;
    Loop *l = make(&virtual_clock);
    Named a = named(l, 'a'), b = named(l, 'b');
    arm(&a, 10);
    arm(&b, 10);
    arm(&a, 50);
    loop_timer_stop(l, &b.timer);
    loop_timer_stop(l, &b.timer);
    virtual_ms += 49;
    loop_turn(l, 0);
    assert_string_equal(order, "");
    virtual_ms += 1;
    loop_turn(l, 0);
    assert_string_equal(order, "a");
    loop_free(l);
}

static void test_timer_armed_without_delay_waits_for_the_next_turn(void **state)
{
    (void)state;
    Loop *l = make(&virtual_clock);
    Named a = named(l, 'a');
    a.again_ms = 0;
    arm(&a, 0);
    for (int i = 1; i <= 5; i++) {
        loop_turn(l, 0);
        assert_int_equal(a.fired, i);
    }
    loop_timer_stop(l, &a.timer);
    loop_free(l);
}

static void test_far_timer_does_not_overflow(void **state)
{
    (void)state;
    Loop *l = make(&virtual_clock);
    Named a = named(l, 'a');
    arm(&a, INT64_MAX);
    loop_turn(l, 0);
    assert_int_equal(a.fired, 0);
    loop_free(l);
}

/* --- posts --- */

typedef struct Poster {
    Loop *loop;
    int first;
    int seen_last[2]; /* per thread: posts come in order */
    int n_seen;
    int expected;
} Poster;

static Poster poster;

static void posted(void *userdata)
{
    intptr_t value = (intptr_t)userdata;
    int thread = (int)(value / 1000000), number = (int)(value % 1000000);
    assert_int_equal(number, poster.seen_last[thread] + 1);
    poster.seen_last[thread] = number;
    if (++poster.n_seen == poster.expected)
        loop_exit(poster.loop, 42);
}

static void *post_many(void *userdata)
{
    intptr_t base = (intptr_t)userdata;
    for (int i = 1; i <= 5000; i++)
        while (loop_post(poster.loop, posted, (void *)(base + i)) == -ENOBUFS)
            ;
    return NULL;
}

static void test_posts_of_other_threads(void **state)
{
    (void)state;
    pthread_t threads[2];
    poster = (Poster){.loop = make(&clock_system), .expected = 10000};
    for (intptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, (void *)(i * 1000000)), 0);
    assert_int_equal(loop_run(poster.loop), 42);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    loop_free(poster.loop);
}

static void count(void *userdata)
{
    ++*(int *)userdata;
}

static void test_posts_have_a_ceiling(void **state)
{
    (void)state;
    Loop *l = make(&clock_system);
    int n = 0;
    for (int i = 0; i < LOOP_POSTS_MAX; i++)
        assert_int_equal(loop_post(l, count, &n), 0);
    assert_int_equal(loop_post(l, count, &n), -ENOBUFS);
    loop_turn(l, 0);
    assert_int_equal(n, LOOP_POSTS_MAX);
    assert_int_equal(loop_post(l, count, &n), 0);
    loop_free(l); /* what did not run is dropped */
    assert_int_equal(n, LOOP_POSTS_MAX);
}

static void post_again(void *userdata)
{
    Poster *p = userdata;
    p->n_seen++;
    assert_int_equal(loop_post(p->loop, post_again, p), 0);
}

static void test_post_inside_of_a_post_runs_in_the_next_turn(void **state)
{
    (void)state;
    Poster p = {.loop = make(&clock_system)};
    assert_int_equal(loop_post(p.loop, post_again, &p), 0);
    loop_turn(p.loop, 1000);
    assert_int_equal(p.n_seen, 1);
    loop_turn(p.loop, 1000);
    assert_int_equal(p.n_seen, 2);
    loop_free(p.loop);
}

static void *wake_later(void *userdata)
{
    loop_wake(userdata);
    return NULL;
}

static void test_wake_ends_a_wait(void **state)
{
    (void)state;
    Loop *l = make(&clock_system);
    pthread_t thread;
    int64_t before = clock_monotonic_ms(&clock_system);
    assert_int_equal(pthread_create(&thread, NULL, wake_later, l), 0);
    loop_turn(l, 20000);
    assert_true(clock_monotonic_ms(&clock_system) - before < 10000);
    pthread_join(thread, NULL);
    loop_free(l);
}

/* --- descriptors --- */

typedef struct Reader {
    Loop *loop;
    int fd, other;
    uint32_t events;
    int n;
} Reader;

static void readable(int fd, uint32_t events, void *userdata)
{
    Reader *r = userdata;
    assert_int_equal(fd, r->fd);
    r->events = events;
    r->n++;
    if (r->other >= 0)
        loop_fd_remove(r->loop, r->other);
}

static void test_descriptors(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    Reader r = {.loop = make(&clock_system), .fd = p[0], .other = -1};
    assert_int_equal(loop_fd_add(r.loop, p[0], POLLIN, readable, &r), 0);
    assert_int_equal(loop_fd_add(r.loop, p[0], POLLIN, readable, &r), -EEXIST);
    loop_turn(r.loop, 0);
    assert_int_equal(r.n, 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    loop_turn(r.loop, 1000);
    loop_turn(r.loop, 1000); /* level-triggered: still there */
    assert_int_equal(r.n, 2);
    assert_int_equal(r.events, POLLIN);
    char c;
    assert_int_equal(read(p[0], &c, 1), 1);
    (void)close(p[1]);
    loop_turn(r.loop, 1000); /* the end is seen without data */
    assert_int_equal(r.n, 3);
    assert_true(r.events & POLLHUP);
    loop_fd_remove(r.loop, p[0]);
    loop_fd_remove(r.loop, p[0]);
    loop_turn(r.loop, 0);
    assert_int_equal(r.n, 3);
    (void)close(p[0]);
    loop_free(r.loop);
}

static void test_descriptor_removed_by_another_in_the_same_turn(void **state)
{
    (void)state;
    int a[2], b[2];
    assert_int_equal(pipe(a), 0);
    assert_int_equal(pipe(b), 0);
    Loop *l = make(&clock_system);
    Reader ra = {.loop = l, .fd = a[0], .other = b[0]}, rb = {.loop = l, .fd = b[0], .other = a[0]};
    assert_int_equal(loop_fd_add(l, a[0], POLLIN, readable, &ra), 0);
    assert_int_equal(loop_fd_add(l, b[0], POLLIN, readable, &rb), 0);
    assert_int_equal(write(a[1], "x", 1), 1);
    assert_int_equal(write(b[1], "x", 1), 1);
    loop_turn(l, 1000);
    assert_int_equal(ra.n + rb.n, 1);
    for (int i = 0; i < 2; i++) {
        (void)close(a[i]);
        (void)close(b[i]);
    }
    loop_free(l);
}

static void never(int fd, uint32_t events, void *userdata)
{
    (void)fd;
    (void)events;
    (void)userdata;
    fail();
}

static void test_descriptors_have_a_ceiling(void **state)
{
    (void)state;
    Loop *l = make(&clock_system);
    int fds[65];
    for (int i = 0; i < 65; i++) {
        int p[2];
        assert_int_equal(pipe(p), 0);
        fds[i] = p[0];
        assert_int_equal(loop_fd_add(l, p[0], POLLIN, never, NULL), i < 64 ? 0 : -ENOBUFS);
        (void)close(p[1]);
    }
    for (int i = 0; i < 65; i++) {
        loop_fd_remove(l, fds[i]);
        (void)close(fds[i]);
    }
    loop_turn(l, 0);
    loop_free(l);
}

static void on_signal(int signo, void *userdata)
{
    *(int *)userdata = signo;
}

static void test_signals(void **state)
{
    (void)state;
    Loop *l = make(&clock_system);
    const int signals[] = {SIGUSR1, SIGUSR2};
    int got = 0;
    assert_int_equal(loop_signals(l, signals, 2, on_signal, &got, NULL), 0);
    assert_true(loop_signals(l, signals, 2, on_signal, &got, NULL) < 0);
    assert_int_equal(raise(SIGUSR2), 0);
    loop_turn(l, 1000);
    assert_int_equal(got, SIGUSR2);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_timers_fire_in_order_and_once, setup),
        cmocka_unit_test_setup(test_timer_is_moved_and_stopped, setup),
        cmocka_unit_test_setup(test_timer_armed_without_delay_waits_for_the_next_turn, setup),
        cmocka_unit_test_setup(test_far_timer_does_not_overflow, setup),
        cmocka_unit_test(test_posts_of_other_threads),
        cmocka_unit_test(test_posts_have_a_ceiling),
        cmocka_unit_test(test_post_inside_of_a_post_runs_in_the_next_turn),
        cmocka_unit_test(test_wake_ends_a_wait),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_descriptor_removed_by_another_in_the_same_turn),
        cmocka_unit_test(test_descriptors_have_a_ceiling),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
