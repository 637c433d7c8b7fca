/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch lines fed whole and in pieces give the same events, and the events are those of the lines
 * parsed one by one.
 */
#include "common/json/stream.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/split.h"

#include <string.h>

#define LINE_MAX_BYTES 512
#define TEXT_MAX_BYTES (64U << 20)

typedef struct Run {
    Buf text;
    size_t n_items;
    int result;
} Run;

static int see(JsonValue *item, void *userdata, _unused_ Error **error)
{
    Run *run = userdata;

    run->n_items++;
    return json_print(item, &run->text);
}

static void feed_all(Run *run, const char *text, size_t len, uint32_t random)
{
    _cleanup_(json_line_stream_freep) JsonLineStream *s =
        json_line_stream_new(LINE_MAX_BYTES, see, run);
    _cleanup_error_ Error *e = NULL;

    run->text = BUF_INIT(TEXT_MAX_BYTES);
    for (size_t i = 0, n; i < len && run->result == 0; i += n) {
        n = random ? next_piece(&random, len - i) : len;
        run->result = json_line_stream_feed(s, text + i, n, &e);
    }
    FUZZ_CHECK((run->result < 0) == (e != NULL));
}

/* The reference: cut at each newline, parse, stop at the first that fails. */
static void parse_lines(Run *run, const char *text, size_t len)
{
    const char *end = text + len, *newline;

    run->text = BUF_INIT(TEXT_MAX_BYTES);
    for (; (newline = memchr(text, '\n', (size_t)(end - text))) != NULL; text = newline + 1) {
        _cleanup_json_ JsonValue *v = NULL;
        size_t n = (size_t)(newline - text), blank = 0;

        while (blank < n && strchr(" \t\r", text[blank]) && text[blank])
            blank++;
        if (blank == n && n <= LINE_MAX_BYTES)
            continue;
        if (n > LINE_MAX_BYTES ||
            json_parse(text, n, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &v, NULL) < 0)
            return;
        (void)see(v, run, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    Run whole = {0}, pieces = {0}, reference = {0};

    if (size == 0)
        return 0;
    feed_all(&whole, text, size - 1, 0);
    feed_all(&pieces, text, size - 1, data[0] + 1U);
    parse_lines(&reference, text, size - 1);
    FUZZ_CHECK(whole.n_items == pieces.n_items && whole.result == pieces.result);
    FUZZ_CHECK(whole.n_items == reference.n_items);
    FUZZ_CHECK(strcmp(buf_str(&whole.text), buf_str(&pieces.text)) == 0);
    FUZZ_CHECK(strcmp(buf_str(&whole.text), buf_str(&reference.text)) == 0);
    buf_done(&whole.text);
    buf_done(&pieces.text);
    buf_done(&reference.text);
    return 0;
}
