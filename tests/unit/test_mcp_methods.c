/* SPDX-License-Identifier: Apache-2.0 */
/* What each method answers in each era, and the framing of answers. */
#include "common/base/str.h"
#include "gateway/mcp/methods.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static int setup(void **state)
{
    *state = mcp_server_new("[{\"name\":\"t\"}]", "Read me.");
    return 0;
}

static int teardown(void **state)
{
    *state = mcp_server_free(*state);
    return 0;
}

/* Runs a request; returns the answer's tree, or NULL with the failure. */
static JsonValue *ask(const McpServer *s, McpEra era, const char *method, const char *params,
                      McpVerdict *verdict, McpFailure *f)
{
    _cleanup_free_ char *body = xasprintf(
        "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"%s\",\"params\":%s}", method, params);
    _cleanup_mcp_message_ McpMessage m = {0};
    _cleanup_buf_ Buf out = BUF_INIT(MCP_REPLY_MAX);
    JsonValue *answer = NULL;

    assert_int_equal(mcp_message_parse(body, strlen(body), &m, f), 0);
    m.era = era;
    if (mcp_dispatch(s, &m, &out, verdict, f) < 0 || *verdict == MCP_VERDICT_TOOL_CALL)
        return NULL;
    assert_int_equal(json_parse(buf_str(&out), out.len, 64, JSON_PARSE_UNIQUE, &answer, NULL), 0);
    assert_string_equal(json_str(answer, "jsonrpc"), "2.0");
    assert_string_equal(json_str(answer, "id"), "i");
    return answer;
}

static void test_which_era_knows_what(void **state)
{
    static const struct {
        const char *method;
        int codes[MCP_ERA_MAX];
        int statuses[MCP_ERA_MAX];
    } rows[] = {
        {"initialize", {0, -32601}, {0, 404}},
        {"ping", {0, -32601}, {0, 404}},
        {"server/discover", {-32601, 0}, {200, 0}},
        {"tools/list", {0, 0}, {0, 0}},
        {"tools/call", {0, 0}, {0, 0}},
        {"logging/setLevel", {-32601, -32601}, {200, 404}},
        {"resources/list", {-32601, -32601}, {200, 404}},
        {"resources/subscribe", {-32601, -32601}, {200, 404}},
        {"resources/unsubscribe", {-32601, -32601}, {200, 404}},
        {"subscriptions/listen", {-32601, -32601}, {200, 404}},
        {"prompts/list", {-32601, -32601}, {200, 404}},
        {"completion/complete", {-32601, -32601}, {200, 404}},
        {"nope", {-32601, -32601}, {200, 404}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (int era = 0; era < MCP_ERA_MAX; era++) {
            _cleanup_mcp_failure_ McpFailure f = {0};
            McpVerdict verdict = MCP_VERDICT_REPLY;
            _cleanup_json_ _unused_ JsonValue *answer =
                ask(*state, (McpEra)era, rows[i].method, "{}", &verdict, &f);

            if (f.code != rows[i].codes[era] || f.http_status != rows[i].statuses[era] ||
                (verdict == MCP_VERDICT_TOOL_CALL) != str_eq(rows[i].method, "tools/call"))
                fail_msg("%s era %d: code %d status %d", rows[i].method, era, f.code,
                         f.http_status);
        }
}

static void test_initialize(void **state)
{
    _cleanup_mcp_failure_ McpFailure f = {0};
    McpVerdict verdict;
    _cleanup_json_ JsonValue *answer = ask(*state, MCP_ERA_LEGACY, "initialize",
                                           "{\"protocolVersion\":\"2025-06-18\"}", &verdict, &f);

    assert_string_equal(json_str(answer, "result.protocolVersion"), "2025-06-18");
    assert_string_equal(json_str(answer, "result.instructions"), "Read me.");
    assert_string_equal(json_str(answer, "result.serverInfo.name"), MCP_SERVER_NAME);
    assert_int_equal(json_type(json_path(answer, "result.capabilities.tools")), JSON_OBJECT);
    assert_int_equal(json_object_len(json_path(answer, "result.capabilities")), 1);
    assert_int_equal(json_object_len(json_path(answer, "result.capabilities.tools")), 0);
    assert_false(json_has(json_get(answer, "result"), "resultType"));
}

static void test_ping_answers_an_object(void **state)
{
    _cleanup_mcp_failure_ McpFailure f = {0};
    McpVerdict verdict;
    _cleanup_json_ JsonValue *answer = ask(*state, MCP_ERA_LEGACY, "ping", "{}", &verdict, &f);

    assert_int_equal(json_type(json_get(answer, "result")), JSON_OBJECT);
}

static void test_modern_members(void **state)
{
    static const char *const methods[] = {"server/discover", "tools/list"};

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        _cleanup_mcp_failure_ McpFailure f = {0};
        McpVerdict verdict;
        _cleanup_json_ JsonValue *answer =
            ask(*state, MCP_ERA_MODERN, methods[i], "{}", &verdict, &f);
        const JsonValue *result = json_get(answer, "result");

        assert_string_equal(json_str(result, "resultType"), "complete");
        assert_string_equal(json_str(result, "cacheScope"), "public");
        assert_true(json_int(result, "ttlMs", -1) >= 0);
        assert_non_null(json_get(json_get(result, "_meta"), MCP_META_SERVER_INFO));
    }
}

static void test_discover(void **state)
{
    _cleanup_mcp_failure_ McpFailure f = {0};
    McpVerdict verdict;
    _cleanup_json_ JsonValue *answer =
        ask(*state, MCP_ERA_MODERN, "server/discover", "{}", &verdict, &f);
    const JsonValue *versions = json_path(answer, "result.supportedVersions");

    assert_int_equal(json_array_len(versions), 5);
    assert_string_equal(json_value_str(json_array_at(versions, 0)), "2026-07-28");
    assert_string_equal(json_str(answer, "result.instructions"), "Read me.");
}

static void test_cursor(void **state)
{
    static const struct {
        const char *params;
        int code;
    } rows[] = {
        {"{}", 0},
        {"{\"cursor\":null}", 0},
        {"{\"cursor\":\"\"}", -32602},
        {"{\"cursor\":\"x\"}", -32602},
        {"{\"cursor\":5}", -32602},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_mcp_failure_ McpFailure f = {0};
        McpVerdict verdict;
        _cleanup_json_ _unused_ JsonValue *answer =
            ask(*state, MCP_ERA_LEGACY, "tools/list", rows[i].params, &verdict, &f);

        assert_int_equal(f.code, rows[i].code);
    }
}

static void test_error_without_id(_unused_ void **state)
{
    _cleanup_mcp_failure_ McpFailure f = {0};
    _cleanup_buf_ Buf legacy = BUF_INIT(4096), modern = BUF_INIT(4096), with = BUF_INIT(4096);

    (void)mcp_fail(&f, 400, MCP_PARSE_ERROR, "no");
    mcp_write_error(&legacy, MCP_ERA_LEGACY, NULL, &f);
    mcp_write_error(&modern, MCP_ERA_MODERN, NULL, &f);
    mcp_write_error(&with, MCP_ERA_MODERN, "5", &f);
    assert_string_equal(
        buf_str(&legacy),
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}");
    assert_string_equal(buf_str(&modern),
                        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"no\"}}");
    assert_string_equal(
        buf_str(&with),
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32700,\"message\":\"no\"}}");
}

static void test_tool_results(_unused_ void **state)
{
    _cleanup_buf_ Buf structured = BUF_INIT(4096), ok = BUF_INIT(4096), text = BUF_INIT(4096),
                      error = BUF_INIT(4096);
    _cleanup_json_ JsonValue *v = NULL;

    (void)buf_append_str(&structured, "{\"exists\":true}");
    mcp_write_tool_result(&ok, MCP_ERA_MODERN, "7", &structured, NULL);
    assert_int_equal(json_parse(buf_str(&ok), ok.len, 64, JSON_PARSE_UNIQUE, &v, NULL), 0);
    assert_string_equal(json_str(json_array_at(json_path(v, "result.content"), 0), "text"),
                        "{\"exists\":true}");
    assert_true(json_bool(v, "result.structuredContent.exists", false));
    assert_string_equal(json_str(v, "result.resultType"), "complete");

    mcp_write_tool_result(&text, MCP_ERA_LEGACY, "7", NULL, "done \xff");
    assert_string_equal(buf_str(&text), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{"
                                        "\"type\":\"text\",\"text\":\"done \xEF\xBF\xBD\"}]}}");
    mcp_write_tool_error(&error, MCP_ERA_LEGACY, "\"a\"", "no\nway");
    assert_string_equal(buf_str(&error),
                        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"content\":[{\"type\":"
                        "\"text\",\"text\":\"no\\nway\"}],\"isError\":true}}");
}

static void test_progress_and_events(_unused_ void **state)
{
    _cleanup_buf_ Buf json = BUF_INIT(4096), event = BUF_INIT(4096);

    mcp_write_progress(&json, "\"t\"", 30, 0, "still here");
    assert_string_equal(buf_str(&json),
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                        "\"progressToken\":\"t\",\"progress\":30,\"message\":\"still here\"}}");
    mcp_write_event(&event, &json);
    assert_true(str_starts_with(buf_str(&event), "event: message\ndata: {"));
    assert_true(str_ends_with(buf_str(&event), "}\n\n"));
    assert_null(strchr(buf_str(&json), '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_era_knows_what),
        cmocka_unit_test(test_initialize),
        cmocka_unit_test(test_ping_answers_an_object),
        cmocka_unit_test(test_modern_members),
        cmocka_unit_test(test_discover),
        cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_error_without_id),
        cmocka_unit_test(test_tool_results),
        cmocka_unit_test(test_progress_and_events),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
