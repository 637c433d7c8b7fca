/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/mcp/message.h"

#include "common/base/str.h"

#include <string.h>

/* Strings and integers as JSON text, anything else NULL. */
static char *token_text(const JsonValue *v)
{
    _cleanup_buf_ Buf text = BUF_INIT(MCP_ID_MAX);

    if (json_type(v) != JSON_INT && json_type(v) != JSON_STRING)
        return NULL;
    if (json_print(v, &text) < 0)
        return NULL;
    return buf_take(&text, NULL);
}

static int parse_root(const char *text, size_t len, McpMessage *m, McpFailure *failure)
{
    _cleanup_error_ Error *error = NULL;

    if (json_parse(text, len, MCP_DEPTH_MAX, JSON_PARSE_UNIQUE, &m->root, &error) < 0)
        return mcp_fail(failure, 400, MCP_PARSE_ERROR, "Parse error: %s", error_message(error));
    if (json_type(m->root) == JSON_ARRAY)
        return mcp_fail(failure, 400, MCP_INVALID_REQUEST,
                        "Batches are not supported: send one message per request");
    if (json_type(m->root) != JSON_OBJECT)
        return mcp_fail(failure, 400, MCP_INVALID_REQUEST, "The body is not a JSON-RPC object");
    return 0;
}

static int parse_id(McpMessage *m, McpFailure *failure)
{
    bool answers = !json_has(m->root, "method") && json_has(m->root, "error");

    if (!json_has(m->root, "id") || (answers && !json_get(m->root, "id")))
        return 0;
    m->id = token_text(json_get(m->root, "id"));
    if (!m->id)
        return mcp_fail(failure, 400, MCP_INVALID_REQUEST,
                        "id must be a string or a 64-bit integer, of at most %d bytes", MCP_ID_MAX);
    return 0;
}

static int parse_method(McpMessage *m, McpFailure *failure)
{
    const JsonValue *method = json_get(m->root, "method");

    if (!json_has(m->root, "method")) {
        if (!json_has(m->root, "result") && !json_has(m->root, "error"))
            return mcp_fail(failure, 400, MCP_INVALID_REQUEST, "method is missing");
        m->kind = MCP_RESPONSE;
        return 0;
    }
    m->method = json_value_str(method);
    if (!m->method || json_str_len(method) != strlen(m->method))
        return mcp_fail(failure, 400, MCP_INVALID_REQUEST, "method must be a string");
    m->kind = json_has(m->root, "id") ? MCP_REQUEST : MCP_NOTIFICATION;
    return 0;
}

static int parse_params(McpMessage *m, McpFailure *failure)
{
    m->params = json_get(m->root, "params");
    if (m->params && json_type(m->params) != JSON_OBJECT) {
        m->params = NULL;
        return mcp_fail(failure, m->kind == MCP_REQUEST ? 200 : 400, MCP_INVALID_PARAMS,
                        "params must be an object");
    }
    m->progress_token = token_text(json_get(json_get(m->params, "_meta"), "progressToken"));
    return 0;
}

int mcp_message_parse(const char *text, size_t len, McpMessage *m, McpFailure *failure)
{
    int r;

    if ((r = parse_root(text, len, m, failure)) < 0)
        return r;
    if (!str_eq(json_str(m->root, "jsonrpc"), "2.0")) {
        m->id = token_text(json_get(m->root, "id"));
        return mcp_fail(failure, 400, MCP_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    }
    if ((r = parse_id(m, failure)) < 0)
        return r;
    if ((r = parse_method(m, failure)) < 0)
        return r;
    if (m->kind != MCP_REQUEST)
        return 0;
    return parse_params(m, failure);
}

void mcp_message_done(McpMessage *m)
{
    m->root = json_free(m->root);
    free(TAKE_PTR(m->id));
    free(TAKE_PTR(m->progress_token));
    m->method = NULL;
    m->params = NULL;
}
