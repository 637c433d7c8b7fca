/* SPDX-License-Identifier: Apache-2.0 */
/* When a request may be repeated, and after how long. */
#include "tests/unit/cmocka_all.h"

#include "common/net/http_client.h"

static int64_t delay(const char *method, unsigned tries, int status, bool sent)
{
    return http_retry_delay_ms(method, HTTP_RETRY_SAFE, tries, 5, status, sent, 0, 0.0);
}

static void test_a_create_is_repeated_only_where_nothing_was_done(void **state)
{
    (void)state;
    assert_true(delay("POST", 1, 429, true) >= 0);
    assert_true(delay("POST", 1, 0, false) >= 0);
    assert_int_equal(delay("POST", 1, 0, true), -1);
    for (int status = 100; status < 600; status++)
        if (status != 429)
            assert_int_equal(delay("POST", 1, status, true), -1);
}

static void test_unknown_verbs_are_like_creates(void **state)
{
    (void)state;
    assert_int_equal(delay("MERGE", 1, 503, true), -1);
    assert_int_equal(delay("get", 1, 503, true), -1);
    assert_true(delay("MERGE", 1, 429, true) >= 0);
}

static void test_repeatable_verbs(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET", "HEAD", "PUT", "PATCH", "DELETE"};
    static const int transient[] = {0, 429, 500, 502, 503, 504};
    static const int final[] = {200, 201, 301, 400, 401, 403, 404, 409, 410, 422, 501, 505};
    for (size_t m = 0; m < ARRAY_SIZE(methods); m++) {
        for (size_t i = 0; i < ARRAY_SIZE(transient); i++)
            assert_true(delay(methods[m], 1, transient[i], true) >= 0);
        for (size_t i = 0; i < ARRAY_SIZE(final); i++)
            assert_int_equal(delay(methods[m], 1, final[i], true), -1);
    }
}

static void test_never(void **state)
{
    (void)state;
    assert_int_equal(http_retry_delay_ms("GET", HTTP_RETRY_NEVER, 1, 5, 429, false, 1000, 0.5), -1);
    assert_int_equal(http_retry_delay_ms("GET", HTTP_RETRY_NEVER, 1, 5, 0, false, 0, 0.5), -1);
}

static void test_tries_end(void **state)
{
    (void)state;
    assert_true(delay("GET", 4, 503, true) >= 0);
    assert_int_equal(delay("GET", 5, 503, true), -1);
    assert_int_equal(delay("GET", 6, 503, true), -1);
}

static void test_back_off_doubles_and_is_capped(void **state)
{
    (void)state;
    static const int64_t full[] = {200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    for (unsigned i = 0; i < ARRAY_SIZE(full); i++) {
        int64_t low = http_retry_delay_ms("GET", HTTP_RETRY_SAFE, i + 1, 99, 503, true, 0, 0.0);
        int64_t high = http_retry_delay_ms("GET", HTTP_RETRY_SAFE, i + 1, 99, 503, true, 0, 1.0);
        assert_int_equal(low, full[i] / 2);
        assert_int_equal(high, full[i]);
    }
    assert_int_equal(
        http_retry_delay_ms("GET", HTTP_RETRY_SAFE, 4000000, UINT32_MAX, 0, true, 0, 1.0), 10000);
}

static void test_retry_after_is_a_lower_bound(void **state)
{
    (void)state;
    int64_t low = http_retry_delay_ms("POST", HTTP_RETRY_SAFE, 1, 5, 429, true, 3000, 0.0);
    int64_t high = http_retry_delay_ms("POST", HTTP_RETRY_SAFE, 1, 5, 429, true, 3000, 1.0);
    assert_int_equal(low, 3000);
    assert_int_equal(high, 3100);
    assert_int_equal(http_retry_delay_ms("GET", HTTP_RETRY_SAFE, 1, 5, 503, true, INT64_MAX, 0.0),
                     3600000);
    assert_int_equal(http_retry_delay_ms("GET", HTTP_RETRY_SAFE, 1, 5, 503, true, -5, 0.0), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_create_is_repeated_only_where_nothing_was_done),
        cmocka_unit_test(test_unknown_verbs_are_like_creates),
        cmocka_unit_test(test_repeatable_verbs),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_tries_end),
        cmocka_unit_test(test_back_off_doubles_and_is_capped),
        cmocka_unit_test(test_retry_after_is_a_lower_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
