/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/cleanup.h"
#include "common/base/contract.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/death.h"
#include "tests/unit/huge_alloc.h"

#include <fcntl.h>

static void test_copies(_unused_ void **state)
{
    _cleanup_free_ char *a = xstrdup("abc"), *b = xstrndup("abcdef", 3);
    _cleanup_free_ char *c = xstrndup("ab", 10), *d = xasprintf("%d-%s", 5, "x");
    _cleanup_free_ char *e = xmemdup("a\0b", 3), *f = xmemdup(NULL, 0);

    assert_string_equal(a, "abc");
    assert_string_equal(b, "abc");
    assert_string_equal(c, "ab");
    assert_string_equal(d, "5-x");
    assert_memory_equal(e, "a\0b", 3);
    assert_non_null(f);
    assert_null(xstrdup_null(NULL));
}

static void test_zero_sizes_give_memory(_unused_ void **state)
{
    _cleanup_free_ char *a = xmalloc(0), *b = xcalloc(0, 8), *c = xcalloc(8, 0);
    _cleanup_free_ char *d = xreallocarray(NULL, 0, 8);

    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_non_null(d);
}

static void test_str_replace_with_a_part_of_itself(_unused_ void **state)
{
    _cleanup_free_ char *s = xstrdup("hello world");

    str_replace(&s, s + 6);
    assert_string_equal(s, "world");
    str_replace(&s, NULL);
    assert_null(s);
}

static void test_take(_unused_ void **state)
{
    _cleanup_free_ char *s = xstrdup("x"), *taken = NULL;
    _cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), moved = -1;

    taken = TAKE_PTR(s);
    assert_null(s);
    assert_string_equal(taken, "x");
    moved = TAKE_FD(fd);
    assert_int_equal(fd, -1);
    assert_true(moved >= 0);
}

static void ask_for_too_much(void)
{
    void *volatile p = xmalloc(SIZE_MAX / 2);

    free(p);
}

static void ask_for_an_overflow(void)
{
    void *volatile p = xreallocarray(NULL, SIZE_MAX / 4, 8);

    free(p);
}

static void ask_for_an_overflow_of_zeros(void)
{
    void *volatile p = xcalloc(SIZE_MAX / 4, 8);

    free(p);
}

static void test_no_memory_ends_the_process_with_a_line(_unused_ void **state)
{
    static void (*const cases[])(void) = {ask_for_too_much, ask_for_an_overflow,
                                          ask_for_an_overflow_of_zeros};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[4096];
        int status = run_in_child(cases[i], text, sizeof(text));

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
        assert_non_null(strstr(text, "fatal: out of memory\n"));
    }
}

static void violate(void)
{
    CONTRACT(1 + 1 == 3);
}

static void test_contract_aborts_with_the_expression(_unused_ void **state)
{
    char text[4096];
    int status;

    CONTRACT(1 + 1 == 2);
    status = run_in_child(violate, text, sizeof(text));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "test_alloc.c"));
    assert_non_null(strstr(text, "contract violated: 1 + 1 == 3\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_zero_sizes_give_memory),
        cmocka_unit_test(test_str_replace_with_a_part_of_itself),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_no_memory_ends_the_process_with_a_line),
        cmocka_unit_test(test_contract_aborts_with_the_expression),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
