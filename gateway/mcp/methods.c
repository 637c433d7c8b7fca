/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/mcp/methods.h"

#include "common/base/str.h"

/* How long a client may keep what does not change while this process lives. */
#define CACHE_TTL_MS 300000

struct McpServer {
    char *instructions;
    Buf tools[MCP_ERA_MAX]; /* results of tools/list */
    Buf discover;
};

typedef int (*MethodFn)(const McpServer *s, const McpMessage *m, Buf *out, McpFailure *failure);

typedef struct Method {
    const char *name;
    bool eras[MCP_ERA_MAX];
    MethodFn answer; /* NULL: tools/call */
} Method;

static void respond(Buf *out, const McpMessage *m, const Buf *result)
{
    mcp_write_response(out, m->id, buf_str(result), result->len);
}

static void write_capabilities(JsonWriter *w)
{
    jw_kv_raw(w, "capabilities", "{\"tools\":{}}");
}

static int answer_initialize(const McpServer *s, const McpMessage *m, Buf *out,
                             _unused_ McpFailure *failure)
{
    _cleanup_buf_ Buf result = BUF_INIT(MCP_REPLY_MAX);
    JsonWriter w = json_writer(&result);

    jw_object(&w);
    jw_kv_str(&w, "protocolVersion", mcp_version_negotiate(json_str(m->params, "protocolVersion")));
    write_capabilities(&w);
    jw_key(&w, "serverInfo");
    mcp_write_server_info(&w);
    jw_kv_str(&w, "instructions", s->instructions);
    jw_object_end(&w);
    respond(out, m, &result);
    return 0;
}

static int answer_ping(_unused_ const McpServer *s, const McpMessage *m, Buf *out,
                       _unused_ McpFailure *failure)
{
    mcp_write_response(out, m->id, "{}", 2);
    return 0;
}

static int answer_discover(const McpServer *s, const McpMessage *m, Buf *out,
                           _unused_ McpFailure *failure)
{
    respond(out, m, &s->discover);
    return 0;
}

static int answer_tools_list(const McpServer *s, const McpMessage *m, Buf *out, McpFailure *failure)
{
    if (json_has(m->params, "cursor") && json_get(m->params, "cursor"))
        return mcp_fail(failure, 200, MCP_INVALID_PARAMS,
                        "Invalid cursor: all tools are on one page");
    respond(out, m, &s->tools[m->era]);
    return 0;
}

static const Method methods[] = {
    {"initialize", {[MCP_ERA_LEGACY] = true}, answer_initialize},
    {"ping", {[MCP_ERA_LEGACY] = true}, answer_ping},
    {"server/discover", {[MCP_ERA_MODERN] = true}, answer_discover},
    {"tools/list", {true, true}, answer_tools_list},
    {"tools/call", {true, true}, NULL},
};

int mcp_dispatch(const McpServer *s, const McpMessage *m, Buf *out, McpVerdict *ret,
                 McpFailure *failure)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        if (!methods[i].eras[m->era] || !str_eq(m->method, methods[i].name))
            continue;
        *ret = methods[i].answer ? MCP_VERDICT_REPLY : MCP_VERDICT_TOOL_CALL;
        return methods[i].answer ? methods[i].answer(s, m, out, failure) : 0;
    }
    return mcp_fail(failure, m->era == MCP_ERA_MODERN ? 404 : 200, MCP_METHOD_NOT_FOUND,
                    "Method not found: %.128s", m->method);
}

static void write_cache_hints(JsonWriter *w)
{
    jw_kv_int(w, "ttlMs", CACHE_TTL_MS);
    jw_kv_str(w, "cacheScope", "public");
}

static void build_tools(McpServer *s, McpEra era, const char *tools)
{
    JsonWriter w = json_writer(&s->tools[era]);

    jw_object(&w);
    jw_kv_raw(&w, "tools", tools);
    if (era == MCP_ERA_MODERN)
        write_cache_hints(&w);
    mcp_write_result_members(&w, era);
    jw_object_end(&w);
}

static void build_discover(McpServer *s)
{
    JsonWriter w = json_writer(&s->discover);

    jw_object(&w);
    jw_key(&w, "supportedVersions");
    jw_array(&w);
    for (size_t i = 0; i < mcp_n_versions; i++)
        jw_str(&w, mcp_versions[i]);
    jw_array_end(&w);
    write_capabilities(&w);
    jw_kv_str(&w, "instructions", s->instructions);
    write_cache_hints(&w);
    mcp_write_result_members(&w, MCP_ERA_MODERN);
    jw_object_end(&w);
}

McpServer *mcp_server_new(const char *tools, const char *instructions)
{
    McpServer *s = xnew(McpServer);

    s->instructions = xstrdup(instructions);
    s->discover = BUF_INIT(MCP_REPLY_MAX);
    for (int era = 0; era < MCP_ERA_MAX; era++) {
        s->tools[era] = BUF_INIT(MCP_REPLY_MAX);
        build_tools(s, (McpEra)era, tools);
    }
    build_discover(s);
    return s;
}

McpServer *mcp_server_free(McpServer *s)
{
    if (!s)
        return NULL;
    for (int era = 0; era < MCP_ERA_MAX; era++)
        buf_done(&s->tools[era]);
    buf_done(&s->discover);
    free(s->instructions);
    free(s);
    return NULL;
}
