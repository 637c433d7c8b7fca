/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "common/json/dispatch.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/death.h"

#include <string.h>

typedef struct Target {
    char *name;
    bool has_name;
    bool keep;
    int64_t seconds;
    bool has_seconds;
    char *language;
    JsonStringMap env;
    int64_t any;
    char *secret;
} Target;

static const JsonField fields[] = {
    {.name = "name",
     .type = JSON_FIELD_STRING,
     .flags = JSON_FIELD_REQUIRED,
     .offset = offsetof(Target, name),
     .present_offset = offsetof(Target, has_name),
     .min = 1,
     .max = 8,
     .help = "What it is called."},
    {.name = "keep",
     .type = JSON_FIELD_BOOL,
     .flags = JSON_FIELD_LAX,
     .offset = offsetof(Target, keep),
     .def = "true"},
    {.name = "seconds",
     .type = JSON_FIELD_INT,
     .flags = JSON_FIELD_NULLABLE | JSON_FIELD_LAX,
     .offset = offsetof(Target, seconds),
     .present_offset = offsetof(Target, has_seconds),
     .def = "60",
     .min = 1,
     .max = 600},
    {.name = "language",
     .type = JSON_FIELD_ENUM,
     .offset = offsetof(Target, language),
     .def = "\"python\"",
     .words = "python shell javascript"},
    {.name = "env",
     .type = JSON_FIELD_STRING_MAP,
     .flags = JSON_FIELD_LAX | JSON_FIELD_NULLABLE,
     .offset = offsetof(Target, env),
     .max = 5},
    {.name = "any", .type = JSON_FIELD_INT, .offset = offsetof(Target, any)},
    {.name = "secret",
     .type = JSON_FIELD_STRING,
     .flags = JSON_FIELD_HIDDEN,
     .offset = offsetof(Target, secret)},
};

static int dispatch(const char *text, Target *t, Error **error)
{
    _cleanup_json_ JsonValue *v = NULL;

    assert_int_equal(json_parse(text, strlen(text), 16, JSON_PARSE_UNIQUE, &v, NULL), 0);
    return json_dispatch(v, fields, ARRAY_SIZE(fields), t, error);
}

static void done(Target *t)
{
    json_dispatch_done(fields, ARRAY_SIZE(fields), t);
}

static void test_all_fields(_unused_ void **state)
{
    _cleanup_(done) Target t = {0};

    assert_int_equal(dispatch("{\"name\":\"box\",\"keep\":false,\"seconds\":600,"
                              "\"language\":\"shell\",\"env\":{\"A\":\"1\",\"B\":\"\"},"
                              "\"any\":-9223372036854775808,\"secret\":\"s\"}",
                              &t, NULL),
                     0);
    assert_string_equal(t.name, "box");
    assert_true(t.has_name);
    assert_false(t.keep);
    assert_true(t.seconds == 600 && t.has_seconds);
    assert_string_equal(t.language, "shell");
    assert_int_equal(t.env.len, 2);
    assert_string_equal(json_string_map_get(&t.env, "A"), "1");
    assert_string_equal(json_string_map_get(&t.env, "B"), "");
    assert_null(json_string_map_get(&t.env, "C"));
    assert_true(t.any == INT64_MIN);
    assert_string_equal(t.secret, "s");
}

static void test_defaults(_unused_ void **state)
{
    _cleanup_(done) Target t = {0};

    assert_int_equal(dispatch("{\"name\":\"x\",\"seconds\":null,\"env\":null}", &t, NULL), 0);
    assert_true(t.keep);
    assert_true(t.seconds == 60);
    assert_false(t.has_seconds);
    assert_string_equal(t.language, "python");
    assert_int_equal(t.env.len, 0);
    assert_true(t.any == 0);
    assert_null(t.secret);
}

static void test_lax_values(_unused_ void **state)
{
    static const struct {
        const char *seconds;
        const char *keep;
        int64_t expected_seconds;
        bool expected_keep;
    } rows[] = {
        {"\"10\"", "\"true\"", 10, true},
        {"10.0", "\"false\"", 10, false},
        {"1e2", "1", 100, true},
        {"\"600\"", "0", 600, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(done) Target t = {0};
        _cleanup_free_ char *text =
            xasprintf("{\"name\":\"x\",\"seconds\":%s,\"keep\":%s}", rows[i].seconds, rows[i].keep);

        assert_int_equal(dispatch(text, &t, NULL), 0);
        assert_true(t.seconds == rows[i].expected_seconds);
        assert_int_equal(t.keep, rows[i].expected_keep);
        assert_true(t.has_seconds);
    }
}

static void test_lax_map_values_become_text(_unused_ void **state)
{
    _cleanup_(done) Target t = {0};

    assert_int_equal(
        dispatch("{\"name\":\"x\",\"env\":{\"P\":8080,\"D\":true,\"F\":1.50}}", &t, NULL), 0);
    assert_string_equal(json_string_map_get(&t.env, "P"), "8080");
    assert_string_equal(json_string_map_get(&t.env, "D"), "true");
    assert_string_equal(json_string_map_get(&t.env, "F"), "1.50");
}

static const char *const refusals[][2] = {
    {"{}", "name is required"},
    {"{\"name\":null}", "name must be given or left out, not null"},
    {"{\"name\":5}", "name must be a string, not 5"},
    {"{\"name\":[\"x\"]}", "name must be a string, not an array"},
    {"{\"name\":\"\"}", "name must be a string of 1 to 8 bytes, not of 0"},
    {"{\"name\":\"123456789\"}", "name must be a string of 1 to 8 bytes, not of 9"},
    {"{\"name\":\"a\\u0000b\"}", "name must be a string without NUL"},
    {"{\"name\":\"x\",\"keep\":2}", "keep must be true or false, not 2"},
    {"{\"name\":\"x\",\"keep\":\"yes\"}", "keep must be true or false, not \"yes\""},
    {"{\"name\":\"x\",\"keep\":null}", "keep must be given or left out, not null"},
    {"{\"name\":\"x\",\"seconds\":0}", "seconds must be an integer from 1 to 600, not 0"},
    {"{\"name\":\"x\",\"seconds\":601}", "seconds must be an integer from 1 to 600, not 601"},
    {"{\"name\":\"x\",\"seconds\":1.5}", "seconds must be an integer from 1 to 600, not 1.5"},
    {"{\"name\":\"x\",\"seconds\":\"10s\"}",
     "seconds must be an integer from 1 to 600, not \"10s\""},
    {"{\"name\":\"x\",\"seconds\":\" 10\"}",
     "seconds must be an integer from 1 to 600, not \" 10\""},
    {"{\"name\":\"x\",\"seconds\":true}", "seconds must be an integer from 1 to 600, not true"},
    {"{\"name\":\"x\",\"seconds\":1e999}", "seconds must be an integer from 1 to 600, not 1e999"},
    {"{\"name\":\"x\",\"seconds\":18446744073709551616}",
     "seconds must be an integer from 1 to 600, not 18446744073709551616"},
    {"{\"name\":\"x\",\"any\":9223372036854775808}",
     "any must be an integer, not 9223372036854775808"},
    {"{\"name\":\"x\",\"any\":\"5\"}", "any must be an integer, not \"5\""},
    {"{\"name\":\"x\",\"any\":5.0}", "any must be an integer, not 5.0"},
    {"{\"name\":\"x\",\"language\":\"ruby\"}",
     "language must be one of: python shell javascript, not \"ruby\""},
    {"{\"name\":\"x\",\"language\":\"java\"}",
     "language must be one of: python shell javascript, not \"java\""},
    {"{\"name\":\"x\",\"language\":\"python shell\"}",
     "language must be one of: python shell javascript, not \"python shell\""},
    {"{\"name\":\"x\",\"language\":\"\"}",
     "language must be one of: python shell javascript, not \"\""},
    {"{\"name\":\"x\",\"language\":\"python\\u0000\"}",
     "language must be one of: python shell javascript, not \"python\\u0000\""},
    {"{\"name\":\"x\",\"env\":[]}", "env must be an object of strings, not an array"},
    {"{\"name\":\"x\",\"env\":{\"A\":null}}",
     "env: the value of key \"A\" must be a string, not null"},
    {"{\"name\":\"x\",\"env\":{\"A\":\"1\",\"B\":{}}}",
     "env: the value of key \"B\" must be a string, not an object"},
    {"{\"name\":\"x\",\"env\":{\"A\":\"1\",\"B\":\"123456\"}}",
     "env: the value of key \"B\" must be a string of at most 5 bytes, not 6"},
    {"{\"name\":\"x\",\"env\":{\"A\":1234567}}",
     "env: the value of key \"A\" must be a string of at most 5 bytes, not 7"},
    {"{\"name\":\"x\",\"env\":{\"\":\"1\"}}", "env must have keys of 1 to 512 bytes, not of 0"},
    {"{\"name\":\"x\",\"nope\":1}",
     "unknown field \"nope\"; known are: name, keep, seconds, language, env, any"},
    {"[]", "an object is needed"},
    {"\"name\"", "an object is needed"},
};

static void test_refusals_name_field_given_and_allowed(_unused_ void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        Target t = {0};
        _cleanup_error_ Error *e = NULL;

        if (dispatch(refusals[i][0], &t, &e) == 0)
            fail_msg("accepted: %s", refusals[i][0]);
        assert_int_equal(e->kind, ERROR_INVALID);
        assert_string_equal(e->message, refusals[i][1]);
        assert_null(t.name);
        assert_null(t.language);
        assert_null(t.env.keys);
    }
}

static void test_long_values_are_not_quoted(_unused_ void **state)
{
    Target t = {0};
    _cleanup_error_ Error *e = NULL;
    char text[400];

    memset(text, 'x', sizeof(text));
    memcpy(text, "{\"name\":\"x\",\"any\":\"", 19);
    memcpy(text + sizeof(text) - 3, "\"}", 3);
    assert_true(dispatch(text, &t, &e) < 0);
    assert_string_equal(e->message, "any must be an integer, not a string");
}

static void test_map_entries_have_a_ceiling(_unused_ void **state)
{
    for (int n = JSON_FIELD_MAP_ENTRIES; n <= JSON_FIELD_MAP_ENTRIES + 1; n++) {
        _cleanup_(done) Target t = {0};
        _cleanup_buf_ Buf text = BUF_INIT(1 << 16);

        (void)buf_append_str(&text, "{\"name\":\"x\",\"env\":{");
        for (int i = 0; i < n; i++)
            (void)buf_printf(&text, "%s\"k%d\":\"v\"", i > 0 ? "," : "", i);
        (void)buf_append_str(&text, "}}");
        assert_int_equal(dispatch(buf_str(&text), &t, NULL) == 0, n <= JSON_FIELD_MAP_ENTRIES);
        assert_int_equal(t.env.len, n <= JSON_FIELD_MAP_ENTRIES ? n : 0);
    }
}

static void test_strings_without_a_limit_have_the_default_one(_unused_ void **state)
{
    for (size_t len = JSON_FIELD_STRING_BYTES; len <= JSON_FIELD_STRING_BYTES + 1; len++) {
        _cleanup_(done) Target t = {0};
        _cleanup_free_ char *value = xcalloc(len + 1, 1), *text = NULL;

        memset(value, 'v', len);
        text = xasprintf("{\"name\":\"x\",\"secret\":\"%s\"}", value);
        assert_int_equal(dispatch(text, &t, NULL) == 0, len <= JSON_FIELD_STRING_BYTES);
    }
}

static void test_absent_object_is_empty(_unused_ void **state)
{
    static const JsonField optional[] = {
        {.name = "keep", .type = JSON_FIELD_BOOL, .offset = offsetof(Target, keep), .def = "true"},
    };
    Target t = {0};
    _cleanup_error_ Error *e = NULL;

    assert_int_equal(json_dispatch(NULL, optional, 1, &t, NULL), 0);
    assert_true(t.keep);
    assert_true(json_dispatch(NULL, fields, ARRAY_SIZE(fields), &t, &e) < 0);
    assert_string_equal(e->message, "name is required");
    assert_int_equal(json_dispatch(NULL, NULL, 0, &t, NULL), 0);
}

static void test_schema(_unused_ void **state)
{
    _cleanup_buf_ Buf out = BUF_INIT(10000);
    _cleanup_json_ JsonValue *v = NULL;
    JsonWriter w = json_writer(&out);

    json_dispatch_schema(&w, fields, ARRAY_SIZE(fields));
    assert_string_equal(
        buf_str(&out),
        "{\"type\":\"object\",\"properties\":{"
        "\"name\":{\"type\":\"string\",\"description\":\"What it is called.\",\"minLength\":1,"
        "\"maxLength\":8},"
        "\"keep\":{\"type\":\"boolean\",\"default\":true},"
        "\"seconds\":{\"type\":[\"integer\",\"null\"],\"minimum\":1,\"maximum\":600,"
        "\"default\":60},"
        "\"language\":{\"type\":\"string\",\"enum\":[\"python\",\"shell\",\"javascript\"],"
        "\"default\":\"python\"},"
        "\"env\":{\"type\":[\"object\",\"null\"],\"maxProperties\":128,"
        "\"additionalProperties\":{\"type\":\"string\",\"maxLength\":5}},"
        "\"any\":{\"type\":\"integer\"}},"
        "\"required\":[\"name\"],\"additionalProperties\":false}");
    assert_int_equal(json_parse(out.data, out.len, 16, JSON_PARSE_UNIQUE, &v, NULL), 0);
}

static void test_schema_without_fields(_unused_ void **state)
{
    _cleanup_buf_ Buf out = BUF_INIT(1000);
    JsonWriter w = json_writer(&out);

    json_dispatch_schema(&w, NULL, 0);
    assert_string_equal(buf_str(&out),
                        "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
}

static void broken_default(void)
{
    static const JsonField broken = {.name = "n", .type = JSON_FIELD_INT, .def = "\"x\""};
    int64_t n = 0;

    (void)json_dispatch(NULL, &broken, 1, &n, NULL);
}

static void test_broken_default_violates_the_contract(_unused_ void **state)
{
    char text[4096];
    int status = run_in_child(broken_default, text, sizeof(text));

    assert_true(WIFSIGNALED(status));
    assert_non_null(strstr(text, "contract violated"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_fields),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_lax_values),
        cmocka_unit_test(test_lax_map_values_become_text),
        cmocka_unit_test(test_refusals_name_field_given_and_allowed),
        cmocka_unit_test(test_long_values_are_not_quoted),
        cmocka_unit_test(test_map_entries_have_a_ceiling),
        cmocka_unit_test(test_strings_without_a_limit_have_the_default_one),
        cmocka_unit_test(test_absent_object_is_empty),
        cmocka_unit_test(test_schema),
        cmocka_unit_test(test_schema_without_fields),
        cmocka_unit_test(test_broken_default_violates_the_contract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
