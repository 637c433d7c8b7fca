/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list fed whole and in pieces gives the same items and the same end. Where the whole is accepted
 * it is a document that json_parse accepts too, with as many items.
 */
#include "common/json/stream.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/split.h"

#include <string.h>

#define ITEM_MAX_BYTES 512
#define TEXT_MAX_BYTES (64U << 20)

typedef struct Run {
    Buf text; /* the items, then the envelope */
    size_t n_items;
    int result;
} Run;

static int see(JsonValue *item, void *userdata, _unused_ Error **error)
{
    Run *run = userdata;

    FUZZ_CHECK(json_type(item) == JSON_OBJECT);
    run->n_items++;
    return json_print(item, &run->text);
}

static void feed_all(Run *run, const char *text, size_t len, uint32_t random)
{
    _cleanup_(json_list_stream_freep) JsonListStream *s =
        json_list_stream_new(ITEM_MAX_BYTES, see, run);
    _cleanup_error_ Error *e = NULL;
    const JsonValue *envelope = NULL;

    run->text = BUF_INIT(TEXT_MAX_BYTES);
    for (size_t i = 0, n; i < len && run->result == 0; i += n) {
        n = random ? next_piece(&random, len - i) : len;
        run->result = json_list_stream_feed(s, text + i, n, &e);
    }
    if (run->result == 0)
        run->result = json_list_stream_finish(s, &envelope, &e);
    FUZZ_CHECK((run->result < 0) == (e != NULL));
    FUZZ_CHECK((run->result < 0) == (envelope == NULL));
    FUZZ_CHECK(json_print(envelope, &run->text) == 0);
}

static void check_document(const Run *run, const char *text, size_t len)
{
    _cleanup_json_ JsonValue *v = NULL;
    _cleanup_error_ Error *e = NULL;

    if (json_parse(text, len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &v, &e) < 0) {
        FUZZ_CHECK(strstr(e->message, "nested deeper")); /* items are inside of the list here */
        return;
    }
    FUZZ_CHECK(json_array_len(json_get(v, "items")) == run->n_items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    Run whole = {0}, pieces = {0};

    if (size == 0)
        return 0;
    feed_all(&whole, text, size - 1, 0);
    feed_all(&pieces, text, size - 1, data[0] + 1U);
    FUZZ_CHECK(whole.n_items == pieces.n_items && whole.result == pieces.result);
    FUZZ_CHECK(strcmp(buf_str(&whole.text), buf_str(&pieces.text)) == 0);
    if (whole.result == 0)
        check_document(&whole, text, size - 1);
    buf_done(&whole.text);
    buf_done(&pieces.text);
    return 0;
}
