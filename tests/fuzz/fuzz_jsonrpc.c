/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as the endpoint sees it: a line of headers (version, method, name, accept, content
 * type, authorization, host, origin, separated by tabs), then the body. Whatever comes, there is an
 * answer that is valid JSON and carries the request's id, or a call whose arguments passed their
 * table.
 */
#include "gateway/auth/authenticator.h"
#include "gateway/mcp/ladder.h"
#include "gateway/mcp/methods.h"
#include "gateway/mcp/origin.h"
#include "gateway/tools/advice.h"
#include "gateway/tools/tool.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define N_HEADERS 8

static void check_is_json(const Buf *out)
{
    _cleanup_json_ JsonValue *v = NULL;

    FUZZ_CHECK(!out->failed);
    FUZZ_CHECK(json_parse(buf_str(out), out->len, JSON_DEPTH_CRD, JSON_PARSE_UNIQUE, &v, NULL) ==
               0);
    FUZZ_CHECK(json_type(v) == JSON_OBJECT);
    FUZZ_CHECK(memchr(buf_str(out), '\n', out->len) == NULL);
}

static void check_failure(const McpMessage *m, const McpFailure *f)
{
    _cleanup_buf_ Buf out = BUF_INIT(MCP_REPLY_MAX);

    FUZZ_CHECK(f->message != NULL && f->http_status >= 200 && f->code < 0);
    mcp_write_error(&out, m->era, m->id, f);
    check_is_json(&out);
}

static void check_call(const McpMessage *m)
{
    static const ToolLimits limits = {.max_file_bytes = 1 << 20};
    const char *name = json_value_str(json_get(m->params, "name"));
    const Tool *tool = name ? tool_find(name) : NULL;
    const JsonValue *arguments = json_get(m->params, "arguments");
    _cleanup_buf_ Buf text = BUF_INIT(ADVICE_MAX), out = BUF_INIT(MCP_REPLY_MAX);
    _cleanup_error_ Error *error = NULL;
    ToolArgs *args = NULL;

    if (!tool)
        return;
    if (tool_parse_args(tool, arguments, &limits, &args, &error) == 0) {
        FUZZ_CHECK(args->ns != NULL);
        tool_args_free(tool, args);
        return;
    }
    FUZZ_CHECK(error != NULL);
    tool_write_advice(&text, tool, error);
    mcp_write_tool_error(&out, m->era, m->id, buf_str(&text));
    check_is_json(&out);
}

static void check_body(const McpHeaders *headers, const char *body, size_t len)
{
    static McpServer *server;
    _cleanup_mcp_message_ McpMessage m = {0};
    _cleanup_mcp_failure_ McpFailure f = {0};
    _cleanup_buf_ Buf out = BUF_INIT(MCP_REPLY_MAX);
    McpVerdict verdict = MCP_VERDICT_REPLY;

    if (!server)
        server = mcp_server_new("[]", "x");
    if (mcp_message_parse(body, len, &m, &f) < 0) {
        check_failure(&m, &f);
        return;
    }
    if (m.kind != MCP_REQUEST)
        return;
    FUZZ_CHECK(m.id != NULL && m.method != NULL);
    if (mcp_check_era(headers, &m, &f) < 0 || mcp_dispatch(server, &m, &out, &verdict, &f) < 0)
        check_failure(&m, &f);
    else if (verdict == MCP_VERDICT_TOOL_CALL)
        check_call(&m);
    else
        check_is_json(&out);
}

static void check_headers(char *fields[N_HEADERS])
{
    static const OriginRules rules = {.loopback = true};
    _cleanup_error_ Error *error = NULL;
    _cleanup_free_ char *token = bearer_token(fields[5], &error);
    McpAccept accept = mcp_accept_parse(fields[3]);

    FUZZ_CHECK((token == NULL) == (error != NULL));
    FUZZ_CHECK(accept.json == true || accept.json == false);
    (void)mcp_content_type_is_json(fields[4]);
    (void)mcp_host_allowed(&rules, fields[6]);
    (void)mcp_origin_allowed(&rules, fields[7]);
}

/* Cuts the line at its tabs; an empty field is an absent header. */
static void split_fields(char *line, char *fields[N_HEADERS])
{
    for (size_t i = 0; i < N_HEADERS && line; i++) {
        char *field = strsep(&line, "\t");

        fields[i] = *field ? field : NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = memchr(text, '\n', size);
    size_t line_len = end ? (size_t)(end - text) : 0;
    _cleanup_free_ char *line = xstrndup(text, line_len);
    char *fields[N_HEADERS] = {NULL};
    size_t skip = end ? line_len + 1 : 0;

    split_fields(line, fields);
    check_headers(fields);
    McpHeaders headers = {.protocol_version = fields[0], .method = fields[1], .name = fields[2]};
    check_body(&headers, text + skip, size - skip);
    return 0;
}
