/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "common/base/str.h"
#include "common/kube/workqueue.h"

#include <stdio.h>
#include <stdlib.h>

static int setup(void **state)
{
    *state = workqueue_new();
    return 0;
}

static int teardown(void **state)
{
    workqueue_free(*state);
    return 0;
}

static void expect(WorkQueue *q, int64_t now, const char *key)
{
    const char *taken = workqueue_take(q, now);
    if (!str_eq(taken, key))
        fail_msg("took %s instead of %s", taken ? taken : "nothing", key ? key : "nothing");
}

static void test_a_key_waits_once_in_order(void **state)
{
    WorkQueue *q = *state;
    workqueue_add(q, "a");
    workqueue_add(q, "b");
    workqueue_add(q, "a");
    assert_int_equal(workqueue_size(q), 2);
    assert_int_equal(workqueue_next_ms(q, 0), 0);
    expect(q, 0, "a");
    expect(q, 0, "b");
    expect(q, 0, NULL);
    workqueue_done(q, "a");
    workqueue_done(q, "b");
    expect(q, 0, NULL);
    assert_int_equal(workqueue_size(q), 0);
    assert_true(workqueue_next_ms(q, 0) == INT64_MAX);
}

static void test_added_while_in_work_runs_again_afterwards(void **state)
{
    WorkQueue *q = *state;
    workqueue_add(q, "a");
    expect(q, 0, "a");
    workqueue_add(q, "a");
    workqueue_add(q, "a");
    expect(q, 0, NULL);
    workqueue_done(q, "a");
    expect(q, 0, "a");
    workqueue_done(q, "a");
    expect(q, 0, NULL);
    assert_int_equal(workqueue_size(q), 0);
}

static void test_due_at_an_instant(void **state)
{
    WorkQueue *q = *state;
    workqueue_add_at(q, "late", 2000);
    workqueue_add_at(q, "soon", 1000);
    workqueue_add_at(q, "soon", 5000); /* the earlier one stays */
    workqueue_add_at(q, "late", 1500); /* an earlier one moves it */
    assert_int_equal(workqueue_next_ms(q, 400), 600);
    expect(q, 999, NULL);
    expect(q, 1000, "soon");
    workqueue_done(q, "soon");
    assert_int_equal(workqueue_next_ms(q, 1000), 500);
    expect(q, 1500, "late");
    workqueue_done(q, "late");
    expect(q, INT64_MAX - 1, NULL);
}

static void test_running_clears_the_instant(void **state)
{
    WorkQueue *q = *state;
    workqueue_add_at(q, "a", 5000);
    workqueue_add(q, "a");
    expect(q, 0, "a");
    workqueue_done(q, "a");
    assert_true(workqueue_next_ms(q, 0) == INT64_MAX);
    assert_int_equal(workqueue_size(q), 0);
}

static void test_instant_set_while_in_work_stays(void **state)
{
    WorkQueue *q = *state;
    workqueue_add(q, "a");
    expect(q, 0, "a");
    workqueue_add_at(q, "a", 700);
    expect(q, 800, NULL); /* due, but in work */
    workqueue_done(q, "a");
    expect(q, 800, "a");
    workqueue_add_at(q, "a", 900);
    workqueue_done(q, "a");
    expect(q, 899, NULL);
    expect(q, 900, "a");
}

static int64_t fail_once(WorkQueue *q, double jitter)
{
    workqueue_add(q, "a");
    expect(q, 0, "a");
    workqueue_add_failed(q, "a", 0, jitter);
    workqueue_done(q, "a");
    return workqueue_next_ms(q, 0);
}

static void test_failures_back_off(void **state)
{
    WorkQueue *q = *state;
    static const int64_t full[] = {200,   400,   800,   1600,  3200, 6400,
                                   12800, 25600, 51200, 60000, 60000};
    for (size_t i = 0; i < ARRAY_SIZE(full); i++)
        assert_int_equal(fail_once(q, i % 2 ? 1.0 : 0.0), i % 2 ? full[i] : full[i] / 2);
    workqueue_forget_failures(q, "a");
    assert_int_equal(fail_once(q, 1.0), 200);
}

static void test_failures_are_per_key_and_outlive_a_run(void **state)
{
    WorkQueue *q = *state;
    (void)fail_once(q, 1.0);
    workqueue_add_failed(q, "b", 0, 1.0);
    expect(q, 200, "a");
    workqueue_add_failed(q, "a", 200, 1.0);
    workqueue_done(q, "a");
    expect(q, 200, "b");
    workqueue_done(q, "b");
    expect(q, 599, NULL);
    expect(q, 600, "a");
}

static void test_add_passes_a_back_off(void **state)
{
    WorkQueue *q = *state;
    (void)fail_once(q, 1.0);
    workqueue_add(q, "a");
    expect(q, 0, "a");
}

static void test_removed_keys(void **state)
{
    WorkQueue *q = *state;
    workqueue_add(q, "ready");
    workqueue_add_at(q, "timed", 10);
    workqueue_add(q, "work");
    workqueue_remove(q, "ready");
    workqueue_remove(q, "timed");
    workqueue_remove(q, "unknown");
    expect(q, 100, "work");
    workqueue_add(q, "work");
    workqueue_add_failed(q, "work", 0, 0.0);
    workqueue_remove(q, "work");
    workqueue_done(q, "work");
    expect(q, 100000, NULL);
    assert_int_equal(workqueue_size(q), 0);
}

/* What waits for a deadline is no backlog; what is in work is none either. */
static void test_backlog_and_delayed(void **state)
{
    WorkQueue *q = *state;
    workqueue_add(q, "a");
    workqueue_add(q, "b");
    workqueue_add_at(q, "late", 1000);
    workqueue_add_at(q, "later", 2000);
    assert_int_equal(workqueue_depth(q, 0), 2);
    assert_int_equal(workqueue_delayed(q, 0), 2);
    expect(q, 0, "a");
    workqueue_remove(q, "b");
    assert_int_equal(workqueue_depth(q, 0), 0);
    workqueue_add(q, "a");
    assert_int_equal(workqueue_depth(q, 0), 0);
    workqueue_done(q, "a");
    assert_int_equal(workqueue_depth(q, 0), 1);
    expect(q, 1000, "a");
    workqueue_add_failed(q, "a", 1000, 0.0);
    workqueue_done(q, "a");
    assert_int_equal(workqueue_depth(q, 1000), 1); /* late */
    assert_int_equal(workqueue_delayed(q, 1000), 2);
    expect(q, 1000, "late");
    assert_int_equal(workqueue_depth(q, 1000), 0);
}

static void test_key_that_comes_back_while_its_removal_is_in_work(void **state)
{
    WorkQueue *q = *state;
    workqueue_add(q, "a");
    expect(q, 0, "a");
    workqueue_remove(q, "a");
    workqueue_add(q, "a");
    workqueue_done(q, "a");
    expect(q, 0, "a");
}

static void test_done_without_take_is_harmless(void **state)
{
    WorkQueue *q = *state;
    workqueue_done(q, "a");
    workqueue_add(q, "a");
    workqueue_done(q, "a");
    expect(q, 0, "a");
    workqueue_forget_failures(q, "unknown");
}

/* Against a plain model: at every step the same keys may be taken. */
#define KEYS 8
typedef struct Model {
    bool ready, in_work, again, timed;
    int64_t due;
} Model;

static void model_due(Model *m, int64_t now)
{
    for (int i = 0; i < KEYS; i++) {
        if (!m[i].timed || m[i].due > now)
            continue;
        m[i].timed = false;
        if (m[i].in_work)
            m[i].again = true;
        else
            m[i].ready = true;
    }
}

static void model_step(WorkQueue *q, Model *m, int64_t now)
{
    int i = rand() % KEYS;
    char key[] = {(char)('a' + i), '\0'};
    switch (rand() % 5) {
    case 0:
        workqueue_add(q, key);
        *(m[i].in_work ? &m[i].again : &m[i].ready) = true;
        break;
    case 1: {
        int64_t due = now + rand() % 50;
        workqueue_add_at(q, key, due);
        if (!m[i].timed || due < m[i].due)
            m[i].due = due;
        m[i].timed = true;
        break;
    }
    case 2: {
        model_due(m, now);
        const char *taken = workqueue_take(q, now);
        bool any = false;
        for (int k = 0; k < KEYS; k++)
            any |= m[k].ready;
        assert_int_equal(any, taken != NULL);
        if (taken) {
            Model *t = &m[taken[0] - 'a'];
            assert_true(t->ready && !t->in_work);
            *t = (Model){.in_work = true};
        }
        break;
    }
    case 3:
        if (!m[i].in_work)
            break;
        workqueue_done(q, key);
        m[i].in_work = false;
        m[i].ready = m[i].again;
        m[i].again = false;
        break;
    default:
        workqueue_remove(q, key);
        m[i] = (Model){.in_work = m[i].in_work};
    }
}

static void test_against_a_model(void **state)
{
    WorkQueue *q = *state;
    Model m[KEYS] = {0};
    srand(7);
    for (int64_t now = 0; now < 200000; now += rand() % 3)
        model_step(q, m, now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_key_waits_once_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_added_while_in_work_runs_again_afterwards, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_due_at_an_instant, setup, teardown),
        cmocka_unit_test_setup_teardown(test_running_clears_the_instant, setup, teardown),
        cmocka_unit_test_setup_teardown(test_instant_set_while_in_work_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_back_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_are_per_key_and_outlive_a_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_add_passes_a_back_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removed_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_backlog_and_delayed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_key_that_comes_back_while_its_removal_is_in_work,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_done_without_take_is_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(test_against_a_model, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
