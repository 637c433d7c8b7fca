/* SPDX-License-Identifier: Apache-2.0 */
/* The tool table as clients see it: published names, schemas, sizes; and the check of arguments. */
#include "common/base/str.h"
#include "gateway/tools/args.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#define MODEL_BYTES_MAX 7000 /* names, descriptions and input schemas of all tools */
#define LIST_BYTES_MAX 10500 /* all of the array */

static const ToolLimits limits = {.max_file_bytes = 100};

static JsonValue *parse(const char *text)
{
    JsonValue *v = NULL;

    assert_int_equal(json_parse(text, strlen(text), 64, JSON_PARSE_UNIQUE, &v, NULL), 0);
    return v;
}

static JsonValue *list(size_t *ret_len)
{
    _cleanup_buf_ Buf out = BUF_INIT(1 << 20);

    tools_write_list(&out);
    *ret_len = out.len;
    return parse(buf_str(&out));
}

static void test_sizes(_unused_ void **state)
{
    static const char *const seen[] = {"name", "description", "inputSchema"};
    size_t len, model = 0;
    _cleanup_json_ JsonValue *v = list(&len);

    for (size_t i = 0; i < json_array_len(v); i++)
        for (size_t j = 0; j < ARRAY_SIZE(seen); j++) {
            _cleanup_buf_ Buf part = BUF_INIT(1 << 20);

            assert_int_equal(json_print(json_get(json_array_at(v, i), seen[j]), &part), 0);
            model += part.len + strlen(seen[j]) + 4;
        }
    assert_true(len <= LIST_BYTES_MAX);
    assert_true(model <= MODEL_BYTES_MAX);
}

/* What the published skill and its clients rely on. "name:type" of each argument in order, '!' for
 * required; then the result's required fields. */
static const struct {
    const char *name;
    const char *arguments;
    const char *results;
} published[] = {
    {"create_sandbox",
     "warmpool:string! namespace:string! sandbox_ready_timeout:integer labels:object "
     "shutdown_after_seconds:integer? pod_labels:object pod_annotations:object ",
     "sandbox_claim_name:string "},
    {"execute_command",
     "sandbox_claim_name:string! namespace:string! command:string! timeout:integer ",
     "exit_code:integer stdout:string stderr:string "},
    {"upload_file",
     "sandbox_claim_name:string! namespace:string! path:string! content:string! binary:boolean "
     "timeout:integer ",
     "bytes_written:integer "},
    {"download_file",
     "sandbox_claim_name:string! namespace:string! path:string! binary:boolean timeout:integer ",
     "content:string bytes_read:integer "},
    {"list_files",
     "sandbox_claim_name:string! namespace:string! path:string! timeout:integer "
     "max_entries:integer ",
     "entries:array total_entries:integer truncated:boolean "},
    {"file_exists", "sandbox_claim_name:string! namespace:string! path:string! timeout:integer ",
     "exists:boolean "},
    {"get_sandbox_status", "sandbox_claim_name:string! namespace:string! ",
     "status:string ready:boolean message:string "},
    {"delete_sandbox", "sandbox_claim_name:string! namespace:string! ", ""},
};

static bool has_word(const JsonValue *array, const char *word)
{
    for (size_t i = 0; i < json_array_len(array); i++)
        if (str_eq(json_value_str(json_array_at(array, i)), word))
            return true;
    return false;
}

static char *arguments_of(const JsonValue *schema)
{
    _cleanup_buf_ Buf out = BUF_INIT(4096);
    JsonMember m = json_members(json_get(schema, "properties"));

    while (json_next(&m)) {
        const JsonValue *type = json_get(m.value, "type");
        bool nullable = json_type(type) == JSON_ARRAY;

        (void)buf_printf(
            &out, "%s:%s%s%s ", m.key, json_value_str(nullable ? json_array_at(type, 0) : type),
            has_word(json_get(schema, "required"), m.key) ? "!" : "", nullable ? "?" : "");
        assert_non_null(json_str(m.value, "description"));
    }
    return buf_take(&out, NULL);
}

static char *results_of(const JsonValue *schema)
{
    _cleanup_buf_ Buf out = BUF_INIT(4096);
    const JsonValue *required = json_get(schema, "required");

    for (size_t i = 0; i < json_array_len(required); i++) {
        const char *name = json_value_str(json_array_at(required, i));
        (void)buf_printf(&out, "%s:%s ", name,
                         json_str(json_get(json_get(schema, "properties"), name), "type"));
    }
    return buf_take(&out, NULL);
}

static void test_published_schemas(_unused_ void **state)
{
    size_t len;
    _cleanup_json_ JsonValue *v = list(&len);

    assert_int_equal(json_array_len(v), ARRAY_SIZE(published));
    for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
        const JsonValue *tool = json_array_at(v, i);
        const JsonValue *input = json_get(tool, "inputSchema");
        _cleanup_free_ char *arguments = arguments_of(input);
        _cleanup_free_ char *results = results_of(json_get(tool, "outputSchema"));

        assert_string_equal(json_str(tool, "name"), published[i].name);
        assert_string_equal(arguments, published[i].arguments);
        assert_string_equal(results, published[i].results);
        assert_string_equal(json_str(input, "type"), "object");
        assert_true(json_has(input, "additionalProperties"));
        assert_int_equal(json_type(json_path(tool, "annotations.readOnlyHint")), JSON_BOOL);
    }
}

static void test_published_limits(_unused_ void **state)
{
    size_t len;
    _cleanup_json_ JsonValue *v = list(&len);
    const JsonValue *create = json_path(json_array_at(v, 0), "inputSchema.properties");
    const JsonValue *command = json_path(json_array_at(v, 1), "inputSchema.properties");
    const JsonValue *files = json_path(json_array_at(v, 4), "inputSchema.properties");

    assert_int_equal(json_int(create, "sandbox_ready_timeout.default", 0), 180);
    assert_int_equal(json_int(create, "shutdown_after_seconds.default", 0), 300);
    assert_int_equal(json_int(command, "timeout.default", 0), 60);
    assert_int_equal(json_int(command, "timeout.minimum", 0), 1);
    assert_int_equal(json_int(command, "timeout.maximum", 0), 600);
    assert_int_equal(json_int(files, "max_entries.default", 0), 1000);
    assert_int_equal(json_int(files, "max_entries.minimum", 0), 1);
    assert_int_equal(json_int(files, "max_entries.maximum", 0), 10000);
}

static void test_each_tool_is_whole(_unused_ void **state)
{
    for (size_t i = 0; i < n_tools; i++) {
        const Tool *t = tools[i];

        assert_ptr_equal(tool_find(t->name), t);
        assert_true(t->args_size >= sizeof(ToolArgs));
        assert_non_null(t->run);
        assert_non_null(t->verb);
        for (size_t j = 0; j < t->n_outputs; j++)
            assert_true(t->outputs[j].help || t->outputs[j].doc);
    }
    assert_null(tool_find("nope"));
    assert_null(tool_find(""));
}

/* Each word that a result field may have is explained in docs/tools.md. */
static void test_words_of_results_are_explained(_unused_ void **state)
{
    size_t len, words = 0;
    _cleanup_json_ JsonValue *v = list(&len);
    _cleanup_buf_ Buf page = BUF_INIT(1 << 20);

    tools_write_markdown(&page);
    for (size_t i = 0; i < json_array_len(v); i++) {
        JsonMember m = json_members(json_path(json_array_at(v, i), "outputSchema.properties"));
        while (json_next(&m)) {
            const JsonValue *all = json_get(m.value, "enum");
            for (size_t j = 0; j < json_array_len(all); j++, words++) {
                _cleanup_free_ char *row =
                    xasprintf("\n| `%s` | ", json_value_str(json_array_at(all, j)));
                if (!strstr(buf_str(&page), row))
                    fail_msg("not explained: %s", row);
            }
        }
    }
    assert_int_equal(words, 9);
}

/* --- arguments --- */

#define SANDBOX "\"sandbox_claim_name\":\"c\",\"namespace\":\"n\""

/* Parses; on failure returns NULL and checks that the message has `words`. */
static ToolArgs *args_of(const char *tool, const char *json, const char *words)
{
    _cleanup_json_ JsonValue *given = parse(json);
    _cleanup_error_ Error *error = NULL;
    ToolArgs *args = NULL;
    int r = tool_parse_args(tool_find(tool), given, &limits, &args, &error);

    if ((r == 0) != (words == NULL))
        fail_msg("%s %s: %s", tool, json, r == 0 ? "accepted" : error_message(error));
    if (words && !strstr(error->message, words))
        fail_msg("%s %s: \"%s\" lacks \"%s\"", tool, json, error->message, words);
    return args;
}

static void test_refused_arguments(_unused_ void **state)
{
    static const struct {
        const char *tool, *json, *words;
    } rows[] = {
        {"execute_command", "null", "sandbox_claim_name is required"},
        {"execute_command", "{" SANDBOX "}", "command is required"},
        {"execute_command", "{" SANDBOX ",\"command\":5}", "command must be a string"},
        {"execute_command", "{" SANDBOX ",\"command\":null}", "command"},
        {"execute_command", "{" SANDBOX ",\"command\":\"\"}",
         "command must be a string of 1 to 131071 bytes, not of 0"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\\u0000b\"}", "NUL"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"timeout\":0}", "timeout"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"timeout\":601}", "1 to 600"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"timeout\":1.5}", "timeout"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"timeout\":\"abc\"}", "timeout"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"timeout\":\"\"}", "timeout"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"timeout\":\"0x10\"}", "timeout"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"timeout\":[60]}", "timeout"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"extra\":1}", "extra"},
        {"execute_command", "{" SANDBOX ",\"command\":\"a\",\"idempotency_key\":\"k\"}",
         "idempotency_key"},
        {"file_exists", "{\"sandbox_claim_name\":\"../x\",\"namespace\":\"n\",\"path\":\"/\"}",
         "sandbox_claim_name must be"},
        {"file_exists", "{\"sandbox_claim_name\":\"c\",\"namespace\":\"x/y\",\"path\":\"/\"}",
         "namespace must be"},
        {"file_exists", "{\"sandbox_claim_name\":\"c\",\"namespace\":\"a.b?c#d\",\"path\":\"/\"}",
         "namespace must be"},
        {"file_exists", "{" SANDBOX ",\"path\":\"\"}", "path must not be empty"},
        {"list_files", "{" SANDBOX ",\"path\":\"/\",\"max_entries\":0}", "1 to 10000"},
        {"list_files", "{" SANDBOX ",\"path\":\"/\",\"max_entries\":10001}", "max_entries"},
        {"upload_file", "{" SANDBOX ",\"path\":\"/a\"}", "content is required"},
        {"upload_file", "{" SANDBOX ",\"path\":\"/a\",\"content\":\"!\",\"binary\":true}",
         "not base64"},
        {"upload_file", "{" SANDBOX ",\"path\":\"/a\",\"content\":\"YQ\",\"binary\":true}",
         "not base64"},
        {"upload_file", "{" SANDBOX ",\"path\":\"/a\",\"content\":\"YQ==\",\"binary\":\"maybe\"}",
         "binary"},
        {"create_sandbox", "{\"namespace\":\"n\"}", "warmpool is required"},
        {"create_sandbox", "{\"warmpool\":\"\",\"namespace\":\"n\"}", "warmpool must be"},
        {"create_sandbox", "{\"warmpool\":\"P\",\"namespace\":\"n\"}", "warmpool must be"},
        {"create_sandbox", "{\"warmpool\":\"p\",\"namespace\":\"n\",\"shutdown_after_seconds\":0}",
         "shutdown_after_seconds"},
        {"create_sandbox", "{\"warmpool\":\"p\",\"namespace\":\"n\",\"shutdown_after_seconds\":-1}",
         "shutdown_after_seconds"},
        {"create_sandbox",
         "{\"warmpool\":\"p\",\"namespace\":\"n\",\"shutdown_after_seconds\":1e18}",
         "shutdown_after_seconds"},
        {"create_sandbox",
         "{\"warmpool\":\"p\",\"namespace\":\"n\",\"shutdown_after_seconds\":9223372036854775807}",
         "shutdown_after_seconds"},
        {"create_sandbox", "{\"warmpool\":\"p\",\"namespace\":\"n\",\"sandbox_ready_timeout\":0}",
         "1 to 3600"},
        {"create_sandbox",
         "{\"warmpool\":\"p\",\"namespace\":\"n\",\"sandbox_ready_timeout\":100000}", "1 to 3600"},
        {"create_sandbox", "{\"warmpool\":\"p\",\"namespace\":\"n\",\"labels\":{\"a\":5}}",
         "labels: the value of key \"a\" must be a string, not 5"},
        {"create_sandbox", "{\"warmpool\":\"p\",\"namespace\":\"n\",\"labels\":{\"a b\":\"c\"}}",
         "labels"},
        {"create_sandbox", "{\"warmpool\":\"p\",\"namespace\":\"n\",\"labels\":{\"a\":\"b/c\"}}",
         "not a valid value"},
        {"create_sandbox",
         "{\"warmpool\":\"p\",\"namespace\":\"n\",\"labels\":{\"agents.x-k8s.io/"
         "claim-uid\":\"c\"}}",
         "reserved"},
        {"create_sandbox",
         "{\"warmpool\":\"p\",\"namespace\":\"n\",\"pod_labels\":{\"x.agents.x-k8s.io/a\":\"c\"}}",
         "reserved"},
        {"create_sandbox",
         "{\"warmpool\":\"p\",\"namespace\":\"n\",\"pod_annotations\":{\"k8s-agent-sandbox-mcp/"
         "owner\":\"c\"}}",
         "reserved"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_null(args_of(rows[i].tool, rows[i].json, rows[i].words));
}

static void test_defaults_and_lax_values(_unused_ void **state)
{
    const Tool *tool = tool_find("execute_command");
    static const struct {
        const char *json;
        int64_t timeout;
    } rows[] = {
        {"{" SANDBOX ",\"command\":\"a\"}", 60},
        {"{" SANDBOX ",\"command\":\"a\",\"timeout\":null}", 60},
        {"{" SANDBOX ",\"command\":\"a\",\"timeout\":\"10\"}", 10},
        {"{" SANDBOX ",\"command\":\"a\",\"timeout\":60.0}", 60},
        {"{" SANDBOX ",\"command\":\"a\",\"timeout\":6e1}", 60},
        {"{" SANDBOX ",\"command\":\"a\",\"timeout\":600}", 600},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        ToolArgs *args = args_of("execute_command", rows[i].json, NULL);

        assert_int_equal(args->timeout_s, rows[i].timeout);
        assert_string_equal(args->ns, "n");
        assert_string_equal(args->claim, "c");
        tool_args_free(tool, args);
    }
}

static void test_shutdown(_unused_ void **state)
{
    static const struct {
        const char *value;
        int64_t seconds;
        bool never;
    } rows[] = {
        {"", 300, false},
        {",\"shutdown_after_seconds\":null", 300, true},
        {",\"shutdown_after_seconds\":\"60\"", 60, false},
        {",\"shutdown_after_seconds\":86400", 86400, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *json =
            xasprintf("{\"warmpool\":\"p\",\"namespace\":\"n\"%s}", rows[i].value);
        CreateArgs *args = (CreateArgs *)args_of("create_sandbox", json, NULL);

        assert_int_equal(args->shutdown_never, rows[i].never);
        assert_true(args->shutdown_never || args->shutdown_after_s == rows[i].seconds);
        assert_int_equal(args->ready_timeout_s, 180);
        tool_args_free(tool_find("create_sandbox"), &args->base);
    }
}

static void test_session_label_is_accepted_and_overwritten_later(_unused_ void **state)
{
    ToolArgs *args = args_of("create_sandbox",
                             "{\"warmpool\":\"p\",\"namespace\":\"n\",\"labels\":{\"mcp.k8s-agent-"
                             "sandbox/session-id\":\"x\",\"team\":\"a\"}}",
                             NULL);

    tool_args_free(tool_find("create_sandbox"), args);
}

static void test_upload_content(_unused_ void **state)
{
    static const struct {
        const char *more;
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\"content\":\"a\\u0000b\"", "a\0b", 3},
        {"\"content\":\"\"", "", 0},
        {"\"content\":\"YWI=\",\"binary\":false", "YWI=", 4},
        {"\"content\":\"YWI=\",\"binary\":\"false\"", "YWI=", 4},
        {"\"content\":\"YWI=\",\"binary\":true", "ab", 2},
        {"\"content\":\" Y\\r\\nW\\tI=\\n\",\"binary\":\"true\"", "ab", 2},
        {"\"content\":\"\",\"binary\":1", "", 0},
        {"\"content\":\"AP8=\",\"binary\":true", "\0\xff", 2},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *json = xasprintf("{" SANDBOX ",\"path\":\"/a\",%s}", rows[i].more);
        FileArgs *args = (FileArgs *)args_of("upload_file", json, NULL);

        assert_int_equal(args->content.len, rows[i].len);
        assert_memory_equal(args->content.data, rows[i].bytes, rows[i].len);
        tool_args_free(tool_find("upload_file"), &args->base);
    }
}

static void test_upload_limit_counts_decoded_bytes(_unused_ void **state)
{
    char text[101 + 1], encoded[136 + 1];
    _cleanup_buf_ Buf out = BUF_INIT(1000);

    memset(text, 'a', 101);
    text[101] = '\0';
    _cleanup_free_ char *long_text =
        xasprintf("{" SANDBOX ",\"path\":\"/a\",\"content\":\"%s\"}", text);
    assert_null(args_of("upload_file", long_text, "at most 100"));
    assert_int_equal(str_base64_encode(&out, text, 100), 0);
    (void)snprintf(encoded, sizeof(encoded), "%s", buf_str(&out));
    _cleanup_free_ char *fits =
        xasprintf("{" SANDBOX ",\"path\":\"/a\",\"content\":\"%s\",\"binary\":true}", encoded);
    tool_args_free(tool_find("upload_file"), args_of("upload_file", fits, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_published_schemas),
        cmocka_unit_test(test_published_limits),
        cmocka_unit_test(test_each_tool_is_whole),
        cmocka_unit_test(test_words_of_results_are_explained),
        cmocka_unit_test(test_refused_arguments),
        cmocka_unit_test(test_defaults_and_lax_values),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_session_label_is_accepted_and_overwritten_later),
        cmocka_unit_test(test_upload_content),
        cmocka_unit_test(test_upload_limit_counts_decoded_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
