/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/cleanup.h"
#include "common/base/heap.h"
#include "tests/unit/cmocka_all.h"

static void test_pops_in_order_of_deadlines(_unused_ void **state)
{
    enum { TIMERS = 300 };
    HeapTimer timers[TIMERS] = {0};
    _cleanup_(heap_done) Heap h = {0};
    int64_t last = INT64_MIN;
    uint32_t random = 1;

    for (size_t i = 0; i < TIMERS; i++) {
        random = random * 1664525 + 1013904223;
        heap_set(&h, &timers[i], (int64_t)(random >> 16) - 30000);
    }
    for (size_t i = 0; i < TIMERS; i++) {
        HeapTimer *t = heap_pop_due(&h, INT64_MAX);

        assert_non_null(t);
        assert_false(heap_has(t));
        assert_true(t->due_ms >= last);
        last = t->due_ms;
    }
    assert_null(heap_pop_due(&h, INT64_MAX));
    assert_null(heap_peek(&h));
}

static void test_not_due_stays(_unused_ void **state)
{
    HeapTimer t = {0};
    _cleanup_(heap_done) Heap h = {0};

    heap_set(&h, &t, 100);
    assert_null(heap_pop_due(&h, 99));
    assert_ptr_equal(heap_peek(&h), &t);
    assert_ptr_equal(heap_pop_due(&h, 100), &t);
}

static void test_set_moves_a_timer_both_ways(_unused_ void **state)
{
    HeapTimer a = {0}, b = {0}, c = {0};
    _cleanup_(heap_done) Heap h = {0};

    heap_set(&h, &a, 10);
    heap_set(&h, &b, 20);
    heap_set(&h, &c, 30);
    heap_set(&h, &c, 5);
    assert_ptr_equal(heap_peek(&h), &c);
    heap_set(&h, &c, 50);
    assert_ptr_equal(heap_peek(&h), &a);
    assert_int_equal(h.len, 3);
    assert_ptr_equal(heap_pop_due(&h, 100), &a);
    assert_ptr_equal(heap_pop_due(&h, 100), &b);
    assert_ptr_equal(heap_pop_due(&h, 100), &c);
}

/* Random sets, moves and removes; after each the earliest must be right. */
static void test_agrees_with_a_model(_unused_ void **state)
{
    enum { TIMERS = 64 };
    HeapTimer timers[TIMERS] = {0};
    _cleanup_(heap_done) Heap h = {0};
    uint32_t random = 99;

    for (int step = 0; step < 20000; step++) {
        const HeapTimer *first = NULL;
        HeapTimer *t;

        random = random * 1664525 + 1013904223;
        t = &timers[random >> 8 & (TIMERS - 1)];
        if (random >> 30 == 0)
            heap_remove(&h, t);
        else
            heap_set(&h, t, random >> 14 & 1023);
        for (size_t i = 0; i < TIMERS; i++)
            if (heap_has(&timers[i]) && (!first || timers[i].due_ms < first->due_ms))
                first = &timers[i];
        if (!first)
            assert_null(heap_peek(&h));
        else
            assert_true(heap_peek(&h)->due_ms == first->due_ms);
    }
}

static void test_remove_and_done_forget(_unused_ void **state)
{
    Heap h = {0};
    HeapTimer a = {0}, b = {0};

    heap_remove(&h, &a);
    heap_set(&h, &a, 1);
    heap_set(&h, &b, 2);
    heap_remove(&h, &a);
    heap_remove(&h, &a);
    assert_false(heap_has(&a));
    assert_ptr_equal(heap_peek(&h), &b);
    heap_done(&h);
    assert_false(heap_has(&b));
    heap_set(&h, &b, 3);
    assert_ptr_equal(heap_pop_due(&h, 3), &b);
    heap_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pops_in_order_of_deadlines),
        cmocka_unit_test(test_not_due_stays),
        cmocka_unit_test(test_set_moves_a_timer_both_ways),
        cmocka_unit_test(test_agrees_with_a_model),
        cmocka_unit_test(test_remove_and_done_forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
