/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/stream.h"

#include <string.h>

struct JsonLineStream {
    Buf line; /* what came of a line whose end is still missing */
    JsonItemFn fn;
    void *userdata;
    int failed; /* the first error, negative */
};

JsonLineStream *json_line_stream_new(size_t max_line_bytes, JsonItemFn fn, void *userdata)
{
    JsonLineStream *s = xnew(JsonLineStream);

    s->line = BUF_INIT(max_line_bytes);
    s->fn = fn;
    s->userdata = userdata;
    return s;
}

JsonLineStream *json_line_stream_free(JsonLineStream *s)
{
    if (!s)
        return NULL;
    buf_done(&s->line);
    free(s);
    return NULL;
}

static bool is_blank(const char *line, size_t len)
{
    while (len > 0 && (*line == ' ' || *line == '\t' || *line == '\r')) {
        line++;
        len--;
    }
    return len == 0;
}

static int take_line(JsonLineStream *s, const char *line, size_t len, Error **error)
{
    _cleanup_json_ JsonValue *item = NULL;
    int r;

    if (is_blank(line, len))
        return 0;
    r = json_parse(line, len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &item, error);
    if (r < 0)
        return r;
    r = s->fn(item, s->userdata, error);
    return r < 0 ? r : 0;
}

/* The bytes up to and without a line end. A line that came in one piece is not copied. */
static int end_line(JsonLineStream *s, const char *data, size_t len, Error **error)
{
    int r;

    if (s->line.len == 0 && len <= s->line.max)
        return take_line(s, data, len, error);
    (void)buf_append(&s->line, data, len);
    r = buf_check(&s->line, "a line", error);
    if (r == 0)
        r = take_line(s, s->line.data, s->line.len, error);
    buf_clear(&s->line);
    return r;
}

static int feed(JsonLineStream *s, const char *data, size_t len, Error **error)
{
    const char *end = data + len;

    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        int r;

        if (!newline) {
            (void)buf_append(&s->line, data, (size_t)(end - data));
            return buf_check(&s->line, "a line", error);
        }
        r = end_line(s, data, (size_t)(newline - data), error);
        if (r < 0)
            return r;
        data = newline + 1;
    }
    return 0;
}

int json_line_stream_feed(JsonLineStream *s, const char *data, size_t len, Error **error)
{
    int r;

    if (s->failed < 0) {
        (void)error_set(error, ERROR_INTERNAL, "the stream was fed after it had failed");
        return s->failed;
    }
    r = feed(s, data, len, error);
    if (r < 0)
        s->failed = r;
    return r;
}
