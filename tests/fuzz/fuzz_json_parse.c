/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What json_parse accepts prints to text that it accepts again and that prints the same; canonical
 * text is a fixed point; json-c never refuses what the scanner let through.
 */
#include "common/json/write.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define TEXT_MAX_BYTES (64U << 20)

static void check_round_trip(const JsonValue *v, int (*print)(const JsonValue *, Buf *))
{
    _cleanup_buf_ Buf once = BUF_INIT(TEXT_MAX_BYTES), twice = BUF_INIT(TEXT_MAX_BYTES);
    _cleanup_json_ JsonValue *again = NULL;

    FUZZ_CHECK(print(v, &once) == 0);
    FUZZ_CHECK(json_parse(once.data, once.len, JSON_DEPTH_CRD, JSON_PARSE_UNIQUE, &again, NULL) ==
               0);
    FUZZ_CHECK(json_type(again) == json_type(v));
    FUZZ_CHECK(print(again, &twice) == 0);
    FUZZ_CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ JsonValue *v = NULL, *unique = NULL;
    _cleanup_error_ Error *e = NULL;
    const char *text = (const char *)data;

    if (json_parse(text, size, JSON_DEPTH_DEFAULT, JSON_PARSE_DEFAULT, &v, &e) < 0) {
        FUZZ_CHECK(e != NULL && strncmp(e->message, "JSON was refused", 16) != 0);
        return 0;
    }
    FUZZ_CHECK(e == NULL);
    check_round_trip(v, json_print);
    check_round_trip(v, json_print_canonical);
    if (json_parse(text, size, JSON_DEPTH_DEFAULT, JSON_PARSE_UNIQUE, &unique, NULL) == 0)
        check_round_trip(unique, json_print);
    return 0;
}
