/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <string.h>

static void test_compare(_unused_ void **state)
{
    assert_true(str_eq(NULL, NULL));
    assert_true(str_eq("a", "a"));
    assert_false(str_eq("a", NULL));
    assert_false(str_eq(NULL, ""));
    assert_true(str_empty(NULL));
    assert_true(str_empty(""));
    assert_false(str_empty(" "));
    assert_true(str_starts_with("abc", "ab"));
    assert_true(str_starts_with("abc", ""));
    assert_false(str_starts_with("a", "ab"));
    assert_true(str_ends_with("abc", "bc"));
    assert_false(str_ends_with("c", "bc"));
}

static void test_u64(_unused_ void **state)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1.0", "a"};
    uint64_t v = 7;

    assert_int_equal(str_to_u64("18446744073709551615", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(str_to_u64("0", &v), 0);
    assert_true(v == 0);
    v = 7;
    assert_int_equal(str_to_u64("18446744073709551616", &v), -ERANGE);
    assert_int_equal(str_to_u64("99999999999999999999999999", &v), -ERANGE);
    assert_int_equal(str_to_u64(NULL, &v), -EINVAL);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(str_to_u64(bad[i], &v), -EINVAL);
    assert_true(v == 7);
}

static void test_i64(_unused_ void **state)
{
    int64_t v = 7;

    assert_int_equal(str_to_i64("9223372036854775808", &v), -ERANGE);
    assert_int_equal(str_to_i64("-9223372036854775809", &v), -ERANGE);
    assert_int_equal(str_to_i64("--1", &v), -EINVAL);
    assert_int_equal(str_to_i64("-", &v), -EINVAL);
    assert_int_equal(str_to_i64("99999999999999999999a", &v), -EINVAL);
    assert_true(v == 7);
    assert_int_equal(str_to_i64("9223372036854775807", &v), 0);
    assert_true(v == INT64_MAX);
    assert_int_equal(str_to_i64("-9223372036854775808", &v), 0);
    assert_true(v == INT64_MIN);
    assert_int_equal(str_to_i64("-0", &v), 0);
    assert_true(v == 0);
}

static void test_utf8(_unused_ void **state)
{
    static const char *const good[] = {"",
                                       "abc",
                                       "é",
                                       "€",
                                       "\xF0\x9F\x98\x80",
                                       "\xED\x9F\xBF",
                                       "\xEE\x80\x80",
                                       "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {
        "\x80",             /* continuation alone */
        "\xC3",             /* cut short */
        "\xE2\x82",         /* cut short */
        "\xF0\x9F\x98",     /* cut short */
        "\xC0\x80",         /* overlong */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xED\xA0\x80",     /* surrogate */
        "\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "\xF5\x80\x80\x80", /* beyond U+10FFFF */
        "\xFF",             /* never */
        "\xC3\x28",         /* no continuation */
        "\xE2\x82\x28",     /* no continuation */
        "abc\xFFxyz",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(str_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(str_is_utf8(bad[i], strlen(bad[i])));
    assert_true(str_is_utf8("a\0b", 3));
    assert_int_equal(str_utf8_len("\xE2\x82\xAC!", 4), 3);
    assert_int_equal(str_utf8_len("", 0), 0);
}

static char *repeat(char c, size_t n)
{
    char *s = xmalloc(n + 1);

    memset(s, c, n);
    s[n] = '\0';
    return s;
}

static void test_dns_names(_unused_ void **state)
{
    _cleanup_free_ char *a63 = repeat('a', 63), *a64 = repeat('a', 64), *a253 = repeat('a', 253);
    _cleanup_free_ char *a254 = repeat('a', 254);
    static const char *const bad[] = {"", "-a", "a-", "A", "a_b", "a b", "é", "a/b"};

    assert_true(str_is_dns_label("a"));
    assert_true(str_is_dns_label("0-9"));
    assert_true(str_is_dns_label(a63));
    assert_false(str_is_dns_label(a64));
    assert_false(str_is_dns_label("a.b"));
    assert_false(str_is_dns_label(NULL));
    assert_true(str_is_dns_subdomain("a.b-c.0"));
    assert_true(str_is_dns_subdomain(a253));
    assert_false(str_is_dns_subdomain(a254));
    assert_false(str_is_dns_subdomain("a..b"));
    assert_false(str_is_dns_subdomain(".a"));
    assert_false(str_is_dns_subdomain("a."));
    assert_false(str_is_dns_subdomain("a.-b"));
    assert_false(str_is_dns_subdomain(NULL));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_false(str_is_dns_label(bad[i]));
        assert_false(str_is_dns_subdomain(bad[i]));
    }
}

static void test_labels(_unused_ void **state)
{
    _cleanup_free_ char *a63 = repeat('A', 63), *a64 = repeat('A', 64);

    assert_true(str_is_label_value(""));
    assert_true(str_is_label_value("A.b_c-9"));
    assert_true(str_is_label_value(a63));
    assert_false(str_is_label_value(a64));
    assert_false(str_is_label_value("-a"));
    assert_false(str_is_label_value("a."));
    assert_false(str_is_label_value("a/b"));
    assert_false(str_is_label_value(NULL));
    assert_true(str_is_label_key("app"));
    assert_true(str_is_label_key("app.kubernetes.io/Name_1"));
    assert_true(str_is_label_key(a63));
    assert_false(str_is_label_key(a64));
    assert_false(str_is_label_key(""));
    assert_false(str_is_label_key("/a"));
    assert_false(str_is_label_key("a/"));
    assert_false(str_is_label_key("a/b/c"));
    assert_false(str_is_label_key("A.io/b"));
    assert_false(str_is_label_key(NULL));
}

static void test_hashes_match_published_vectors(_unused_ void **state)
{
    assert_true(str_hash64("") == UINT64_C(0xcbf29ce484222325));
    assert_true(str_hash64("a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(str_hash64("foobar") == UINT64_C(0x85944171f73967e8));
    assert_true(str_hash_fnv1a32("", 0) == UINT32_C(0x811c9dc5));
    assert_true(str_hash_fnv1a32("a", 1) == UINT32_C(0xe40c292c));
    assert_true(str_hash_fnv1a32("foobar", 6) == UINT32_C(0xbf9cf968));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_u64),
        cmocka_unit_test(test_i64),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_dns_names),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_hashes_match_published_vectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
