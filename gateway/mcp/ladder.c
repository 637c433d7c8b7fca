/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/mcp/ladder.h"

#include "common/base/str.h"
#include "common/json/write.h"

#include <string.h>

/* Which member of params the Mcp-Name header repeats. */
static const struct {
    const char *method;
    const char *param;
} named_methods[] = {
    {"tools/call", "name"},
    {"prompts/get", "name"},
    {"resources/read", "uri"},
};

int mcp_check_media(const McpHeaders *headers, McpAccept *ret, McpFailure *failure)
{
    if (!mcp_content_type_is_json(headers->content_type))
        return mcp_fail(failure, 415, MCP_INVALID_REQUEST, "Content-Type must be application/json");
    *ret = mcp_accept_parse(headers->accept);
    if (!ret->json && !ret->sse)
        return mcp_fail(failure, 406, MCP_INVALID_REQUEST,
                        "Not Acceptable: accept application/json, text/event-stream or both");
    return 0;
}

McpEra mcp_era_of_headers(const McpHeaders *headers)
{
    return mcp_version_looks_modern(headers->protocol_version) ? MCP_ERA_MODERN : MCP_ERA_LEGACY;
}

#define SUPPORTED "(supported: 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05)"

static int missing_meta(const McpHeaders *headers, McpFailure *failure)
{
    const char *version = headers->protocol_version;
    bool unknown =
        version && !str_eq(version, MCP_VERSION_MODERN) && !mcp_version_is_legacy(version);

    return mcp_fail(failure, 400, MCP_INVALID_PARAMS,
                    "params._meta must hold \"" MCP_META_VERSION "\" (a string) and "
                    "\"" MCP_META_CAPABILITIES "\" (an object)%s",
                    unknown ? "; MCP-Protocol-Version is not supported either " SUPPORTED : "");
}

static int check_legacy(const McpHeaders *headers, const McpMessage *m, McpFailure *failure)
{
    const char *version = headers->protocol_version;

    if (str_eq(m->method, "server/discover") || mcp_version_looks_modern(version))
        return missing_meta(headers, failure);
    if (version && !mcp_version_is_legacy(version))
        return mcp_fail(failure, 400, MCP_INVALID_REQUEST,
                        "Bad Request: MCP-Protocol-Version is not supported " SUPPORTED);
    return 0;
}

/* {"supported":[…],"requested":"…"} */
static char *version_data(const char *requested)
{
    _cleanup_buf_ Buf out = BUF_INIT(4096);
    JsonWriter w = json_writer(&out);

    jw_object(&w);
    jw_key(&w, "supported");
    jw_array(&w);
    for (size_t i = 0; i < mcp_n_versions; i++)
        jw_str(&w, mcp_versions[i]);
    jw_array_end(&w);
    jw_key(&w, "requested");
    jw_strn(&w, requested, strnlen(requested, 64));
    jw_object_end(&w);
    return buf_take(&out, NULL);
}

static int check_version(const McpHeaders *headers, const char *claimed, McpFailure *failure)
{
    if (headers->protocol_version &&
        !mcp_header_matches(headers->protocol_version, claimed, strlen(claimed)))
        return mcp_fail(failure, 400, MCP_HEADER_MISMATCH,
                        "Header mismatch: MCP-Protocol-Version differs from params._meta");
    if (!str_eq(claimed, MCP_VERSION_MODERN)) {
        int r = mcp_fail(failure, 400, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version");
        failure->data = version_data(claimed);
        return r;
    }
    if (!headers->protocol_version)
        return mcp_fail(failure, 400, MCP_HEADER_MISMATCH,
                        "Header mismatch: MCP-Protocol-Version is missing");
    return 0;
}

static int check_name(const McpHeaders *headers, const McpMessage *m, const char *param,
                      McpFailure *failure)
{
    const JsonValue *value = json_get(m->params, param);

    if (!headers->name)
        return mcp_fail(failure, 400, MCP_HEADER_MISMATCH, "Header mismatch: Mcp-Name is missing");
    if (!mcp_header_matches(headers->name, json_value_str(value), json_str_len(value)))
        return mcp_fail(failure, 400, MCP_HEADER_MISMATCH,
                        "Header mismatch: Mcp-Name differs from params.%s", param);
    return 0;
}

static int check_routing(const McpHeaders *headers, const McpMessage *m, McpFailure *failure)
{
    if (!headers->method)
        return mcp_fail(failure, 400, MCP_HEADER_MISMATCH,
                        "Header mismatch: Mcp-Method is missing");
    if (!mcp_header_matches(headers->method, m->method, strlen(m->method)))
        return mcp_fail(failure, 400, MCP_HEADER_MISMATCH,
                        "Header mismatch: Mcp-Method differs from the body's method");
    for (size_t i = 0; i < ARRAY_SIZE(named_methods); i++)
        if (str_eq(m->method, named_methods[i].method))
            return check_name(headers, m, named_methods[i].param, failure);
    return 0;
}

static int check_modern(const McpHeaders *headers, const McpMessage *m, const JsonValue *meta,
                        McpFailure *failure)
{
    const char *claimed = json_value_str(json_get(meta, MCP_META_VERSION));
    int r;

    if (!claimed)
        return missing_meta(headers, failure);
    if ((r = check_version(headers, claimed, failure)) < 0)
        return r;
    if ((r = check_routing(headers, m, failure)) < 0)
        return r;
    if (json_type(json_get(meta, MCP_META_CAPABILITIES)) != JSON_OBJECT)
        return missing_meta(headers, failure);
    return 0;
}

int mcp_check_era(const McpHeaders *headers, McpMessage *m, McpFailure *failure)
{
    const JsonValue *meta = json_get(m->params, "_meta");

    if (json_has(meta, MCP_META_VERSION)) {
        m->era = MCP_ERA_MODERN;
        return check_modern(headers, m, meta, failure);
    }
    if (str_eq(m->method, "initialize")) {
        m->era = MCP_ERA_LEGACY;
        return 0;
    }
    m->era = mcp_era_of_headers(headers);
    return check_legacy(headers, m, failure);
}
