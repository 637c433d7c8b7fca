/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/error.h"
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <string.h>

static void test_set_returns_the_errno_of_the_kind(_unused_ void **state)
{
    _cleanup_error_ Error *e = NULL;

    assert_int_equal(error_set(&e, ERROR_NOT_FOUND, "no %s", "pod"), -ENOENT);
    assert_non_null(e);
    assert_int_equal(e->kind, ERROR_NOT_FOUND);
    assert_string_equal(e->message, "no pod");
    assert_null(e->hint);
    assert_null(e->reason);
    assert_int_equal(e->http_status, 0);
}

static void test_null_error_drops_the_details(_unused_ void **state)
{
    assert_int_equal(error_set(NULL, ERROR_INVALID, "x"), -EINVAL);
    assert_int_equal(error_wrap(NULL, -5, "context"), -5);
    assert_int_equal(error_hint(NULL, -5, "hint"), -5);
}

static void test_set_may_quote_the_error_it_replaces(_unused_ void **state)
{
    _cleanup_error_ Error *e = NULL;

    (void)error_set(&e, ERROR_UNAVAILABLE, "first");
    (void)error_set(&e, ERROR_TIMEOUT, "second after %s", e->message);
    assert_string_equal(e->message, "second after first");
    assert_int_equal(e->kind, ERROR_TIMEOUT);
}

static void test_wrap_prefixes_and_keeps_the_kind(_unused_ void **state)
{
    _cleanup_error_ Error *e = NULL;
    int r = error_set(&e, ERROR_CONFLICT, "version 5");

    r = error_wrap(&e, r, "update %s", "a/b");
    r = error_wrap(&e, r, "bind");
    assert_int_equal(r, error_errno(ERROR_CONFLICT));
    assert_string_equal(error_message(e), "bind: update a/b: version 5");
    assert_int_equal(e->kind, ERROR_CONFLICT);
}

static void test_hint_replaces(_unused_ void **state)
{
    _cleanup_error_ Error *e = NULL;
    int r = error_set(&e, ERROR_EXHAUSTED, "full");

    r = error_hint(&e, r, "wait");
    r = error_hint(&e, r, "wait %d s", 5);
    assert_int_equal(r, -EDQUOT);
    assert_string_equal(e->hint, "wait 5 s");
}

static void test_control_bytes_become_question_marks(_unused_ void **state)
{
    _cleanup_error_ Error *e = NULL;

    (void)error_set(&e, ERROR_INVALID, "a\nb\x1b[31m\x7f%s", "\r\t");
    assert_string_equal(e->message, "a?b?[31m???");
}

static void test_messages_are_cut_between_characters(_unused_ void **state)
{
    _cleanup_error_ Error *e = NULL;
    char text[ERROR_MESSAGE_MAX + 2];

    memset(text, 'a', sizeof(text));
    memcpy(text + ERROR_MESSAGE_MAX - 1, "\xC3\xA9", 3); /* é across the ceiling */
    (void)error_set(&e, ERROR_INVALID, "%s", text);
    assert_int_equal(strlen(e->message), ERROR_MESSAGE_MAX - 1);
    assert_int_equal(e->message[ERROR_MESSAGE_MAX - 2], 'a');
    (void)error_wrap(&e, -1, "%s", text);
    assert_true(strlen(e->message) <= ERROR_MESSAGE_MAX);
}

static void test_kinds_are_distinct(_unused_ void **state)
{
    for (int a = 0; a < ERROR_KIND_MAX; a++) {
        assert_true(error_errno((ErrorKind)a) < 0);
        assert_true(strlen(error_kind_to_string((ErrorKind)a)) > 0);
        for (int b = a + 1; b < ERROR_KIND_MAX; b++) {
            assert_int_not_equal(error_errno((ErrorKind)a), error_errno((ErrorKind)b));
            assert_string_not_equal(error_kind_to_string((ErrorKind)a),
                                    error_kind_to_string((ErrorKind)b));
        }
    }
    assert_string_equal(error_kind_to_string(ERROR_NOT_FOUND), "not_found");
    assert_string_equal(error_kind_to_string((ErrorKind)99), "internal");
}

static void test_retryable_kinds(_unused_ void **state)
{
    static const ErrorKind yes[] = {ERROR_EXHAUSTED, ERROR_UNAVAILABLE, ERROR_TIMEOUT};

    assert_false(error_is_retryable(NULL));
    for (int kind = 0; kind < ERROR_KIND_MAX; kind++) {
        _cleanup_error_ Error *e = NULL;
        bool expected = false;

        for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
            expected = expected || (int)yes[i] == kind;
        (void)error_set(&e, (ErrorKind)kind, "x");
        assert_int_equal(error_is_retryable(e), expected);
    }
}

static void test_copy_is_deep(_unused_ void **state)
{
    _cleanup_error_ Error *e = NULL, *copy = NULL;

    (void)error_set(&e, ERROR_DENIED, "no");
    (void)error_hint(&e, 0, "ask");
    e->reason = xstrdup("Forbidden");
    e->http_status = 403;
    copy = error_copy(e);
    e = error_free(e);
    assert_null(e);
    assert_string_equal(copy->message, "no");
    assert_string_equal(copy->hint, "ask");
    assert_string_equal(copy->reason, "Forbidden");
    assert_int_equal(copy->http_status, 403);
    assert_null(error_copy(NULL));
    assert_null(error_free(NULL));
}

static void test_message_is_never_null(_unused_ void **state)
{
    assert_non_null(error_message(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_the_errno_of_the_kind),
        cmocka_unit_test(test_null_error_drops_the_details),
        cmocka_unit_test(test_set_may_quote_the_error_it_replaces),
        cmocka_unit_test(test_wrap_prefixes_and_keeps_the_kind),
        cmocka_unit_test(test_hint_replaces),
        cmocka_unit_test(test_control_bytes_become_question_marks),
        cmocka_unit_test(test_messages_are_cut_between_characters),
        cmocka_unit_test(test_kinds_are_distinct),
        cmocka_unit_test(test_retryable_kinds),
        cmocka_unit_test(test_copy_is_deep),
        cmocka_unit_test(test_message_is_never_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
