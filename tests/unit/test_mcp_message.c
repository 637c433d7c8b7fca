/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/mcp/message.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

typedef struct Row {
    const char *body;
    int status, code; /* 0: accepted */
    McpMessageKind kind;
    const char *id; /* JSON text, NULL: none */
} Row;

static const Row rows[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0, 0, MCP_REQUEST, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\\u00e9\",\"method\":\"ping\"}", 0, 0, MCP_REQUEST,
     "\"a\\\"b\xc3\xa9\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"ping\"}", 0, 0, MCP_REQUEST,
     "-9223372036854775808"},
    {" {\"id\":0,\"method\":\"x\",\"jsonrpc\":\"2.0\",\"params\":null} ", 0, 0, MCP_REQUEST, "0"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", 0, 0, MCP_NOTIFICATION, NULL},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[1]}", 0, 0, MCP_NOTIFICATION, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0, 0, MCP_RESPONSE, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", 0, 0, MCP_RESPONSE, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", 0, 0, MCP_RESPONSE, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", 400, -32600, 0, NULL},
    {"", 400, -32700, 0, NULL},
    {"{", 400, -32700, 0, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x", 400, -32700, 0, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", 400, -32700, 0, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\"}", 400, -32700, 0, NULL},
    {"[]", 400, -32600, 0, NULL},
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", 400, -32600, 0, NULL},
    {"null", 400, -32600, 0, NULL},
    {"\"x\"", 400, -32600, 0, NULL},
    {"{}", 400, -32600, 0, NULL},
    {"{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}", 400, -32600, 0, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", 400, -32600, 0, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", 400, -32600, 0, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":18446744073709551616,\"method\":\"ping\"}", 400, -32600, 0, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", 400, -32600, 0, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", 400, -32600, 0, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\\u0000ng\"}", 400, -32600, 0, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", 400, -32600, 0, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}", 200, -32602, 0, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":5}", 200, -32602, 0, "1"},
};

static void test_rows(_unused_ void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const Row *row = &rows[i];
        _cleanup_mcp_message_ McpMessage m = {0};
        _cleanup_mcp_failure_ McpFailure f = {0};
        int r = mcp_message_parse(row->body, strlen(row->body), &m, &f);

        if ((r < 0) != (row->status != 0) || f.http_status != row->status || f.code != row->code ||
            (r == 0 && m.kind != row->kind) || !str_eq(m.id, row->id))
            fail_msg("%s: r %d status %d code %d kind %d id %s", row->body, r, f.http_status,
                     f.code, m.kind, m.id ? m.id : "-");
    }
}

static void test_progress_token(_unused_ void **state)
{
    static const char *const bodies[][2] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\":"
         "\"t\"}}}",
         "\"t\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\":"
         "12}}}",
         "12"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\":"
         "{}}}}",
         NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        _cleanup_mcp_message_ McpMessage m = {0};
        _cleanup_mcp_failure_ McpFailure f = {0};

        assert_int_equal(mcp_message_parse(bodies[i][0], strlen(bodies[i][0]), &m, &f), 0);
        assert_true(str_eq(m.progress_token, bodies[i][1]));
    }
}

static void test_deep_nesting_is_refused(_unused_ void **state)
{
    _cleanup_buf_ Buf body = BUF_INIT(1 << 20);
    _cleanup_mcp_message_ McpMessage m = {0};
    _cleanup_mcp_failure_ McpFailure f = {0};

    for (int i = 0; i < 100000; i++)
        assert_int_equal(buf_append_char(&body, '['), 0);
    assert_true(mcp_message_parse(buf_str(&body), body.len, &m, &f) < 0);
    assert_int_equal(f.code, MCP_PARSE_ERROR);
}

static void test_long_id_is_refused(_unused_ void **state)
{
    _cleanup_buf_ Buf body = BUF_INIT(1 << 20);
    _cleanup_mcp_message_ McpMessage m = {0};
    _cleanup_mcp_failure_ McpFailure f = {0};

    (void)buf_append_str(&body, "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":\"");
    for (int i = 0; i < MCP_ID_MAX; i++)
        (void)buf_append_char(&body, 'a');
    (void)buf_append_str(&body, "\"}");
    assert_true(mcp_message_parse(buf_str(&body), body.len, &m, &f) < 0);
    assert_int_equal(f.code, MCP_INVALID_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_progress_token),
        cmocka_unit_test(test_deep_nesting_is_refused),
        cmocka_unit_test(test_long_id_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
