/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/cleanup.h"
#include "gateway/mcp/origin.h"
#include "tests/unit/cmocka_all.h"

static char listed_host[] = "gateway.example";
static char listed_origin[] = "https://agent.example";
static char *hosts[] = {listed_host};
static char *origins[] = {listed_origin};
static const OriginRules loopback = {.loopback = true};
static const OriginRules anywhere = {.loopback = false};
static const OriginRules listed = {
    .hosts = hosts, .n_hosts = 1, .origins = origins, .n_origins = 1};

static void test_host(_unused_ void **state)
{
    static const struct {
        const OriginRules *rules;
        const char *host;
        bool allowed;
    } cases[] = {
        {&loopback, "localhost", true},
        {&loopback, "LOCALHOST:8080", true},
        {&loopback, "127.0.0.1:1", true},
        {&loopback, "[::1]", true},
        {&loopback, "[::1]:8080", true},
        {&loopback, "evil.example", false},
        {&loopback, "localhost.evil", false},
        {&loopback, "localhost:80:80", false},
        {&loopback, "[::1]x", false},
        {&loopback, "[::1", false},
        {&loopback, "", false},
        {&loopback, NULL, false},
        {&anywhere, "whatever:80", true},
        {&anywhere, NULL, true},
        {&listed, "gateway.example:80", true},
        {&listed, "Gateway.Example", true},
        {&listed, "other.example", false},
        {&listed, "localhost", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (mcp_host_allowed(cases[i].rules, cases[i].host) != cases[i].allowed)
            fail_msg("case %zu: %s", i, cases[i].host ? cases[i].host : "(none)");
}

static void test_origin(_unused_ void **state)
{
    static const struct {
        const OriginRules *rules;
        const char *origin;
        bool allowed;
    } cases[] = {
        {&loopback, NULL, true},
        {&loopback, "http://localhost:3000", true},
        {&loopback, "http://127.0.0.1", true},
        {&loopback, "http://evil.example", false},
        {&loopback, "null", false},
        {&loopback, "http://localhost.evil.example", false},
        {&anywhere, NULL, true},
        {&anywhere, "http://localhost:3000", false},
        {&anywhere, "https://agent.example", false},
        {&listed, "https://agent.example", true},
        {&listed, "https://agent.example:444", false},
        {&listed, "http://agent.example", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (mcp_origin_allowed(cases[i].rules, cases[i].origin) != cases[i].allowed)
            fail_msg("case %zu: %s", i, cases[i].origin ? cases[i].origin : "(none)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host), cmocka_unit_test(test_origin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
