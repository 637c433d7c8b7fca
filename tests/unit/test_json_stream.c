/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/stream.h"
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <string.h>

#define CEILING 4096

/* Collects the items as text, one a line; stops with -ECANCELED at item stop_at. */
typedef struct Seen {
    Buf text;
    int n;
    int stop_at;
} Seen;

static int see(JsonValue *item, void *userdata, Error **error)
{
    Seen *seen = userdata;

    if (++seen->n == seen->stop_at)
        return error_set(error, ERROR_CANCELLED, "stopped");
    assert_int_equal(json_print(item, &seen->text), 0);
    return buf_append_char(&seen->text, '\n');
}

static void seen_done(Seen *seen)
{
    buf_done(&seen->text);
}
#define SEEN_INIT ((Seen){.text = BUF_INIT(1 << 20)})

typedef int (*Feed)(void *stream, const char *data, size_t len, Error **error);

static int feed_list(void *stream, const char *data, size_t len, Error **error)
{
    return json_list_stream_feed(stream, data, len, error);
}

static int feed_lines(void *stream, const char *data, size_t len, Error **error)
{
    return json_line_stream_feed(stream, data, len, error);
}

/* Feeds copies of exactly `step` bytes, so that the sanitizer guards each end. */
static int feed_in_steps(Feed feed, void *stream, const char *text, size_t step, Error **error)
{
    size_t len = strlen(text);
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i += step) {
        size_t n = len - i < step ? len - i : step;
        _cleanup_free_ char *piece = xmemdup(text + i, n);

        r = feed(stream, piece, n, error);
    }
    return r;
}

static const char list_text[] =
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"note\":\"items\",\"x\":{\"items\":[1,{\"items\":"
    "[2]}]},\n \"items\" : [ {\"a\":\"}]\\\"[{\\\\\"} ,\n{\"b\":[{\"items\":[]},1.50]},{}\t,"
    "{\"c\":\"K\xC3\xA4\\u00e9\"} ], "
    "\"metadata\":{\"resourceVersion\":\"77\",\"continue\":\"t\"}}\n";
static const char list_items[] = "{\"a\":\"}]\\\"[{\\\\\"}\n{\"b\":[{\"items\":[]},1.50]}\n{}\n"
                                 "{\"c\":\"K\xC3\xA4\xC3\xA9\"}\n";

static void test_list_split_anywhere(_unused_ void **state)
{
    for (size_t step = 1; step <= sizeof(list_text); step++) {
        _cleanup_(seen_done) Seen seen = SEEN_INIT;
        _cleanup_(json_list_stream_freep) JsonListStream *s =
            json_list_stream_new(CEILING, see, &seen);
        const JsonValue *envelope = NULL;

        assert_int_equal(feed_in_steps(feed_list, s, list_text, step, NULL), 0);
        assert_string_equal(buf_str(&seen.text), list_items);
        assert_int_equal(json_list_stream_finish(s, &envelope, NULL), 0);
        assert_string_equal(json_str(envelope, "kind"), "PodList");
        assert_string_equal(json_str(envelope, "metadata.resourceVersion"), "77");
        assert_string_equal(json_str(envelope, "metadata.continue"), "t");
        assert_int_equal(json_array_len(json_get(envelope, "items")), 0);
        assert_int_equal(json_array_len(json_path(envelope, "x.items")), 2);
        assert_int_equal(json_list_stream_finish(s, &envelope, NULL), 0);
    }
}

static void test_lists_without_items(_unused_ void **state)
{
    static const char *const texts[] = {
        "{\"items\":[]}",
        "{\"items\":null}",
        "{}",
        "{\"items\":[ \n ]}",
        "{\"kind\":\"Status\",\"code\":410,\"details\":[{}]}",
        " {\"a\":\"items\",\"b\":[{}]} ",
        "{\"a\":[\"items\",[{}]]}",
        "{\"items\":{\"items\":[{}]}}",
        "{\"items2\":[{}],\"item\":[{}],\"items\\\\\":[{}]}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_(seen_done) Seen seen = SEEN_INIT;
        _cleanup_(json_list_stream_freep) JsonListStream *s =
            json_list_stream_new(CEILING, see, &seen);
        const JsonValue *envelope = NULL;

        assert_int_equal(feed_in_steps(feed_list, s, texts[i], 1, NULL), 0);
        if (json_list_stream_finish(s, &envelope, NULL) < 0)
            fail_msg("refused: %s", texts[i]);
        assert_int_equal(seen.n, 0);
    }
}

static void test_items_may_come_first(_unused_ void **state)
{
    _cleanup_(seen_done) Seen seen = SEEN_INIT;
    _cleanup_(json_list_stream_freep) JsonListStream *s = json_list_stream_new(CEILING, see, &seen);
    const JsonValue *envelope = NULL;

    assert_int_equal(feed_in_steps(feed_list, s, "{\"items\":[{\"a\":1}],\"kind\":\"L\"}", 7, NULL),
                     0);
    assert_int_equal(json_list_stream_finish(s, &envelope, NULL), 0);
    assert_int_equal(seen.n, 1);
    assert_string_equal(json_str(envelope, "kind"), "L");
}

static void test_broken_lists_are_refused(_unused_ void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "5",
        "null",
        "{",
        "{\"items\":[",
        "{\"items\":[{}",
        "{\"items\":[{}]",
        "{\"items\":[{\"a\":1}",
        "{\"items\":[,]}",
        "{\"items\":[{},]}",
        "{\"items\":[{} {}]}",
        "{\"items\":[{}{}]}",
        "{\"items\":[{}}",
        "{\"items\":[1]}",
        "{\"items\":[null]}",
        "{\"items\":[\"x\"]}",
        "{\"items\":[[]]}",
        "{\"items\":[{]}]}",
        "{\"items\":[{\"a\":}]}",
        "{\"items\":[{a:1}]}",
        "{\"items\":[{\"a\":\"\xFF\"}]}",
        "{\"items\":[{}],\"items\":[{}]}",
        "{\"\\u0069tems\":[{}]}",
        "{\"items\":[{}]}{}",
        "{\"items\":[{}]} x",
        "{\"items\":[{}],}",
        "{\"kind\":\"a\",\"kind\":\"b\"}",
        "}}}}",
        "]]]]{\"items\":[{}]}",
        "{\"items\"[{}]}",
        "{\"x\":\"items\":[{}]}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        for (size_t step = 1; step < 40; step += 6) {
            _cleanup_(seen_done) Seen seen = SEEN_INIT;
            _cleanup_(json_list_stream_freep) JsonListStream *s =
                json_list_stream_new(CEILING, see, &seen);
            _cleanup_error_ Error *e = NULL;
            const JsonValue *envelope = NULL;
            int r = feed_in_steps(feed_list, s, bad[i], step, &e);

            if (r == 0)
                r = json_list_stream_finish(s, &envelope, &e);
            if (r == 0)
                fail_msg("accepted: %s", bad[i]);
            assert_int_equal(e->kind, ERROR_INVALID);
            assert_null(envelope);
            /* From then on it refuses. */
            assert_int_equal(json_list_stream_feed(s, "{}", 2, NULL), r);
            assert_int_equal(json_list_stream_finish(s, &envelope, NULL), r);
        }
}

/* Feeds prefix, then filler in pieces until the stream refuses; returns how much it took. */
static size_t feed_until_refused(Feed feed, void *stream, const char *prefix, Error **error)
{
    char filler[100];
    size_t taken = 0;

    memset(filler, 'x', sizeof(filler));
    assert_int_equal(feed(stream, prefix, strlen(prefix), NULL), 0);
    while (taken < 100 * CEILING && feed(stream, filler, sizeof(filler), error) == 0)
        taken += sizeof(filler);
    return taken;
}

static void test_list_ceilings(_unused_ void **state)
{
    static const char *const prefixes[] = {"{\"items\":[{\"a\":\"", "{\"a\":\"",
                                           "{\"items\":[{}],\"b\":\""};

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        _cleanup_(seen_done) Seen seen = SEEN_INIT;
        _cleanup_(json_list_stream_freep) JsonListStream *s =
            json_list_stream_new(CEILING, see, &seen);
        _cleanup_error_ Error *e = NULL;
        size_t taken = feed_until_refused(feed_list, s, prefixes[i], &e);

        assert_true(taken <= CEILING && taken > CEILING - 200);
        assert_int_equal(e->kind, ERROR_TOO_LARGE);
    }
}

/* The ceiling is for one item: many of them may pass. */
static void test_long_lists_pass_a_small_ceiling(_unused_ void **state)
{
    _cleanup_(seen_done) Seen seen = SEEN_INIT;
    _cleanup_(json_list_stream_freep) JsonListStream *s = json_list_stream_new(64, see, &seen);
    const JsonValue *envelope = NULL;

    assert_int_equal(json_list_stream_feed(s, "{\"items\":[{}", 12, NULL), 0);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(json_list_stream_feed(s, ", \n {\"n\":1}", 11, NULL), 0);
    assert_int_equal(json_list_stream_feed(s, "]}", 2, NULL), 0);
    assert_int_equal(json_list_stream_finish(s, &envelope, NULL), 0);
    assert_int_equal(seen.n, 20001);
}

static void test_list_stops_when_the_callback_says_so(_unused_ void **state)
{
    _cleanup_(seen_done) Seen seen = SEEN_INIT;
    _cleanup_(json_list_stream_freep) JsonListStream *s = json_list_stream_new(CEILING, see, &seen);
    _cleanup_error_ Error *e = NULL;
    const JsonValue *envelope = NULL;

    seen.stop_at = 2;
    assert_int_equal(json_list_stream_feed(s, list_text, strlen(list_text), &e), -ECANCELED);
    assert_string_equal(e->message, "stopped");
    assert_int_equal(seen.n, 2);
    assert_int_equal(json_list_stream_feed(s, "x", 1, NULL), -ECANCELED);
    assert_int_equal(json_list_stream_finish(s, &envelope, NULL), -ECANCELED);
    assert_int_equal(seen.n, 2);
}

static void test_deep_items(_unused_ void **state)
{
    for (int depth = JSON_DEPTH_CRD; depth <= JSON_DEPTH_CRD + 1; depth++) {
        _cleanup_(seen_done) Seen seen = SEEN_INIT;
        _cleanup_(json_list_stream_freep) JsonListStream *s =
            json_list_stream_new(CEILING, see, &seen);
        _cleanup_buf_ Buf text = BUF_INIT(CEILING);

        (void)buf_append_str(&text, "{\"items\":[");
        for (int i = 0; i < depth - 1; i++)
            (void)buf_append_str(&text, "{\"a\":");
        (void)buf_append_str(&text, "{}");
        for (int i = 0; i < depth - 1; i++)
            (void)buf_append_char(&text, '}');
        assert_int_equal(json_list_stream_feed(s, text.data, text.len, NULL) == 0,
                         depth <= JSON_DEPTH_CRD);
        assert_int_equal(seen.n, depth <= JSON_DEPTH_CRD ? 1 : 0);
    }
}

static const char lines_text[] = "{\"type\":\"ADDED\",\"object\":{\"a\":\"x\\n\"}}\n\r\n  \n"
                                 "{\"b\":\"K\xC3\xA4\"}\r\n\n[1, 2]\n{\"cut\":";
static const char lines_items[] = "{\"type\":\"ADDED\",\"object\":{\"a\":\"x\\n\"}}\n"
                                  "{\"b\":\"K\xC3\xA4\"}\n[1,2]\n";

static void test_lines_split_anywhere(_unused_ void **state)
{
    for (size_t step = 1; step <= sizeof(lines_text); step++) {
        _cleanup_(seen_done) Seen seen = SEEN_INIT;
        _cleanup_(json_line_stream_freep) JsonLineStream *s =
            json_line_stream_new(CEILING, see, &seen);

        assert_int_equal(feed_in_steps(feed_lines, s, lines_text, step, NULL), 0);
        assert_string_equal(buf_str(&seen.text), lines_items);
    }
}

static void test_broken_lines_are_refused(_unused_ void **state)
{
    static const char *const bad[] = {
        "{\n", "{}{}\n", "x\n", "{\"a\":\"\xFF\"}\n", "{\"a\":\n1}\n", "{\"a\":1,}\n", "\x1f\n"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        for (size_t step = 1; step < 12; step += 10) {
            _cleanup_(seen_done) Seen seen = SEEN_INIT;
            _cleanup_(json_line_stream_freep) JsonLineStream *s =
                json_line_stream_new(CEILING, see, &seen);
            _cleanup_error_ Error *e = NULL;

            assert_int_equal(json_line_stream_feed(s, "{}\n", 3, NULL), 0);
            assert_int_equal(feed_in_steps(feed_lines, s, bad[i], step, &e), -EINVAL);
            assert_int_equal(e->kind, ERROR_INVALID);
            assert_int_equal(json_line_stream_feed(s, "{}\n", 3, NULL), -EINVAL);
            assert_int_equal(seen.n, 1);
        }
}

static void test_line_ceiling(_unused_ void **state)
{
    _cleanup_(seen_done) Seen seen = SEEN_INIT;
    _cleanup_(json_line_stream_freep) JsonLineStream *s = json_line_stream_new(CEILING, see, &seen);
    _cleanup_error_ Error *e = NULL;
    size_t taken = feed_until_refused(feed_lines, s, "{}\n\"", &e);

    assert_true(taken <= CEILING && taken > CEILING - 200);
    assert_int_equal(e->kind, ERROR_TOO_LARGE);
}

/* The same line is taken or refused whether it comes in one piece or in many. */
static void test_line_ceiling_is_exact(_unused_ void **state)
{
    for (size_t len = 62; len <= 66; len++)
        for (size_t step = 1; step <= 100; step += 33) {
            _cleanup_(seen_done) Seen seen = SEEN_INIT;
            _cleanup_(json_line_stream_freep) JsonLineStream *s =
                json_line_stream_new(64, see, &seen);
            char text[100] = "\"";

            memset(text + 1, 'x', len - 2);
            memcpy(text + len - 1, "\"\n", 3);
            assert_int_equal(feed_in_steps(feed_lines, s, text, step, NULL) == 0, len <= 64);
        }
}

static void test_lines_stop_when_the_callback_says_so(_unused_ void **state)
{
    _cleanup_(seen_done) Seen seen = SEEN_INIT;
    _cleanup_(json_line_stream_freep) JsonLineStream *s = json_line_stream_new(CEILING, see, &seen);

    seen.stop_at = 2;
    assert_int_equal(json_line_stream_feed(s, "1\n2\n3\n", 6, NULL), -ECANCELED);
    assert_int_equal(seen.n, 2);
    assert_int_equal(json_line_stream_feed(s, "4\n", 2, NULL), -ECANCELED);
    assert_int_equal(seen.n, 2);
}

static void test_free_of_null_and_half_read_streams(_unused_ void **state)
{
    _cleanup_(seen_done) Seen seen = SEEN_INIT;
    JsonListStream *list = json_list_stream_new(CEILING, see, &seen);
    JsonLineStream *lines = json_line_stream_new(CEILING, see, &seen);

    assert_int_equal(json_list_stream_feed(list, "{\"items\":[{\"a\":", 15, NULL), 0);
    assert_int_equal(json_line_stream_feed(lines, "{\"a\":", 5, NULL), 0);
    assert_null(json_list_stream_free(list));
    assert_null(json_line_stream_free(lines));
    assert_null(json_list_stream_free(NULL));
    assert_null(json_line_stream_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_split_anywhere),
        cmocka_unit_test(test_lists_without_items),
        cmocka_unit_test(test_items_may_come_first),
        cmocka_unit_test(test_broken_lists_are_refused),
        cmocka_unit_test(test_list_ceilings),
        cmocka_unit_test(test_long_lists_pass_a_small_ceiling),
        cmocka_unit_test(test_list_stops_when_the_callback_says_so),
        cmocka_unit_test(test_deep_items),
        cmocka_unit_test(test_lines_split_anywhere),
        cmocka_unit_test(test_broken_lines_are_refused),
        cmocka_unit_test(test_line_ceiling),
        cmocka_unit_test(test_line_ceiling_is_exact),
        cmocka_unit_test(test_lines_stop_when_the_callback_says_so),
        cmocka_unit_test(test_free_of_null_and_half_read_streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
