/* SPDX-License-Identifier: Apache-2.0 */
/* What a model reads when something went wrong. */
#include "common/base/str.h"
#include "gateway/tools/advice.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static const Tool tool = {.name = "some_tool"};

static char *advice(ErrorKind kind, const char *message, const char *hint)
{
    _cleanup_buf_ Buf out = BUF_INIT(ADVICE_MAX);
    _cleanup_error_ Error *error = NULL;

    (void)error_set(&error, kind, "%s", message);
    if (hint)
        (void)error_hint(&error, 0, "%s", hint);
    tool_write_advice(&out, &tool, error);
    assert_false(out.failed);
    return buf_take(&out, NULL);
}

static void test_three_parts(_unused_ void **state)
{
    _cleanup_free_ char *own = advice(ERROR_INVALID, "x must be y.", NULL);
    _cleanup_free_ char *hinted = advice(ERROR_UNAVAILABLE, "it is away", "Call it later.");

    assert_string_equal(own, "x must be y. Repeating the same call does not help. Call some_tool "
                             "with corrected arguments.");
    assert_string_equal(hinted, "it is away. The same call may succeed later. Call it later.");
}

static void test_tool_that_cannot_take_less(_unused_ void **state)
{
    _cleanup_buf_ Buf out = BUF_INIT(ADVICE_MAX);
    _cleanup_error_ Error *error = NULL;
    const Tool whole = {.name = "whole", .too_large = "Cut it, then call %s for each part"};

    (void)error_set(&error, ERROR_TOO_LARGE, "it is large");
    tool_write_advice(&out, &whole, error);
    assert_string_equal(buf_str(&out),
                        "it is large. Repeating the same call does not help. Cut it, "
                        "then call whole for each part.");
}

static void test_every_kind_says_what_next(_unused_ void **state)
{
    for (int kind = 0; kind < ERROR_KIND_MAX; kind++) {
        _cleanup_free_ char *text = advice((ErrorKind)kind, "m", NULL);

        assert_true(str_starts_with(text, "m. "));
        assert_true(str_ends_with(text, "."));
        assert_null(strstr(text, "%s"));
        assert_null(strstr(text, ".."));
        assert_true(strstr(text, "Call ") || strstr(text, "Ask "));
    }
}

static void test_long_message_is_whole(_unused_ void **state)
{
    char message[ERROR_MESSAGE_MAX];

    memset(message, 'a', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    _cleanup_free_ char *text = advice(ERROR_INTERNAL, message, NULL);
    assert_true(strstr(text, "Call get_sandbox_status") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_parts),
        cmocka_unit_test(test_tool_that_cannot_take_less),
        cmocka_unit_test(test_every_kind_says_what_next),
        cmocka_unit_test(test_long_message_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
