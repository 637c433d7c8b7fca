/* SPDX-License-Identifier: Apache-2.0 */
/* The validation ladder, a row a case, over all revisions of both eras. */
#include "common/base/str.h"
#include "gateway/mcp/ladder.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

#define META(version, more)                                                                        \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" version more "}"
#define CAPABILITIES ",\"io.modelcontextprotocol/clientCapabilities\":{}"
#define MODERN META("\"2026-07-28\"", CAPABILITIES)
#define CALL(params)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{" params "}}"
#define LIST(params)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{" params "}}"
#define INIT "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}"
#define VERSION "2026-07-28"

typedef struct Row {
    const char *what;
    const char *body;
    const char *version, *method, *name; /* headers */
    int status;                          /* 0: passes */
    int code;
    McpEra era;
} Row;

static const Row rows[] = {
    /* legacy */
    {"no header at all", LIST(""), NULL, NULL, NULL, 0, 0, MCP_ERA_LEGACY},
    {"2025-11-25", LIST(""), "2025-11-25", NULL, NULL, 0, 0, MCP_ERA_LEGACY},
    {"2025-06-18", LIST(""), "2025-06-18", NULL, NULL, 0, 0, MCP_ERA_LEGACY},
    {"2025-03-26", LIST(""), "2025-03-26", NULL, NULL, 0, 0, MCP_ERA_LEGACY},
    {"2024-11-05", LIST(""), "2024-11-05", NULL, NULL, 0, 0, MCP_ERA_LEGACY},
    {"routing headers do not matter", LIST(""), NULL, "tools/call", "x", 0, 0, MCP_ERA_LEGACY},
    {"garbage version", LIST(""), "garbage", NULL, NULL, 400, -32600, MCP_ERA_LEGACY},
    {"unknown old version", LIST(""), "2025-01-01", NULL, NULL, 400, -32600, MCP_ERA_LEGACY},
    {"initialize with a garbage header", INIT, "garbage", NULL, NULL, 0, 0, MCP_ERA_LEGACY},
    {"initialize with a modern header", INIT, VERSION, "initialize", NULL, 0, 0, MCP_ERA_LEGACY},
    {"modern header, no _meta", LIST(""), VERSION, "tools/list", NULL, 400, -32602, MCP_ERA_MODERN},
    {"future header, no _meta", LIST(""), "2027-01-01", NULL, NULL, 400, -32602, MCP_ERA_MODERN},
    {"discover without _meta", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}",
     NULL, NULL, NULL, 400, -32602, MCP_ERA_LEGACY},
    /* modern */
    {"complete list", LIST(MODERN), VERSION, "tools/list", NULL, 0, 0, MCP_ERA_MODERN},
    {"complete call", CALL("\"name\":\"x\"," MODERN), VERSION, "tools/call", "x", 0, 0,
     MCP_ERA_MODERN},
    {"white space around", CALL("\"name\":\"x\"," MODERN), VERSION, " tools/call\t", "  x ", 0, 0,
     MCP_ERA_MODERN},
    {"base64 name", CALL("\"name\":\"x\"," MODERN), VERSION, "tools/call", "=?base64?eA==?=", 0, 0,
     MCP_ERA_MODERN},
    {"header and body differ", LIST(MODERN), "2025-11-25", "tools/list", NULL, 400, -32020,
     MCP_ERA_MODERN},
    {"differ before unsupported", LIST(META("\"2027-01-01\"", CAPABILITIES)), VERSION, "tools/list",
     NULL, 400, -32020, MCP_ERA_MODERN},
    {"unsupported version", LIST(META("\"2027-01-01\"", CAPABILITIES)), "2027-01-01", "tools/list",
     NULL, 400, -32022, MCP_ERA_MODERN},
    {"unsupported before missing", LIST(META("\"1\"", CAPABILITIES)), NULL, NULL, NULL, 400, -32022,
     MCP_ERA_MODERN},
    {"version is no string", LIST(META("5", CAPABILITIES)), VERSION, "tools/list", NULL, 400,
     -32602, MCP_ERA_MODERN},
    {"version header missing", LIST(MODERN), NULL, "tools/list", NULL, 400, -32020, MCP_ERA_MODERN},
    {"method header missing", LIST(MODERN), VERSION, NULL, NULL, 400, -32020, MCP_ERA_MODERN},
    {"method header differs", LIST(MODERN), VERSION, "tools/call", NULL, 400, -32020,
     MCP_ERA_MODERN},
    {"method header in capitals", LIST(MODERN), VERSION, "TOOLS/LIST", NULL, 400, -32020,
     MCP_ERA_MODERN},
    {"name header missing", CALL("\"name\":\"x\"," MODERN), VERSION, "tools/call", NULL, 400,
     -32020, MCP_ERA_MODERN},
    {"name header differs", CALL("\"name\":\"x\"," MODERN), VERSION, "tools/call", "X", 400, -32020,
     MCP_ERA_MODERN},
    {"name header, no name", CALL(MODERN), VERSION, "tools/call", "x", 400, -32020, MCP_ERA_MODERN},
    {"base64 name that is none", CALL("\"name\":\"x\"," MODERN), VERSION, "tools/call",
     "=?base64?!?=", 400, -32020, MCP_ERA_MODERN},
    {"capabilities missing", LIST(META("\"2026-07-28\"", "")), VERSION, "tools/list", NULL, 400,
     -32602, MCP_ERA_MODERN},
    {"capabilities no object",
     LIST(META("\"2026-07-28\"", ",\"io.modelcontextprotocol/clientCapabilities\":[]")), VERSION,
     "tools/list", NULL, 400, -32602, MCP_ERA_MODERN},
};

static void test_rows(_unused_ void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const Row *row = &rows[i];
        _cleanup_mcp_message_ McpMessage m = {0};
        _cleanup_mcp_failure_ McpFailure f = {0};
        McpHeaders headers = {
            .protocol_version = row->version, .method = row->method, .name = row->name};

        assert_int_equal(mcp_message_parse(row->body, strlen(row->body), &m, &f), 0);
        int r = mcp_check_era(&headers, &m, &f);
        if ((r < 0) != (row->status != 0) || f.http_status != row->status || f.code != row->code ||
            m.era != row->era)
            fail_msg("%s: r %d status %d code %d era %d: %s", row->what, r, f.http_status, f.code,
                     m.era, f.message ? f.message : "-");
        assert_non_null(m.id);
    }
}

static void test_unsupported_names_versions(_unused_ void **state)
{
    static const char body[] = LIST(META("\"2099-01-01\"", CAPABILITIES));
    _cleanup_mcp_message_ McpMessage m = {0};
    _cleanup_mcp_failure_ McpFailure f = {0};
    McpHeaders headers = {.protocol_version = "2099-01-01", .method = "tools/list"};

    assert_int_equal(mcp_message_parse(body, strlen(body), &m, &f), 0);
    assert_true(mcp_check_era(&headers, &m, &f) < 0);
    assert_string_equal(f.data, "{\"supported\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\","
                                "\"2025-03-26\",\"2024-11-05\"],\"requested\":\"2099-01-01\"}");
}

static void test_media(_unused_ void **state)
{
    static const struct {
        const char *type, *accept;
        int status;
        bool json, sse;
    } cases[] = {
        {"application/json", "application/json, text/event-stream", 0, true, true},
        {"application/json; charset=utf-8", NULL, 0, true, true},
        {"Application/JSON", "", 0, true, true},
        {"application/json", "*/*", 0, true, true},
        {"application/json", "text/event-stream;q=0.5 , Application/Json", 0, true, true},
        {"application/json", "application/*", 0, true, false},
        {"application/json", "text/event-stream", 0, false, true},
        {"application/json", "application/json", 0, true, false},
        {"application/json", "application/json, text/event-stream;q=0", 0, true, false},
        {"application/json", "*/*;q=0.0, text/event-stream", 0, false, true},
        {"application/json", "text/html", 406, false, false},
        {"application/json", "application/json;q=0.000", 406, false, false},
        {"application/jsonx", NULL, 415, false, false},
        {"text/plain", NULL, 415, false, false},
        {NULL, NULL, 415, false, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_mcp_failure_ McpFailure f = {0};
        McpHeaders headers = {.content_type = cases[i].type, .accept = cases[i].accept};
        McpAccept accept = {0};

        (void)mcp_check_media(&headers, &accept, &f);
        if (f.http_status != cases[i].status || accept.json != cases[i].json ||
            accept.sse != cases[i].sse)
            fail_msg("case %zu: status %d json %d sse %d", i, f.http_status, accept.json,
                     accept.sse);
    }
}

static void test_versions(_unused_ void **state)
{
    assert_string_equal(mcp_version_negotiate("2025-03-26"), "2025-03-26");
    assert_string_equal(mcp_version_negotiate("2024-11-05"), "2024-11-05");
    assert_string_equal(mcp_version_negotiate("2026-07-28"), "2025-11-25");
    assert_string_equal(mcp_version_negotiate("2099-01-01"), "2025-11-25");
    assert_string_equal(mcp_version_negotiate(NULL), "2025-11-25");
    assert_true(mcp_version_looks_modern("2026-07-28"));
    assert_true(mcp_version_looks_modern("2026-10-01"));
    assert_false(mcp_version_looks_modern("2026-07-27"));
    assert_false(mcp_version_looks_modern("2026-07-28 "));
    assert_false(mcp_version_looks_modern("zzzz-zz-zz"));
    assert_false(mcp_version_looks_modern(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_unsupported_names_versions),
        cmocka_unit_test(test_media),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
