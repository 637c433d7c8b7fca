/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/config.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

#define MAX_ARGS 8

/* Parses "flag flag …"; the words must outlive the call only. */
static int parse(const char *flags, GatewayConfig *config, Error **error)
{
    _cleanup_free_ char *copy = xstrdup(flags);
    char program[] = "sandbox-gateway";
    char *argv[MAX_ARGS + 1] = {program};
    char *rest = copy, *word;
    int argc = 1;

    while ((word = strsep(&rest, " ")) && argc < MAX_ARGS)
        if (*word)
            argv[argc++] = word;
    *config = (GatewayConfig){0};
    return gateway_config_parse(argc, argv, config, error);
}

static void test_defaults(_unused_ void **state)
{
    _cleanup_(gateway_config_done) GatewayConfig c = {0};

    assert_int_equal(parse("", &c, NULL), 0);
    assert_string_equal(c.listen, "127.0.0.1:8080");
    assert_string_equal(c.audience, "k8s-agent-sandbox-mcp");
    assert_true(c.authenticates);
    assert_true(c.is_loopback);
    assert_int_equal(c.max_file_bytes, 16 * 1024 * 1024);
    assert_int_equal(c.review_ttl_ms, 30000);
    assert_int_equal(c.n_namespaces, 0);
}

static void test_without_authentication_on_loopback_only(_unused_ void **state)
{
    static const struct {
        const char *flags;
        bool accepted;
    } rows[] = {
        {"--auth=none", true},
        {"--auth=none --listen=127.0.0.1:1", true},
        {"--auth=none --listen=[::1]:1", true},
        {"--auth=none --listen=localhost:1", true},
        {"--auth=none --listen=:8080", false},
        {"--auth=none --listen=0.0.0.0:8080", false},
        {"--auth=none --listen=10.0.0.1:8080", false},
        {"--auth=none --listen=localhost.evil:1", false},
        {"--auth=none --listen=:8080 --i-understand-that-anyone-can-run-code", true},
        {"--auth=kubernetes --listen=:8080", true},
        {"--auth=static", false},
        {"--auth=", false},
        {"--audience=", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(gateway_config_done) GatewayConfig c = {0};
        _cleanup_error_ Error *error = NULL;

        if ((parse(rows[i].flags, &c, &error) == 0) != rows[i].accepted)
            fail_msg("%s: %s", rows[i].flags, error_message(error));
        assert_int_equal(error == NULL, rows[i].accepted);
    }
}

static void test_lists(_unused_ void **state)
{
    _cleanup_(gateway_config_done) GatewayConfig c = {0};
    _cleanup_error_ Error *error = NULL;

    assert_int_equal(parse("--namespaces=a,,b --allowed-hosts=x.example "
                           "--allowed-origins=https://x.example,http://y",
                           &c, NULL),
                     0);
    assert_int_equal(c.n_namespaces, 2);
    assert_string_equal(c.namespaces[1], "b");
    assert_int_equal(c.n_allowed_hosts, 1);
    assert_int_equal(c.n_allowed_origins, 2);
    gateway_config_done(&c);
    assert_true(parse("--namespaces=a/b", &c, &error) < 0);
    assert_non_null(strstr(error->message, "--namespaces"));
}

static void test_wrong_values_name_the_flag(_unused_ void **state)
{
    static const char *const rows[][2] = {
        {"--log-level=loud", "--log-level"},
        {"--log-format=xml", "--log-format"},
        {"--allowed-origins=x", "--allowed-origins"},
        {"--max-file-bytes=0", "--max-file-bytes"},
        {"--threads=9", "--threads"},
        {"--drain-grace=soon", "--drain-grace"},
        {"--nope", "--nope"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(gateway_config_done) GatewayConfig c = {0};
        _cleanup_error_ Error *error = NULL;

        assert_true(parse(rows[i][0], &c, &error) < 0);
        if (!strstr(error->message, rows[i][1]))
            fail_msg("%s: %s", rows[i][0], error->message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_without_authentication_on_loopback_only),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_wrong_values_name_the_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
