/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void test_hex(_unused_ void **state)
{
    char out[9];

    str_hex("\x00\x7f\xff\x10", 4, out);
    assert_string_equal(out, "007fff10");
    str_hex("", 0, out);
    assert_string_equal(out, "");
}

static void test_url_encode(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(1000);

    assert_int_equal(str_url_encode(&b, "aZ0-._~ /?&=%\n\xC3", 15, false), 0);
    assert_string_equal(buf_str(&b), "aZ0-._~%20%2F%3F%26%3D%25%0A%C3");
    buf_clear(&b);
    assert_int_equal(str_url_encode(&b, "a/b c", 5, true), 0);
    assert_string_equal(buf_str(&b), "a/b%20c");
}

static void test_url_encode_stops_at_the_ceiling(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(4);

    assert_true(str_url_encode(&b, "a  b", 4, false) < 0);
    assert_true(b.failed);
}

/* RFC 4648 §10 */
static const char *const vectors[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/"},
};

static void test_base64_vectors(_unused_ void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        _cleanup_buf_ Buf coded = BUF_INIT(100), plain = BUF_INIT(100);
        const char *text = vectors[i][0], *base64 = vectors[i][1];

        assert_int_equal(str_base64_encode(&coded, text, strlen(text)), 0);
        assert_string_equal(buf_str(&coded), base64);
        assert_int_equal(str_base64_decode(&plain, base64, strlen(base64), NULL), 0);
        assert_string_equal(buf_str(&plain), text);
    }
}

static void test_base64_round_trip_of_all_bytes(_unused_ void **state)
{
    unsigned char bytes[256];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 7 + 3);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        _cleanup_buf_ Buf coded = BUF_INIT(1000), plain = BUF_INIT(1000);

        assert_int_equal(str_base64_encode(&coded, bytes, len), 0);
        assert_int_equal(coded.len, (len + 2) / 3 * 4);
        assert_int_equal(str_base64_decode(&plain, coded.data, coded.len, NULL), 0);
        assert_int_equal(plain.len, len);
        if (len > 0)
            assert_memory_equal(plain.data, bytes, len);
    }
}

static void test_base64_refuses(_unused_ void **state)
{
    static const char *const bad[] = {
        "Z",    "Zg",       "Zg=",  "Zm9v\n", "Zm9v Zm9", "====", "Z===",    "=Zg=",
        "Zg=v", "Zg==Zm9v", "Zh==", "Zm9=",   "Zm-v",     "Zm_v", "Zm\xC3v", "Zm9vZg=A",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_buf_ Buf b = BUF_INIT(100);
        _cleanup_error_ Error *e = NULL;

        (void)buf_append_str(&b, "kept");
        assert_true(str_base64_decode(&b, bad[i], strlen(bad[i]), &e) < 0);
        assert_int_equal(e->kind, ERROR_INVALID);
        assert_string_equal(buf_str(&b), "kept");
    }
    {
        _cleanup_buf_ Buf b = BUF_INIT(100);

        assert_true(str_base64_decode(&b, "Zm\0v", 4, NULL) < 0);
    }
}

static void test_base64_ceiling(_unused_ void **state)
{
    _cleanup_buf_ Buf b = BUF_INIT(5), exact = BUF_INIT(6);
    _cleanup_error_ Error *e = NULL;

    assert_true(str_base64_decode(&b, "Zm9vYmFy", 8, &e) < 0);
    assert_int_equal(e->kind, ERROR_TOO_LARGE);
    assert_int_equal(b.len, 0);
    assert_int_equal(str_base64_decode(&exact, "Zm9vYmFy", 8, NULL), 0);
    assert_true(str_base64_encode(&exact, "x", 1) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_url_encode),
        cmocka_unit_test(test_url_encode_stops_at_the_ceiling),
        cmocka_unit_test(test_base64_vectors),
        cmocka_unit_test(test_base64_round_trip_of_all_bytes),
        cmocka_unit_test(test_base64_refuses),
        cmocka_unit_test(test_base64_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
