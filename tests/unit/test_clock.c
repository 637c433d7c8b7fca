/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"
#include "tests/unit/cmocka_all.h"

#include <time.h>

static void test_format(_unused_ void **state)
{
    static const struct {
        int64_t ms;
        const char *seconds;
        const char *micro;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999000Z"},
        {1796124994007, "2026-12-01T11:36:34Z", "2026-12-01T11:36:34.007000Z"},
        {951782400000, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"},
        {INT64_MIN, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
        {INT64_MAX, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999000Z"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char out[RFC3339_MAX];

        time_format_rfc3339(rows[i].ms, out);
        assert_string_equal(out, rows[i].seconds);
        time_format_rfc3339_micro(rows[i].ms, out);
        assert_string_equal(out, rows[i].micro);
    }
}

static void test_parse(_unused_ void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-12-01T11:36:34Z", 1796124994000},
        {"2026-12-01t11:36:34z", 1796124994000},
        {"2026-12-01T13:36:34+02:00", 1796124994000},
        {"2026-12-01T06:06:34-05:30", 1796124994000},
        {"2026-12-01T11:36:34.1Z", 1796124994100},
        {"2026-12-01T11:36:34.007999999Z", 1796124994007},
        {"2026-12-01T11:36:34.12345678901234567890Z", 1796124994123},
        {"1969-12-31T23:59:59.999Z", -1},
        {"2000-02-29T00:00:00Z", 951782400000},
        {"0001-01-01T00:00:00Z", -62135596800000},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t ms = 42;

        assert_int_equal(time_parse_rfc3339(rows[i].text, &ms, NULL), 0);
        assert_true(ms == rows[i].ms);
    }
}

static void test_parse_refuses(_unused_ void **state)
{
    static const char *const bad[] = {
        "",
        "2026-12-01",
        "2026-12-01T11:36:34",
        "2026-12-01 11:36:34Z",
        "2026-13-01T11:36:34Z",
        "2026-00-01T11:36:34Z",
        "2026-02-29T11:36:34Z",
        "1900-02-29T11:36:34Z",
        "2026-04-31T11:36:34Z",
        "2026-12-00T11:36:34Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T11:60:34Z",
        "2026-12-01T11:36:60Z",
        "2026-12-01T11:36:34.Z",
        "2026-12-01T11:36:34+2:00",
        "2026-12-01T11:36:34+0200",
        "2026-12-01T11:36:34+24:00",
        "2026-12-01T11:36:34Zx",
        "2026-12-01T11:36:34Z ",
        " 2026-12-01T11:36:34Z",
        "0000-12-01T11:36:34Z",
        "-026-12-01T11:36:34Z",
        "26-12-01T11:36:34Z",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_error_ Error *e = NULL;
        int64_t ms = 42;

        assert_true(time_parse_rfc3339(bad[i], &ms, &e) < 0);
        assert_int_equal(e->kind, ERROR_INVALID);
        assert_true(ms == 42);
    }
}

static void test_round_trip(_unused_ void **state)
{
    for (int64_t ms = -62135596800000; ms < 253402300799999; ms += 98765432109) {
        char out[RFC3339_MAX];
        int64_t back = 0;

        time_format_rfc3339_micro(ms, out);
        assert_int_equal(time_parse_rfc3339(out, &back, NULL), 0);
        assert_true(back == ms);
    }
}

static void test_system_clock(_unused_ void **state)
{
    int64_t before = (int64_t)time(NULL) * 1000, monotonic = clock_monotonic_ms(&clock_system);
    int64_t now = clock_realtime_ms(&clock_system);

    assert_true(now >= before && now < before + 60000);
    assert_true(clock_monotonic_ms(&clock_system) >= monotonic);
}

static int64_t fixed(void *userdata)
{
    return *(int64_t *)userdata;
}

static void test_own_clock(_unused_ void **state)
{
    int64_t now = 1234;
    Clock c = {fixed, fixed, &now};

    assert_true(clock_realtime_ms(&c) == 1234);
    now = 99;
    assert_true(clock_monotonic_ms(&c) == 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format),        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_refuses), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_system_clock),  cmocka_unit_test(test_own_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
