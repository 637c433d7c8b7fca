/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/transport/output.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#define MAX 4096

static char *bytes(size_t len)
{
    char *data = xmalloc(len + 1);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)('a' + (i * 31 + i / 97) % 26);
    data[len] = '\0';
    return data;
}

/* Feeds data in pieces of the size given. */
static char *keep(const char *data, size_t len, size_t piece, size_t *ret_len, bool *ret_truncated)
{
    OutputKeeper o = OUTPUT_KEEPER_INIT(MAX);

    for (size_t at = 0; at < len; at += piece)
        output_add(&o, data + at, len - at < piece ? len - at : piece);
    assert_int_equal(o.total, len);
    char *out = output_take(&o, ret_len, ret_truncated);
    assert_int_equal(out[*ret_len], '\0');
    return out;
}

static void test_what_fits_is_kept_whole(void **state)
{
    static const size_t lengths[] = {0, 1, MAX * 3 / 4 - 1, MAX * 3 / 4, MAX * 3 / 4 + 1, MAX};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (size_t piece = 1; piece <= MAX; piece *= 7) {
            _cleanup_free_ char *data = bytes(lengths[i]);
            size_t len = 0;
            bool truncated = true;
            _cleanup_free_ char *out = keep(data, lengths[i], piece, &len, &truncated);
            assert_false(truncated);
            assert_int_equal(len, lengths[i]);
            assert_memory_equal(out, data, len);
        }
}

static void test_head_and_tail_of_what_does_not(void **state)
{
    static const size_t lengths[] = {MAX + 1, MAX + 500, 3 * MAX, 100 * MAX + 17};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (size_t piece = 1; piece <= 8 * MAX; piece *= 11) {
            _cleanup_free_ char *data = bytes(lengths[i]);
            size_t len = 0;
            bool truncated = false;
            _cleanup_free_ char *out = keep(data, lengths[i], piece, &len, &truncated);
            assert_true(truncated);
            assert_in_range(len, MAX - 64, MAX);
            assert_memory_equal(out, data, MAX * 3 / 4);
            const char *gap = strstr(out, "\n[... ");
            assert_ptr_equal(gap, out + MAX * 3 / 4);
            const char *tail = strstr(gap + 1, "]\n") + 2;
            size_t tail_len = len - (size_t)(tail - out);
            assert_memory_equal(tail, data + lengths[i] - tail_len, tail_len);
            assert_int_equal(strtoull(gap + 6, NULL, 10), lengths[i] - MAX * 3 / 4 - tail_len);
        }
}

static void test_cuts_lie_between_characters(void **state)
{
    static const char *const characters[] = {"\xC3\xA9", "\xE2\x9C\x93", "\xF0\x9F\x92\xA1"};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(characters); i++)
        for (size_t shift = 0; shift < 4; shift++) {
            OutputKeeper o = OUTPUT_KEEPER_INIT(MAX);
            output_add(&o, "xxxx", shift);
            for (size_t n = 0; n < 3 * MAX; n++)
                output_add(&o, characters[i], strlen(characters[i]));
            size_t len = 0;
            bool truncated = false;
            _cleanup_free_ char *out = output_take(&o, &len, &truncated);
            assert_true(truncated);
            assert_true(str_is_utf8(out, len));
        }
}

static void test_bytes_that_are_no_text_are_kept(void **state)
{
    OutputKeeper o = OUTPUT_KEEPER_INIT(MAX);
    char block[256];
    size_t len = 0;
    bool truncated = false;
    (void)state;

    memset(block, 0x80, sizeof(block)); /* continuation bytes alone */
    for (size_t i = 0; i < 64; i++)
        output_add(&o, block, sizeof(block));
    _cleanup_free_ char *out = output_take(&o, &len, &truncated);
    assert_true(truncated);
    assert_in_range(len, MAX - 64, MAX);
    assert_int_equal((unsigned char)out[len - 1], 0x80);
    output_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits_is_kept_whole),
        cmocka_unit_test(test_head_and_tail_of_what_does_not),
        cmocka_unit_test(test_cuts_lie_between_characters),
        cmocka_unit_test(test_bytes_that_are_no_text_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
