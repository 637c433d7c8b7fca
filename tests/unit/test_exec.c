/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "common/kube/exec.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

typedef struct Out {
    Buf streams[2];
} Out;

static void out_add(ExecChannel channel, const char *data, size_t len, void *userdata)
{
    Out *out = userdata;

    assert_true(channel == EXEC_STDOUT || channel == EXEC_STDERR);
    assert_true(len > 0);
    buf_append(&out->streams[channel - EXEC_STDOUT], data, len);
}

typedef struct Fixture {
    ExecDemux demux;
    Out out;
    Error *error;
} Fixture;

static Fixture fixture(void)
{
    return (Fixture){.demux = EXEC_DEMUX_INIT,
                     .out.streams = {BUF_INIT(1 << 20), BUF_INIT(1 << 20)}};
}

static void fixture_done(Fixture *f)
{
    exec_demux_done(&f->demux);
    buf_done(&f->out.streams[0]);
    buf_done(&f->out.streams[1]);
    error_free(f->error);
}

static int feed(Fixture *f, const char *data, size_t len, bool first, bool last)
{
    return exec_demux_feed(&f->demux, data, len, first, last, out_add, &f->out, &f->error);
}

static void test_whole_messages(void **state)
{
    Fixture f = fixture();
    (void)state;

    assert_int_equal(feed(&f, "\1", 1, true, true), 0); /* each channel opens empty */
    assert_int_equal(feed(&f, "\2", 1, true, true), 0);
    assert_int_equal(feed(&f, "\1one\0", 5, true, true), 0);
    assert_int_equal(feed(&f, "\2err", 4, true, true), 0);
    assert_int_equal(feed(&f, "\1two", 4, true, true), 0);
    assert_int_equal(feed(&f, "\3{}", 3, true, true), 0);
    assert_int_equal(feed(&f, "", 0, true, true), 0);
    assert_int_equal(f.out.streams[0].len, 7);
    assert_memory_equal(f.out.streams[0].data, "one\0two", 7);
    assert_string_equal(buf_str(&f.out.streams[1]), "err");
    assert_string_equal(buf_str(&f.demux.status), "{}");
    fixture_done(&f);
}

static void test_pieces_cut_anywhere(void **state)
{
    static const char message[] = "\2some text";
    (void)state;

    for (size_t cut = 0; cut <= strlen(message); cut++) {
        Fixture f = fixture();
        assert_int_equal(feed(&f, message, cut, true, false), 0);
        assert_int_equal(feed(&f, "", 0, false, false), 0);
        assert_int_equal(feed(&f, message + cut, strlen(message) - cut, false, true), 0);
        assert_string_equal(buf_str(&f.out.streams[1]), "some text");
        assert_int_equal(f.out.streams[0].len, 0);
        fixture_done(&f);
    }
}

static void test_wrong_channels_and_orders_are_refused(void **state)
{
    static const char wrong[] = {0, 4, 5, (char)255};
    (void)state;

    for (size_t i = 0; i < sizeof(wrong); i++) {
        Fixture f = fixture();
        assert_true(feed(&f, &wrong[i], 1, true, true) < 0);
        assert_int_equal(f.error->kind, ERROR_INVALID);
        fixture_done(&f);
    }
    Fixture middle = fixture(), nested = fixture();
    assert_true(feed(&middle, "\1x", 2, false, true) < 0);
    assert_int_equal(feed(&nested, "\1x", 2, true, false), 0);
    assert_true(feed(&nested, "\1x", 2, true, true) < 0);
    fixture_done(&middle);
    fixture_done(&nested);
}

static void test_status_has_a_ceiling(void **state)
{
    Fixture f = fixture();
    char block[1024] = {EXEC_ERROR};
    int r = 0;
    size_t n = 0;
    (void)state;

    while ((r = feed(&f, block, sizeof(block), true, true)) == 0)
        n++;
    assert_int_equal(n, EXEC_STATUS_MAX / (sizeof(block) - 1));
    assert_int_equal(f.error->kind, ERROR_TOO_LARGE);
    fixture_done(&f);
}

typedef struct StatusCase {
    const char *text;
    bool success;
    int exit_code;
    const char *reason, *message;
} StatusCase;

static void test_statuses(void **state)
{
    static const StatusCase cases[] = {
        {"{\"metadata\":{},\"status\":\"Success\"}", true, 0, NULL, NULL},
        {"{\"status\":\"Failure\",\"message\":\"command terminated with exit code 7\","
         "\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\","
         "\"message\":\"7\"}]}}",
         false, 7, "NonZeroExitCode", "command terminated with exit code 7"},
        {"{\"status\":\"Failure\",\"reason\":\"InternalError\",\"message\":\"no sh\",\"details\":"
         "{\"causes\":[{\"message\":\"no sh\"}]},\"code\":500}",
         false, -1, "InternalError", "no sh"},
        {"{\"status\":\"Failure\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":"
         "\"executable file not found\"}]}}",
         false, -1, NULL, NULL},
        {"{\"status\":\"Failure\",\"details\":{\"causes\":[7,{\"reason\":\"ExitCode\"},"
         "{\"reason\":\"ExitCode\",\"message\":\"99999999999\"}]}}",
         false, -1, NULL, NULL},
        {"{\"status\":\"Failure\",\"details\":[],\"reason\":3}", false, -1, NULL, NULL},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_error_ Error *error = NULL;
        ExecStatus s = {0};
        assert_int_equal(exec_status_parse(cases[i].text, strlen(cases[i].text), &s, &error), 0);
        assert_int_equal(s.success, cases[i].success);
        assert_int_equal(s.exit_code, cases[i].exit_code);
        assert_true(str_eq(s.reason, cases[i].reason));
        assert_true(str_eq(s.message, cases[i].message));
        exec_status_done(&s);
    }
}

static void test_what_is_no_status(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"status\":\"Maybe\"}",
        "{\"status\":7}",
        "{\"status\":\"Success\"} x",
        "command terminated",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_error_ Error *error = NULL;
        ExecStatus s = {.exit_code = 42};
        assert_true(exec_status_parse(texts[i], strlen(texts[i]), &s, &error) < 0);
        assert_int_equal(error->kind, ERROR_INVALID);
        assert_int_equal(s.exit_code, 42);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_messages),
        cmocka_unit_test(test_pieces_cut_anywhere),
        cmocka_unit_test(test_wrong_channels_and_orders_are_refused),
        cmocka_unit_test(test_status_has_a_ceiling),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_what_is_no_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
