/* SPDX-License-Identifier: Apache-2.0 */
#include "common/obs/metrics.h"

#include "tests/unit/cmocka_all.h"

#include "common/base/str.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALLS, OPEN, TIME, PLAIN_TIME, ODD };

static const double buckets[] = {0.01, 0.1, 1};
static const MetricSpec specs[] = {
    [CALLS] = {"calls_total", METRIC_COUNTER, "Calls.", .label1 = "tool", .label2 = "result"},
    [OPEN] = {"open", METRIC_GAUGE, "Open things.\nTwo lines, a \\ and a \"quote\".",
              .label1 = NULL},
    [TIME] = {"time_seconds", METRIC_HISTOGRAM, "Time.", .label1 = "tool", .buckets = buckets,
              .n_buckets = ARRAY_SIZE(buckets)},
    [PLAIN_TIME] = {"plain_seconds", METRIC_HISTOGRAM, "Time.", .buckets = buckets,
                    .n_buckets = ARRAY_SIZE(buckets)},
    [ODD] = {"odd", METRIC_GAUGE, "Odd.", .label1 = "name"},
};

static int setup(void **state)
{
    *state = metrics_new(specs, ARRAY_SIZE(specs));
    return 0;
}

static int teardown(void **state)
{
    *state = metrics_free(*state);
    return 0;
}

/* The page without process_*, which differ from run to run. */
static void assert_page(Metrics *m, const char *expected)
{
    Buf page = BUF_INIT(1 << 20);

    assert_int_equal(metrics_print(m, &page), 0);
    char *process = strstr(page.data, "# HELP process_");
    assert_non_null(process);
    *process = '\0';
    assert_string_equal(page.data, expected);
    buf_done(&page);
}

static bool page_has(Metrics *m, const char *line)
{
    Buf page = BUF_INIT(1 << 20);

    assert_int_equal(metrics_print(m, &page), 0);
    bool found = strstr(page.data, line) != NULL;
    buf_done(&page);
    return found;
}

#define EMPTY_PLAIN                                                                                \
    "# HELP plain_seconds Time.\n# TYPE plain_seconds histogram\n"                                 \
    "plain_seconds_bucket{le=\"0.01\"} 0\nplain_seconds_bucket{le=\"0.1\"} 0\n"                    \
    "plain_seconds_bucket{le=\"1\"} 0\nplain_seconds_bucket{le=\"+Inf\"} 0\n"                      \
    "plain_seconds_sum 0\nplain_seconds_count 0\n"

static void test_page(void **state)
{
    Metrics *m = *state;

    metrics_add(m, CALLS, "list_files", "ok", 1);
    metrics_add(m, CALLS, "execute_command", "ok", 2);
    metrics_add(m, CALLS, "execute_command", "error", 1);
    metrics_set(m, OPEN, NULL, NULL, 2.5);
    metrics_observe(m, TIME, "t", NULL, 0.01);
    metrics_observe(m, TIME, "t", NULL, 0.5);
    metrics_observe(m, TIME, "t", NULL, 7);
    assert_page(m, "# HELP calls_total Calls.\n# TYPE calls_total counter\n"
                   "calls_total{tool=\"execute_command\",result=\"error\"} 1\n"
                   "calls_total{tool=\"execute_command\",result=\"ok\"} 2\n"
                   "calls_total{tool=\"list_files\",result=\"ok\"} 1\n"
                   "# HELP open Open things.\\nTwo lines, a \\\\ and a \"quote\".\n"
                   "# TYPE open gauge\nopen 2.5\n"
                   "# HELP time_seconds Time.\n# TYPE time_seconds histogram\n"
                   "time_seconds_bucket{tool=\"t\",le=\"0.01\"} 1\n"
                   "time_seconds_bucket{tool=\"t\",le=\"0.1\"} 1\n"
                   "time_seconds_bucket{tool=\"t\",le=\"1\"} 2\n"
                   "time_seconds_bucket{tool=\"t\",le=\"+Inf\"} 3\n"
                   "time_seconds_sum{tool=\"t\"} 7.51\ntime_seconds_count{tool=\"t\"} 3\n" //
                EMPTY_PLAIN "# HELP odd Odd.\n# TYPE odd gauge\n");
}

static void test_sum_has_no_errors_of_adding(void **state)
{
    Metrics *m = *state;

    for (int i = 0; i < 982; i++)
        metrics_observe(m, PLAIN_TIME, NULL, NULL, 0.001);
    assert_true(page_has(m, "\nplain_seconds_sum 0.982\n"));
}

static void test_counter_kept_elsewhere(void **state)
{
    Metrics *m = *state;

    metrics_raise(m, CALLS, "t", "ok", 0);
    assert_true(page_has(m, "\ncalls_total{tool=\"t\",result=\"ok\"} 0\n"));
    metrics_raise(m, CALLS, "t", "ok", 7);
    metrics_raise(m, CALLS, "t", "ok", 5);
    assert_true(metrics_get(m, CALLS, "t", "ok") == 7);
    metrics_raise(m, CALLS, "t", "ok", 8);
    assert_true(metrics_get(m, CALLS, "t", "ok") == 8);
}

static void test_escaping(void **state)
{
    Metrics *m = *state;

    metrics_set(m, ODD, "a\"b\\c\nd", NULL, 1);
    assert_true(page_has(m, "\nodd{name=\"a\\\"b\\\\c\\nd\"} 1\n"));
    metrics_set(m, ODD, "\xff\xc3\xbc\xc3", NULL, 2);
    assert_true(page_has(m, "\nodd{name=\"?\xc3\xbc?\"} 2\n"));
    metrics_set(m, ODD, NULL, NULL, 3);
    assert_true(page_has(m, "\nodd{name=\"\"} 3\n"));
}

static void test_numbers(void **state)
{
    Metrics *m = *state;
    const struct {
        double value;
        const char *text;
    } numbers[] = {
        {0, "0"},
        {-1, "-1"},
        {0.1, "0.1"},
        {1e15, "1e+15"},
        {1764589234567, "1764589234567"},
        {INFINITY, "+Inf"},
        {-INFINITY, "-Inf"},
        {NAN, "NaN"},
        {0.1 + 0.2, "0.30000000000000004"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        char line[64];
        metrics_set(m, OPEN, NULL, NULL, numbers[i].value);
        (void)snprintf(line, sizeof line, "\nopen %s\n", numbers[i].text);
        if (!page_has(m, line))
            fail_msg("not found: %s", line);
    }
}

static void test_buckets_include_their_bound(void **state)
{
    Metrics *m = *state;

    metrics_observe(m, PLAIN_TIME, NULL, NULL, 0.1);
    metrics_observe(m, PLAIN_TIME, NULL, NULL, nextafter(0.1, 1));
    assert_true(page_has(m, "\nplain_seconds_bucket{le=\"0.1\"} 1\n"));
    assert_true(page_has(m, "\nplain_seconds_bucket{le=\"1\"} 2\n"));
    assert_true(page_has(m, "\nplain_seconds_count 2\n"));
    assert_float_equal(metrics_get(m, PLAIN_TIME, NULL, NULL), 2, 0);
}

static void test_series_ceiling(void **state)
{
    Metrics *m = *state;
    char tool[32];

    for (int i = 0; i < METRIC_SERIES_MAX + 50; i++) {
        (void)snprintf(tool, sizeof tool, "tool-%d", i);
        metrics_add(m, CALLS, tool, "ok", 1);
    }
    assert_float_equal(metrics_get(m, CALLS, "tool-0", "ok"), 1, 0);
    assert_float_equal(metrics_get(m, CALLS, "tool-255", "ok"), 1, 0);
    assert_float_equal(metrics_get(m, CALLS, "tool-256", "ok"), 0, 0);
    assert_float_equal(metrics_get(m, CALLS, "other", "other"), 50, 0);
    assert_true(page_has(m, "\ncalls_total{tool=\"other\",result=\"other\"} 50\n"));
    metrics_add(m, CALLS, "tool-7", "ok", 1); /* one that is there still counts by itself */
    assert_float_equal(metrics_get(m, CALLS, "tool-7", "ok"), 2, 0);
}

static void test_long_labels_are_cut(void **state)
{
    Metrics *m = *state;
    char name[300];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    metrics_set(m, ODD, name, NULL, 1);
    name[128] = '\0';
    assert_float_equal(metrics_get(m, ODD, name, NULL), 1, 0);
    name[127] = '\0';
    assert_float_equal(metrics_get(m, ODD, name, NULL), 0, 0);
}

static void test_ceiling_of_the_page(void **state)
{
    Metrics *m = *state;
    Buf page = BUF_INIT(100);

    assert_int_equal(metrics_print(m, &page), -E2BIG);
    buf_done(&page);
}

#define THREADS 4
#define ROUNDS 20000

static void *count_up(void *userdata)
{
    static const char *const tools[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    Metrics *m = userdata;

    for (int i = 0; i < ROUNDS; i++) {
        metrics_add(m, CALLS, tools[i % 8], "ok", 1);
        metrics_add(m, OPEN, NULL, NULL, i % 2 ? -1 : 1);
        metrics_observe(m, TIME, tools[i % 8], NULL, 0.05);
    }
    return NULL;
}

static void test_threads(void **state)
{
    Metrics *m = *state;
    pthread_t threads[THREADS];
    double calls = 0;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, m), 0);
    for (int i = 0; i < 20; i++)
        assert_true(page_has(m, "# TYPE calls_total counter\n"));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (const char *c = "abcdefgh"; *c; c++)
        calls += metrics_get(m, CALLS, (char[]){*c, 0}, "ok");
    assert_float_equal(calls, THREADS * ROUNDS, 0);
    assert_float_equal(metrics_get(m, OPEN, NULL, NULL), 0, 0);
    assert_float_equal(metrics_get(m, TIME, "a", NULL), THREADS * ROUNDS / 8, 0);
    assert_float_equal(metrics_get(m, CALLS, "other", "other"), 0, 0);
}

static double process_value(Metrics *m, const char *name)
{
    Buf page = BUF_INIT(1 << 20);
    char line[64];

    assert_int_equal(metrics_print(m, &page), 0);
    (void)snprintf(line, sizeof line, "\nprocess_%s ", name);
    const char *at = strstr(page.data, line);
    if (!at)
        fail_msg("no process_%s", name);
    double value = at ? strtod(at + strlen(line), NULL) : 0;
    buf_done(&page);
    return value;
}

static void test_process(void **state)
{
    Metrics *m = *state;
    double before = process_value(m, "open_fds");
    int fd = dup(0);

    assert_true(fd >= 0);
    assert_float_equal(process_value(m, "open_fds"), before + 1, 0);
    (void)close(fd);
    assert_true(process_value(m, "max_fds") >= 64);
    assert_true(process_value(m, "resident_memory_bytes") > 100 * 1024);
    assert_true(process_value(m, "virtual_memory_bytes") >
                process_value(m, "resident_memory_bytes"));
    double started = process_value(m, "start_time_seconds");
    assert_true(started <= (double)time(NULL) + 1 && started > (double)time(NULL) - 600);
    clock_t until = clock() + CLOCKS_PER_SEC / 20;
    while (clock() < until)
        ;
    assert_true(process_value(m, "cpu_seconds_total") >= 0.03);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_page),
        TEST(test_sum_has_no_errors_of_adding),
        TEST(test_counter_kept_elsewhere),
        TEST(test_escaping),
        TEST(test_numbers),
        TEST(test_buckets_include_their_bound),
        TEST(test_series_ceiling),
        TEST(test_long_labels_are_cut),
        TEST(test_ceiling_of_the_page),
        TEST(test_threads),
        TEST(test_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
