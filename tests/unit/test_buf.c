/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/buf.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/huge_alloc.h"

#include <errno.h>
#include <string.h>

static void test_appends_of_all_kinds(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(100);

    assert_string_equal(buf_str(&b), "");
    assert_int_equal(buf_append(&b, "ab", 2), 0);
    assert_int_equal(buf_append_str(&b, "cd"), 0);
    assert_int_equal(buf_append_char(&b, 'e'), 0);
    assert_int_equal(buf_printf(&b, "%d-%s", 42, "x"), 0);
    assert_int_equal(buf_append(&b, NULL, 0), 0);
    assert_string_equal(buf_str(&b), "abcde42-x");
    assert_int_equal(b.len, 9);
    assert_int_equal(buf_check(&b, "text", NULL), 0);
}

static void test_ceiling_is_exact(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(5);
    _cleanup_error_ Error *e = NULL;

    assert_int_equal(buf_append_str(&b, "12345"), 0);
    assert_int_equal(buf_append_char(&b, '6'), -E2BIG);
    assert_string_equal(buf_str(&b), "12345");
    assert_true(b.failed);
    assert_int_equal(buf_check(&b, "answer", &e), -E2BIG);
    assert_int_equal(e->kind, ERROR_TOO_LARGE);
    assert_string_equal(e->message, "answer is larger than 5 bytes");
}

static void test_failure_is_sticky(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(4);

    assert_true(buf_append_str(&b, "12345") < 0);
    assert_true(buf_append_char(&b, 'x') < 0);
    assert_true(buf_printf(&b, "y") < 0);
    assert_true(buf_reserve(&b, 0) < 0);
    assert_int_equal(b.len, 0);
    buf_clear(&b);
    assert_false(b.failed);
    assert_int_equal(buf_append_str(&b, "ok"), 0);
    assert_string_equal(buf_str(&b), "ok");
}

static void test_printf_beyond_the_ceiling_appends_nothing(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(8);

    assert_int_equal(buf_append_str(&b, "1234"), 0);
    assert_int_equal(buf_printf(&b, "%s", "56789"), -E2BIG);
    assert_string_equal(buf_str(&b), "1234");
}

static void test_capacity_never_passes_the_ceiling(_unused_ void **state)
{
    for (size_t max = 0; max < 300; max++) {
        _cleanup_buf_ Buf b = BUF_INIT(max);

        while (!b.failed)
            (void)buf_append_char(&b, 'x');
        assert_int_equal(b.len, max);
        assert_true(b.cap <= max + 1);
    }
}

static void test_absurd_lengths_are_refused(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(SIZE_MAX);

    assert_int_equal(buf_append_char(&b, 'x'), 0);
    assert_true(buf_reserve(&b, SIZE_MAX) < 0);
    buf_clear(&b);
    assert_true(buf_reserve(&b, SIZE_MAX - 1) < 0);
    assert_true(b.failed);
    buf_clear(&b);
    assert_true(buf_append_char(&b, 'y') == 0);
}

static void test_zeroed_buffer_takes_nothing(_unused_ void **state)
{
    _cleanup_buf_ Buf b = {0};

    assert_int_equal(buf_append(&b, "", 0), 0);
    assert_int_equal(buf_append_char(&b, 'x'), -E2BIG);
}

static void test_reserve_then_append_does_not_move(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(10000);
    const char *before;

    assert_int_equal(buf_reserve(&b, 5000), 0);
    before = b.data;
    for (int i = 0; i < 5000; i++)
        assert_int_equal(buf_append_char(&b, 'x'), 0);
    assert_ptr_equal(b.data, before);
}

static void test_consume(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(100);

    buf_consume(&b, 5);
    (void)buf_append_str(&b, "hello world");
    buf_consume(&b, 0);
    buf_consume(&b, 6);
    assert_string_equal(buf_str(&b), "world");
    buf_consume(&b, 100);
    assert_string_equal(buf_str(&b), "");
    assert_int_equal(b.len, 0);
}

static void test_take_moves_the_memory(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(100);
    _cleanup_free_ char *text = NULL, *empty = NULL;
    size_t len = 99;

    empty = buf_take(&b, &len);
    assert_string_equal(empty, "");
    assert_int_equal(len, 0);
    (void)buf_append(&b, "a\0b", 3);
    text = buf_take(&b, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(text, "a\0b", 4);
    assert_null(b.data);
    assert_int_equal(b.max, 100);
    assert_int_equal(buf_append_str(&b, "again"), 0);
}

static void test_done_and_wipe_leave_a_usable_buffer(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(3);

    (void)buf_append_str(&b, "1234");
    buf_done(&b);
    assert_int_equal(buf_append_str(&b, "123"), 0);
    buf_wipe(&b);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_append_str(&b, "abc"), 0);
    assert_string_equal(buf_str(&b), "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_of_all_kinds),
        cmocka_unit_test(test_ceiling_is_exact),
        cmocka_unit_test(test_failure_is_sticky),
        cmocka_unit_test(test_printf_beyond_the_ceiling_appends_nothing),
        cmocka_unit_test(test_capacity_never_passes_the_ceiling),
        cmocka_unit_test(test_absurd_lengths_are_refused),
        cmocka_unit_test(test_zeroed_buffer_takes_nothing),
        cmocka_unit_test(test_reserve_then_append_does_not_move),
        cmocka_unit_test(test_consume),
        cmocka_unit_test(test_take_moves_the_memory),
        cmocka_unit_test(test_done_and_wipe_leave_a_usable_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
