/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's metrics as a scraper sees them. */
#include "common/base/str.h"
#include "gateway/metrics.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void test_what_only_grows_is_a_counter(_unused_ void **state)
{
    static const char *const counters[] = {
        "http_requests", "tool_calls", "streams", "reviews", "live_reads", "activity_patches",
    };
    Metrics *m = gateway_metrics_new();
    _cleanup_buf_ Buf page = BUF_INIT(1 << 20);

    assert_int_equal(metrics_print(m, &page), 0);
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
        _cleanup_free_ char *line =
            xasprintf("\n# TYPE sandbox_gateway_%s_total counter\n", counters[i]);
        if (!strstr(buf_str(&page), line))
            fail_msg("not found: %s", line);
    }
    assert_non_null(strstr(buf_str(&page),
                           "\nsandbox_gateway_build_info{version=\"" SANDBOX_VERSION "\"} 1\n"));
    (void)metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_only_grows_is_a_counter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
