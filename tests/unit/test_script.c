/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/transport/script.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void test_parameters_are_one_line_of_ascii(void **state)
{
    static const struct {
        const char *value, *line;
    } cases[] = {
        {"", "\n"},
        {"plain text ~", "plain text ~\n"},
        {"a\\b", "a\\0134b\n"},
        {"one\ntwo\n", "one\\0012two\\0012\n"},
        {"\t\r\x01\x7f", "\\0011\\0015\\0001\\0177\n"},
        {"\xC3\xA9\xFF", "\\0303\\0251\\0377\n"},
        {"$(x) `y` \"z\" 'w'", "$(x) `y` \"z\" 'w'\n"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ Buf out = BUF_INIT(256);
        script_param(&out, cases[i].value);
        assert_string_equal(buf_str(&out), cases[i].line);
    }
    _cleanup_buf_ Buf out = BUF_INIT(256);
    script_param_u64(&out, UINT64_MAX);
    assert_string_equal(buf_str(&out), "18446744073709551615\n");
}

/* What stands alone on a line would end the script, and a comment would cost a read for each byte.
 */
static void test_scripts_are_bare(void **state)
{
    (void)state;

    for (ScriptName name = 0; name < SCRIPT_MAX; name++) {
        _cleanup_buf_ Buf out = BUF_INIT(65536);
        script_append(&out, name);
        const char *text = buf_str(&out);
        assert_true(out.len > 500 && out.len < 4096);
        assert_true(str_ends_with(text, "\n.\n"));
        assert_ptr_equal(strstr(text, "\n.\n"), text + out.len - 3);
        assert_null(strstr(text, "\n#"));
        assert_null(strstr(text, "\n "));
        assert_null(strstr(text, "\n\n"));
        assert_non_null(strstr(text, "sbx_param() {\n"));
    }
}

static void test_bootstrap_fits_into_a_request_line(void **state)
{
    _cleanup_buf_ Buf out = BUF_INIT(65536), url = BUF_INIT(65536);
    (void)state;

    script_bootstrap(&out);
    str_url_encode(&url, out.data, out.len, false);
    assert_true(url.len > 100 && url.len < 600);
    assert_non_null(strstr(buf_str(&out), "printf 'sandbox-exec 1\\n'\n"));
    assert_string_equal(SCRIPT_HELLO, "sandbox-exec 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_are_one_line_of_ascii),
        cmocka_unit_test(test_scripts_are_bare),
        cmocka_unit_test(test_bootstrap_fits_into_a_request_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
