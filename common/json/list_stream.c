/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document is cut along its brackets: everything but the elements of the top-level "items" is
 * collected as the envelope, each element is collected and parsed on its own. Cutting needs only
 * depth and string boundaries; whether each piece is JSON is json_parse's matter.
 */
#include "common/json/stream.h"

#include <errno.h>
#include <string.h>

typedef enum Phase {
    PHASE_ENVELOPE,      /* outside of "items" */
    PHASE_FIRST_ITEM,    /* behind '[': an element or ']' */
    PHASE_NEXT_ITEM,     /* behind ',': an element */
    PHASE_ITEM,          /* inside an element */
    PHASE_BETWEEN_ITEMS, /* behind an element: ',' or ']' */
    PHASE_MAX,
} Phase;

/* How far the envelope is on the way to `"items":[` at depth 1. */
typedef enum Approach {
    APPROACH_NONE,
    APPROACH_KEY,
    APPROACH_COLON,
    APPROACH_MAX,
} Approach;

/* Follows brackets and strings through text. */
typedef struct Cutter {
    int64_t depth;
    bool in_string;
    bool escaped; /* the last byte was a backslash that escapes the next */
} Cutter;

struct JsonListStream {
    Phase phase;
    Approach approach;
    Cutter outer;        /* the envelope */
    Cutter inner;        /* the element */
    size_t string_start; /* in the envelope: where the last string begins, quote included */
    Buf envelope;
    Buf item;
    JsonValue *document;
    JsonItemFn fn;
    void *userdata;
    int failed; /* the first error, negative */
};

static void cutter_step_string(Cutter *c, char byte)
{
    if (c->escaped)
        c->escaped = false;
    else if (byte == '\\')
        c->escaped = true;
    else if (byte == '"')
        c->in_string = false;
}

static void cutter_step(Cutter *c, char byte)
{
    if (c->in_string)
        cutter_step_string(c, byte);
    else if (byte == '"')
        c->in_string = true;
    else if (byte == '{' || byte == '[')
        c->depth++;
    else if (byte == '}' || byte == ']')
        c->depth--;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

JsonListStream *json_list_stream_new(size_t max_item_bytes, JsonItemFn fn, void *userdata)
{
    JsonListStream *s = xnew(JsonListStream);

    s->envelope = BUF_INIT(max_item_bytes);
    s->item = BUF_INIT(max_item_bytes);
    s->fn = fn;
    s->userdata = userdata;
    return s;
}

JsonListStream *json_list_stream_free(JsonListStream *s)
{
    if (!s)
        return NULL;
    buf_done(&s->envelope);
    buf_done(&s->item);
    (void)json_free(s->document);
    free(s);
    return NULL;
}

static int refuse(JsonListStream *s, char c, Error **error)
{
    const char *expected = s->phase == PHASE_BETWEEN_ITEMS ? "',' or ']'" : "an object";

    return error_set(error, ERROR_INVALID, "the list's items are broken at '%c', expected %s", c,
                     expected);
}

static bool last_string_is_items(const JsonListStream *s)
{
    static const char quoted[] = "\"items\"";
    size_t len = s->envelope.len - s->string_start;

    return len == sizeof(quoted) - 1 &&
           memcmp(s->envelope.data + s->string_start, quoted, len) == 0;
}

/* Where the approach stands behind byte c of the envelope, which is outside of strings or ends
 * one. */
static Approach next_approach(const JsonListStream *s, char c)
{
    if (is_space(c))
        return s->approach;
    if (s->outer.depth != 1)
        return APPROACH_NONE;
    if (c == '"' && last_string_is_items(s))
        return APPROACH_KEY;
    return c == ':' && s->approach == APPROACH_KEY ? APPROACH_COLON : APPROACH_NONE;
}

static int feed_envelope(JsonListStream *s, char c, Error **error)
{
    bool was_in_string = s->outer.in_string;

    if (!was_in_string && c == '[' && s->approach == APPROACH_COLON)
        s->phase = PHASE_FIRST_ITEM;
    if (!was_in_string && c == '"')
        s->string_start = s->envelope.len;
    (void)buf_append_char(&s->envelope, c);
    cutter_step(&s->outer, c);
    if (!s->outer.in_string)
        s->approach = next_approach(s, c);
    return buf_check(&s->envelope, "what is around the list's items", error);
}

/* One byte outside of elements. */
static int feed_between(JsonListStream *s, char c, Error **error)
{
    bool wants_item = s->phase == PHASE_FIRST_ITEM || s->phase == PHASE_NEXT_ITEM;

    if (is_space(c))
        return 0;
    if (c == '{' && wants_item) {
        s->phase = PHASE_ITEM;
        s->inner = (Cutter){.depth = 1};
        (void)buf_append_char(&s->item, c);
        return buf_check(&s->item, "an item of the list", error);
    }
    if (c == ',' && s->phase == PHASE_BETWEEN_ITEMS) {
        s->phase = PHASE_NEXT_ITEM;
        return 0;
    }
    if (c != ']' || s->phase == PHASE_NEXT_ITEM)
        return refuse(s, c, error);
    s->phase = PHASE_ENVELOPE;
    return feed_envelope(s, c, error);
}

static int end_item(JsonListStream *s, Error **error)
{
    _cleanup_json_ JsonValue *item = NULL;
    int r = json_parse(s->item.data, s->item.len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &item, error);

    s->phase = PHASE_BETWEEN_ITEMS;
    buf_clear(&s->item);
    if (r < 0)
        return error_wrap(error, r, "an item of the list");
    return s->fn(item, s->userdata, error);
}

/* Takes bytes up to the end of the element at most; *ret_taken says how many. */
static int feed_item(JsonListStream *s, const char *data, size_t len, size_t *ret_taken,
                     Error **error)
{
    size_t n = 0;
    int r;

    while (n < len && s->inner.depth > 0)
        cutter_step(&s->inner, data[n++]);
    (void)buf_append(&s->item, data, n);
    r = buf_check(&s->item, "an item of the list", error);
    if (r == 0 && s->inner.depth == 0)
        r = end_item(s, error);
    *ret_taken = n;
    return r;
}

static int feed(JsonListStream *s, const char *data, size_t len, Error **error)
{
    size_t taken;
    int r = 0;

    for (size_t i = 0; i < len && r >= 0; i += taken) {
        taken = 1;
        if (s->phase == PHASE_ITEM)
            r = feed_item(s, data + i, len - i, &taken, error);
        else if (s->phase == PHASE_ENVELOPE)
            r = feed_envelope(s, data[i], error);
        else
            r = feed_between(s, data[i], error);
    }
    return r < 0 ? r : 0;
}

static int refuse_after_failure(const JsonListStream *s, Error **error)
{
    (void)error_set(error, ERROR_INTERNAL, "the list was read on after it had failed");
    return s->failed;
}

int json_list_stream_feed(JsonListStream *s, const char *data, size_t len, Error **error)
{
    int r;

    if (s->failed < 0)
        return refuse_after_failure(s, error);
    r = feed(s, data, len, error);
    if (r < 0)
        s->failed = r;
    return r;
}

static int parse_envelope(JsonListStream *s, Error **error)
{
    _cleanup_json_ JsonValue *document = NULL;
    int r = json_parse(buf_str(&s->envelope), s->envelope.len, JSON_DEPTH_CRD, JSON_PARSE_UNIQUE,
                       &document, error);

    if (r < 0)
        return error_wrap(error, r, "the list around its items");
    if (json_type(document) != JSON_OBJECT)
        return error_set(error, ERROR_INVALID, "the list is not a JSON object");
    if (json_array_len(json_get(document, "items")) > 0)
        return error_set(error, ERROR_INVALID, "the list's \"items\" is spelled with escapes");
    s->document = TAKE_PTR(document);
    return 0;
}

int json_list_stream_finish(JsonListStream *s, const JsonValue **ret_envelope, Error **error)
{
    int r;

    if (s->failed < 0)
        return refuse_after_failure(s, error);
    r = s->document ? 0 : parse_envelope(s, error);
    if (r < 0) {
        s->failed = r;
        return r;
    }
    *ret_envelope = s->document;
    return 0;
}
