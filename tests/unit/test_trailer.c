/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/trailer.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

static const char nonce[] = "0123456789abcdef0123456789abcd99"; /* begins like itself */

static void out_add(const char *data, size_t len, void *userdata)
{
    assert_true(len > 0);
    buf_append(userdata, data, len);
}

typedef struct Result {
    TrailerScan scan;
    Buf out;
} Result;

static Result scan_in_pieces(const char *data, size_t len, size_t piece, size_t first)
{
    Result r = {.out = BUF_INIT(1 << 20)};

    trailer_init(&r.scan, nonce);
    for (size_t at = 0; at < len;) {
        size_t n = at == 0 && first ? first : piece;
        n = n < len - at ? n : len - at;
        trailer_feed(&r.scan, data + at, n, out_add, &r.out);
        at += n;
    }
    return r;
}

typedef struct Case {
    const char *text, *out, *line;
    bool found, complete;
} Case;

#define N "0123456789abcdef0123456789abcd99"

static const Case cases[] = {
    {"", "", "", false, false},
    {"output", "output", "", false, false},
    {N " ok\n", "", " ok", true, true},
    {N "\n", "", "", true, true},
    {"output" N " exited 0 same\n", "output", " exited 0 same", true, true},
    {"output\n" N " ok\nlate output", "output\n", " ok", true, true},
    {"output" N " cut", "output", " cut", true, false},
    {"0123456789abcdef" N " ok\n", "0123456789abcdef", " ok", true, true},
    {"0123456789abcdef0123456789abcd9" N " ok\n", "0123456789abcdef0123456789abcd9", " ok", true,
     true},
    {"0123456789abcdef0123456789abcd9", "", "", false, false}, /* a nonce that was cut off */
    {"output 012345", "output ", "", false, false},
    {"output 01234", "output 01234", "", false, false}, /* too short to be sure */
    {"a longer piece of output, longer than the nonce itself: " N " ok\n" N " not\n",
     "a longer piece of output, longer than the nonce itself: ", " ok", true, true},
};

static void test_pieces_cut_anywhere(void **state)
{
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t piece = 1; piece < 90; piece++)
            for (size_t first = 0; first < 40; first++) {
                size_t len = strlen(cases[i].text);
                Result r = scan_in_pieces(cases[i].text, len, piece, first);
                assert_int_equal(r.scan.found, cases[i].found);
                assert_int_equal(r.scan.complete, cases[i].complete);
                assert_string_equal(r.scan.line, cases[i].line);
                trailer_flush(&r.scan, out_add, &r.out);
                assert_string_equal(buf_str(&r.out), cases[i].out);
                buf_done(&r.out);
            }
}

static void test_binary_output_passes_at_once(void **state)
{
    TrailerScan t;
    _cleanup_buf_ Buf out = BUF_INIT(1 << 20);
    char block[5000];
    (void)state;

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)(i * 7);
    trailer_init(&t, nonce);
    trailer_feed(&t, block, sizeof(block), out_add, &out);
    assert_int_equal(out.len,
                     sizeof(block) - SCRIPT_NONCE_LEN + 1); /* the rest may begin a nonce */
    trailer_feed(&t, nonce, strlen(nonce), out_add, &out);
    assert_int_equal(out.len, sizeof(block));
    assert_memory_equal(out.data, block, sizeof(block));
    assert_true(t.found);
}

static void test_endless_line_is_broken(void **state)
{
    TrailerScan t;
    _cleanup_buf_ Buf out = BUF_INIT(1 << 20);
    (void)state;

    trailer_init(&t, nonce);
    trailer_feed(&t, nonce, strlen(nonce), out_add, &out);
    for (size_t i = 0; i < 2 * TRAILER_LINE_MAX; i++)
        trailer_feed(&t, "x", 1, out_add, &out);
    trailer_feed(&t, "\n", 1, out_add, &out);
    assert_true(t.broken);
    assert_false(t.complete);
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_cut_anywhere),
        cmocka_unit_test(test_binary_output_passes_at_once),
        cmocka_unit_test(test_endless_line_is_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
