/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/write.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/death.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static JsonValue *parse(const char *text)
{
    JsonValue *v = NULL;

    assert_int_equal(json_parse(text, strlen(text), JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &v, NULL),
                     0);
    return v;
}

static void test_commas_and_nesting(_unused_ void **state)
{
    _cleanup_buf_ Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    jw_object(&w);
    jw_kv_str(&w, "a", "x");
    jw_kv_int(&w, "b", INT64_MIN);
    jw_key(&w, "c");
    jw_array(&w);
    jw_int(&w, 1);
    jw_array(&w);
    jw_array_end(&w);
    jw_object(&w);
    jw_object_end(&w);
    jw_null(&w);
    jw_bool(&w, true);
    jw_array_end(&w);
    jw_kv_str_opt(&w, "left_out", NULL);
    jw_kv_str_opt(&w, "kept", "");
    jw_kv_str(&w, "null", NULL);
    jw_kv_bool(&w, "no", false);
    jw_kv_raw(&w, "raw", "[1,2]");
    jw_object_end(&w);
    assert_string_equal(buf_str(&out),
                        "{\"a\":\"x\",\"b\":-9223372036854775808,\"c\":[1,[],{},null,true],"
                        "\"kept\":\"\",\"null\":null,\"no\":false,\"raw\":[1,2]}");
    assert_int_equal(w.depth, 0);
}

static void test_escaping(_unused_ void **state)
{
    _cleanup_buf_ Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    jw_array(&w);
    jw_strn(&w, "\"\\/\b\f\n\r\t\0\x1f\x7f", 11);
    jw_str(&w, "K\xC3\xA4ufer \xF0\x9F\x98\x80");
    jw_array_end(&w);
    assert_string_equal(buf_str(&out), "[\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\","
                                       "\"K\xC3\xA4ufer \xF0\x9F\x98\x80\"]");
}

static void test_bad_utf8_becomes_replacement_characters(_unused_ void **state)
{
    _cleanup_buf_ Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    jw_str(&w, "a\xFF\xED\xA0\x80z\xC3");
    assert_string_equal(buf_str(&out), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz"
                                       "\xEF\xBF\xBD\"");
}

/* Each string of up to three bytes is written as text that parses, and back unless it is not UTF-8.
 */
static void test_all_short_strings_read_back(_unused_ void **state)
{
    for (unsigned bits = 0; bits < 1U << 24; bits += bits < 1U << 16 ? 1 : 9973) {
        const char s[] = {(char)bits, (char)(bits >> 8), (char)(bits >> 16)};
        _cleanup_buf_ Buf out = BUF_INIT(100);
        _cleanup_json_ JsonValue *v = NULL;

        assert_int_equal(json_write_string(&out, s, sizeof(s)), 0);
        assert_int_equal(json_parse(out.data, out.len, 1, JSON_PARSE_DEFAULT, &v, NULL), 0);
        if (strstr(buf_str(&out), "\xEF\xBF\xBD") == NULL) {
            assert_int_equal(json_str_len(v), sizeof(s));
            assert_memory_equal(json_value_str(v), s, sizeof(s));
        }
    }
}

static void test_doubles(_unused_ void **state)
{
    static const struct {
        double d;
        const char *text;
    } rows[] = {
        {0.1, "0.1"},
        {1.0, "1"},
        {-2.5, "-2.5"},
        {1e300, "1e+300"},
        {NAN, "null"},
        {INFINITY, "null"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {-INFINITY, "null"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ Buf out = BUF_INIT(100);
        JsonWriter w = json_writer(&out);

        jw_double(&w, rows[i].d);
        assert_string_equal(buf_str(&out), rows[i].text);
    }
}

static void test_print_keeps_text(_unused_ void **state)
{
    static const char *const texts[] = {
        "null",
        "[1,2.50,1e3,-0.0,\"a/b\",true,false,null,[],{}]",
        "{\"z\":{\"y\":1},\"a\":\"\\u0000\",\"\":\"K\xC3\xA4\"}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_json_ JsonValue *v = parse(texts[i]);
        _cleanup_buf_ Buf out = BUF_INIT(1000), again = BUF_INIT(1000);

        assert_int_equal(json_print(v, &out), 0);
        assert_string_equal(buf_str(&out), texts[i]);
        assert_int_equal(json_print(v, &again), 0);
        assert_string_equal(buf_str(&again), texts[i]);
    }
}

static void test_canonical_sorts_at_every_level(_unused_ void **state)
{
    _cleanup_json_ JsonValue *a = parse("{\"b\":[{\"y\":1,\"x\":2}],\"a\":1,\"B\":{},\"ab\":0}");
    _cleanup_json_ JsonValue *b = parse("{\"ab\":0,\"B\":{},\"a\":1,\"b\":[{\"x\":2,\"y\":1}]}");
    _cleanup_buf_ Buf x = BUF_INIT(1000), y = BUF_INIT(1000);

    assert_int_equal(json_print_canonical(a, &x), 0);
    assert_int_equal(json_print_canonical(b, &y), 0);
    assert_string_equal(buf_str(&x), "{\"B\":{},\"a\":1,\"ab\":0,\"b\":[{\"x\":2,\"y\":1}]}");
    assert_string_equal(buf_str(&x), buf_str(&y));
}

static void test_print_of_the_deepest_tree(_unused_ void **state)
{
    char text[2 * JSON_DEPTH_CRD + 1] = {0};
    _cleanup_json_ JsonValue *v = NULL;
    _cleanup_buf_ Buf out = BUF_INIT(1000);

    memset(text, '[', JSON_DEPTH_CRD);
    memset(text + JSON_DEPTH_CRD, ']', JSON_DEPTH_CRD);
    v = parse(text);
    assert_int_equal(json_print_canonical(v, &out), 0);
    assert_string_equal(buf_str(&out), text);
}

static void test_ceilings(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v = parse("{\"a\":[1,2,3],\"b\":\"xxxxxxxxxx\"}");
    _cleanup_buf_ Buf full = BUF_INIT(1000);

    assert_int_equal(json_print(v, &full), 0);
    for (size_t max = 0; max < full.len; max++) {
        _cleanup_buf_ Buf out = BUF_INIT(max), written = BUF_INIT(max);
        _cleanup_error_ Error *e = NULL;
        JsonWriter w = json_writer(&written);

        assert_int_equal(json_print(v, &out), -E2BIG);
        jw_value(&w, v);
        assert_true(buf_check(&written, "text", &e) < 0);
        assert_int_equal(e->kind, ERROR_TOO_LARGE);
        assert_true(written.cap <= max + 1);
    }
}

static void test_value_inside_a_writer(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v = parse("{\"a\":[1]}");
    _cleanup_buf_ Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    jw_array(&w);
    jw_value(&w, v);
    jw_value(&w, NULL);
    jw_raw(&w, "7", 1);
    jw_double(&w, 0.5);
    jw_array_end(&w);
    assert_string_equal(buf_str(&out), "[{\"a\":[1]},null,7,0.5]");
}

static void unbalanced(void)
{
    Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    jw_array_end(&w);
}

static void too_deep(void)
{
    Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    for (int i = 0; i <= JSON_WRITE_DEPTH; i++)
        jw_array(&w);
}

static void key_without_value(void)
{
    Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    jw_object(&w);
    jw_key(&w, "a");
    jw_object_end(&w);
}

static void test_misuse_violates_the_contract(_unused_ void **state)
{
    static void (*const cases[])(void) = {unbalanced, too_deep, key_without_value};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[4096];
        int status = run_in_child(cases[i], text, sizeof(text));

        assert_true(WIFSIGNALED(status));
        assert_non_null(strstr(text, "contract violated"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commas_and_nesting),
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_bad_utf8_becomes_replacement_characters),
        cmocka_unit_test(test_all_short_strings_read_back),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_print_keeps_text),
        cmocka_unit_test(test_canonical_sorts_at_every_level),
        cmocka_unit_test(test_print_of_the_deepest_tree),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_value_inside_a_writer),
        cmocka_unit_test(test_misuse_violates_the_contract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
