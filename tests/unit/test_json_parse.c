/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <string.h>

static JsonValue *parse(const char *text)
{
    JsonValue *v = NULL;
    _cleanup_error_ Error *e = NULL;

    if (json_parse(text, strlen(text), JSON_DEPTH_DEFAULT, JSON_PARSE_UNIQUE, &v, &e) < 0)
        fail_msg("%s: %s", text, error_message(e));
    return v;
}

static void test_types(_unused_ void **state)
{
    static const struct {
        const char *text;
        JsonType type;
    } rows[] = {
        {"null", JSON_NULL},
        {"true", JSON_BOOL},
        {"false", JSON_BOOL},
        {"0", JSON_INT},
        {"-1", JSON_INT},
        {"1.0", JSON_DOUBLE},
        {"1e2", JSON_DOUBLE},
        {"-0.5E-3", JSON_DOUBLE},
        {"\"x\"", JSON_STRING},
        {"[]", JSON_ARRAY},
        {" [ 1 , 2 ] ", JSON_ARRAY},
        {"{}", JSON_OBJECT},
        {"\t\r\n{ }\n", JSON_OBJECT},
        {"\"\"", JSON_STRING},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_json_ JsonValue *v = parse(rows[i].text);

        assert_int_equal(json_type(v), rows[i].type);
    }
}

static void test_text_needs_no_nul(_unused_ void **state)
{
    static const char *const texts[] = {"12", "{\"a\":1}", "true", "\"x\""};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        size_t len = strlen(texts[i]);
        _cleanup_free_ char *exact = xmemdup(texts[i], len); /* the sanitizer guards the end */
        _cleanup_json_ JsonValue *v = NULL;

        assert_int_equal(json_parse(exact, len, 4, JSON_PARSE_DEFAULT, &v, NULL), 0);
        assert_non_null(v);
    }
}

/* Everything that json-c of one release or another lets through, and more. */
static void test_refuses_what_is_not_rfc_8259(_unused_ void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "TRUE",
        "NaN",
        "Infinity",
        "-Infinity",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "1 2",
        "1,",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "'a'",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{1:2}",
        "{,}",
        "[}",
        "{]",
        "[1]]",
        "{}{}",
        "\"",
        "\"a",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\'\"",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\x01\"",
        "{\"a\nb\":1}",
        "/* c */ 1",
        "1 // c",
        "[1/**/]",
        "\xEF\xBB\xBF{}",
        "\x01",
        "\v1",
        "\f1",
        "undefined",
        "\"a\" \"b\"",
        "tru",
        "[tru]",
        "{\"a\":1,\"a\":2}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_error_ Error *e = NULL;
        JsonValue *v = (JsonValue *)&e; /* must stay as it is */

        if (json_parse(bad[i], strlen(bad[i]), 8, JSON_PARSE_UNIQUE, &v, &e) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(e->kind, ERROR_INVALID);
        assert_ptr_equal(v, &e);
    }
}

static void test_refuses_nul_bytes(_unused_ void **state)
{
    JsonValue *v = NULL;

    assert_true(json_parse("1\0", 2, 4, JSON_PARSE_DEFAULT, &v, NULL) < 0);
    assert_true(json_parse("\0", 1, 4, JSON_PARSE_DEFAULT, &v, NULL) < 0);
    assert_true(json_parse("\"a\0b\"", 5, 4, JSON_PARSE_DEFAULT, &v, NULL) < 0);
    assert_true(json_parse("{}\0{}", 5, 4, JSON_PARSE_DEFAULT, &v, NULL) < 0);
}

static void test_errors_name_the_offset(_unused_ void **state)
{
    static const char *const rows[][2] = {
        {"{\"a\":1,}", "JSON is broken at byte 7, expected a key in double quotes"},
        {"[1,2", "JSON ends at byte 4, expected ',' or ']'"},
        {"[1] x", "JSON is broken at byte 4, expected the end"},
        {"\"a\xFF\"", "JSON is broken at byte 2, expected UTF-8 without control bytes"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_error_ Error *e = NULL;
        JsonValue *v = NULL;

        assert_true(json_parse(rows[i][0], strlen(rows[i][0]), 8, JSON_PARSE_DEFAULT, &v, &e) < 0);
        assert_string_equal(e->message, rows[i][1]);
    }
}

static void test_non_ascii_text_passes(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v = parse("{\"K\xC3\xA4ufer\":\"\xF0\x9F\x98\x80 \xE2\x82\xAC\","
                                        "\"e\":\"\\u00e9\\ud83d\\ude00\"}");

    assert_string_equal(json_str(v, "K\xC3\xA4ufer"), "\xF0\x9F\x98\x80 \xE2\x82\xAC");
    assert_string_equal(json_str(v, "e"), "\xC3\xA9\xF0\x9F\x98\x80");
}

static void test_invalid_utf8_is_refused_everywhere(_unused_ void **state)
{
    static const char *const bad[] = {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80",
                                      "\xC3", "\x80"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_free_ char *value = xasprintf("[\"%s\"]", bad[i]);
        _cleanup_free_ char *key = xasprintf("{\"%s\":1}", bad[i]);
        JsonValue *v = NULL;

        assert_true(json_parse(value, strlen(value), 4, JSON_PARSE_DEFAULT, &v, NULL) < 0);
        assert_true(json_parse(key, strlen(key), 4, JSON_PARSE_DEFAULT, &v, NULL) < 0);
        assert_true(json_parse(bad[i], strlen(bad[i]), 4, JSON_PARSE_DEFAULT, &v, NULL) < 0);
    }
}

static char *nested(int depth, char open, char close)
{
    char *text = xcalloc((size_t)depth * 2 + 1, 1);

    memset(text, open, (size_t)depth);
    memset(text + depth, close, (size_t)depth);
    return text;
}

static void test_depth_is_exact(_unused_ void **state)
{
    for (int max = 1; max <= JSON_DEPTH_CRD; max++) {
        _cleanup_free_ char *fits = nested(max, '[', ']'), *deeper = nested(max + 1, '[', ']');
        _cleanup_json_ JsonValue *v = NULL;
        JsonValue *none = NULL;
        _cleanup_error_ Error *e = NULL;

        assert_int_equal(json_parse(fits, strlen(fits), max, JSON_PARSE_UNIQUE, &v, NULL), 0);
        assert_true(json_parse(deeper, strlen(deeper), max, JSON_PARSE_UNIQUE, &none, &e) < 0);
        assert_int_equal(e->kind, ERROR_INVALID);
        assert_non_null(strstr(e->message, "nested deeper"));
    }
}

static void test_hostile_depth_is_refused_early(_unused_ void **state)
{
    static char text[1 << 20];
    JsonValue *v = NULL;

    memset(text, '[', sizeof(text));
    assert_true(json_parse(text, sizeof(text), JSON_DEPTH_CRD, 0, &v, NULL) < 0);
    for (size_t i = 0; i + 5 <= sizeof(text); i += 5)
        memcpy(text + i, "{\"a\":", 5);
    assert_true(json_parse(text, sizeof(text), JSON_DEPTH_CRD, 0, &v, NULL) < 0);
}

static void test_duplicate_keys(_unused_ void **state)
{
    static const char *const dup[] = {
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"x\":[{\"b\":{\"c\":1,\"d\":2,\"c\":3}}]}",
        "{\"a\":{\"b\":1},\"a\":null}",
        "[{},{\"\":1,\"\":2}]",
    };

    for (size_t i = 0; i < ARRAY_SIZE(dup); i++) {
        JsonValue *v = NULL, *none = NULL;
        _cleanup_error_ Error *e = NULL;
        size_t len = strlen(dup[i]);

        assert_int_equal(json_parse(dup[i], len, 8, JSON_PARSE_DEFAULT, &v, NULL), 0);
        v = json_free(v);
        assert_true(json_parse(dup[i], len, 8, JSON_PARSE_UNIQUE, &none, &e) < 0);
        assert_int_equal(e->kind, ERROR_INVALID);
    }
    {
        _cleanup_json_ JsonValue *v = parse("[{\"a\":1},{\"a\":{\"a\":[{\"a\":2}]}}]");

        assert_int_equal(json_array_len(v), 2);
    }
}

static void test_keys_with_nul_are_refused(_unused_ void **state)
{
    static const char text[] = "{\"a\\u0000b\":1}";
    JsonValue *v = NULL;

    assert_true(json_parse(text, strlen(text), 8, JSON_PARSE_DEFAULT, &v, NULL) < 0);
}

static void test_strings_with_nul_keep_their_length(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v = parse("\"a\\u0000b\"");

    assert_int_equal(json_str_len(v), 3);
    assert_memory_equal(json_value_str(v), "a\0b", 4);
}

static void test_int64_limits(_unused_ void **state)
{
    static const struct {
        const char *text;
        JsonType type;
        int64_t i;
    } rows[] = {
        {"9223372036854775807", JSON_INT, INT64_MAX},
        {"-9223372036854775808", JSON_INT, INT64_MIN},
        {"999999999999999999", JSON_INT, 999999999999999999},
        {"-0", JSON_INT, 0},
        {"9223372036854775808", JSON_DOUBLE, 0},
        {"-9223372036854775809", JSON_DOUBLE, 0},
        {"18446744073709551615", JSON_DOUBLE, 0},
        {"18446744073709551616", JSON_DOUBLE, 0},
        {"123456789012345678901234567890", JSON_DOUBLE, 0},
        {"-123456789012345678901234567890", JSON_DOUBLE, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_json_ JsonValue *v = parse(rows[i].text);
        _cleanup_buf_ Buf out = BUF_INIT(100);

        assert_int_equal(json_type(v), rows[i].type);
        assert_true(json_value_int(v, 0) == rows[i].i);
        assert_true(json_value_double(v, 0) == strtod(rows[i].text, NULL));
        assert_int_equal(json_print(v, &out), 0);
        assert_string_equal(buf_str(&out), i == 3 ? "0" : rows[i].text);
    }
}

static void test_wide_integers_among_others(_unused_ void **state)
{
    static const char text[] = "{\"a\":[99999999999999999999,1,-99999999999999999999],"
                               "\"b\":5.50,\"c\":100000000000000000000}";
    _cleanup_json_ JsonValue *v = parse(text);
    _cleanup_buf_ Buf out = BUF_INIT(1000);

    assert_int_equal(json_print(v, &out), 0);
    assert_string_equal(buf_str(&out), text);
    assert_true(json_int(v, "c", -7) == -7);
    assert_true(json_value_double(json_get(v, "c"), 0) == 1e20);
}

static void test_doubles_beyond_range_give_the_default(_unused_ void **state)
{
    _cleanup_json_ JsonValue *huge = parse("1e999"), *tiny = parse("1e-999");

    assert_int_equal(json_type(huge), JSON_DOUBLE);
    assert_true(json_value_double(huge, -1) == -1);
    assert_true(json_value_double(tiny, -1) == 0);
}

static void test_reads_by_path(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v =
        parse("{\"s\":{\"t\":{\"u\":\"x\",\"n\":5,\"b\":true,\"d\":2.5,\"z\":null}},"
              "\"a.b\":{\"c\":1},\"list\":[1,\"two\"]}");

    assert_string_equal(json_str(v, "s.t.u"), "x");
    assert_true(json_int(v, "s.t.n", 0) == 5);
    assert_true(json_bool(v, "s.t.b", false));
    assert_true(json_value_double(json_path(v, "s.t.d"), 0) == 2.5);
    assert_null(json_path(v, "s.t.z"));
    assert_true(json_has(json_path(v, "s.t"), "z"));
    assert_false(json_has(json_path(v, "s.t"), "y"));
    assert_null(json_path(v, "s.t.u.v"));
    assert_null(json_path(v, "a.b.c"));
    assert_true(json_int(json_get(v, "a.b"), "c", 0) == 1);
    assert_null(json_path(v, ""));
    assert_null(json_path(v, "."));
    assert_null(json_path(v, "s..t"));
    assert_true(json_value_int(json_array_at(json_get(v, "list"), 0), 0) == 1);
    assert_string_equal(json_value_str(json_array_at(json_get(v, "list"), 1)), "two");
    assert_null(json_array_at(json_get(v, "list"), 2));
}

static void test_wrong_types_give_the_default(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v = parse("{\"s\":\"5\",\"n\":5,\"b\":true,\"d\":5.0,\"o\":{}}");

    assert_true(json_int(v, "s", -1) == -1);
    assert_true(json_int(v, "d", -1) == -1);
    assert_true(json_int(v, "b", -1) == -1);
    assert_null(json_str(v, "n"));
    assert_null(json_str(v, "o"));
    assert_true(json_bool(v, "n", true));
    assert_true(json_bool(v, "s", true));
    assert_true(isnan(json_value_double(json_get(v, "s"), NAN)));
    assert_int_equal(json_str_len(json_get(v, "n")), 0);
    assert_int_equal(json_array_len(json_get(v, "o")), 0);
    assert_int_equal(json_object_len(json_get(v, "n")), 0);
    assert_null(json_get(json_get(v, "n"), "x"));
    assert_null(json_get(NULL, "x"));
    assert_false(json_has(NULL, "x"));
    assert_int_equal(json_type(NULL), JSON_NULL);
    assert_null(json_free(NULL));
}

static void test_long_path_keys_are_not_found(_unused_ void **state)
{
    char path[600];
    _cleanup_json_ JsonValue *v = parse("{}");

    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_null(json_path(v, path));
    path[400] = '.';
    assert_null(json_path(v, path));
}

static void test_members_come_in_order(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v = parse("{\"z\":1,\"a\":null,\"m\":3}"), *array = parse("[1]");
    static const char *const keys[] = {"z", "a", "m"};
    JsonMember m = json_members(v), none = json_members(array), null = json_members(NULL);
    size_t n = 0;

    for (; json_next(&m); n++) {
        assert_string_equal(m.key, keys[n]);
        assert_int_equal(m.value == NULL, n == 1);
    }
    assert_int_equal(n, 3);
    assert_int_equal(json_object_len(v), 3);
    assert_false(json_next(&m));
    assert_false(json_next(&none));
    assert_false(json_next(&null));
}

static void test_too_large(_unused_ void **state)
{
    JsonValue *v = NULL;
    _cleanup_error_ Error *e = NULL;

    /* Refused by its length, before a byte is read. */
    assert_true(json_parse("", (size_t)JSON_TEXT_MAX + 1, 8, JSON_PARSE_DEFAULT, &v, &e) < 0);
    assert_int_equal(e->kind, ERROR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_text_needs_no_nul),
        cmocka_unit_test(test_refuses_what_is_not_rfc_8259),
        cmocka_unit_test(test_refuses_nul_bytes),
        cmocka_unit_test(test_errors_name_the_offset),
        cmocka_unit_test(test_non_ascii_text_passes),
        cmocka_unit_test(test_invalid_utf8_is_refused_everywhere),
        cmocka_unit_test(test_depth_is_exact),
        cmocka_unit_test(test_hostile_depth_is_refused_early),
        cmocka_unit_test(test_duplicate_keys),
        cmocka_unit_test(test_keys_with_nul_are_refused),
        cmocka_unit_test(test_strings_with_nul_keep_their_length),
        cmocka_unit_test(test_int64_limits),
        cmocka_unit_test(test_wide_integers_among_others),
        cmocka_unit_test(test_doubles_beyond_range_give_the_default),
        cmocka_unit_test(test_reads_by_path),
        cmocka_unit_test(test_wrong_types_give_the_default),
        cmocka_unit_test(test_long_path_keys_are_not_found),
        cmocka_unit_test(test_members_come_in_order),
        cmocka_unit_test(test_too_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
