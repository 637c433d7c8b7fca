/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this server writes: results and errors of JSON-RPC in the dress of either era, notifications
 * of progress, and the framing of server-sent events. Everything appends to a buffer with the
 * caller's ceiling; check it once with buf_check(). Thread-safe.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/json/write.h"
#include "gateway/mcp/protocol.h"

#define MCP_SERVER_NAME "k8s-agent-sandbox"

/* {"jsonrpc":"2.0","id":ID,"result":RESULT} from JSON texts. */
void mcp_write_response(Buf *out, const char *id, const char *result, size_t result_len);
/* {"jsonrpc":"2.0","id":ID,"error":{…}}. Without an id: null in the legacy era, left out in the
 * modern one. */
void mcp_write_error(Buf *out, McpEra era, const char *id, const McpFailure *failure);

/* Members that every result of the modern era has; write them inside the result object. */
void mcp_write_result_members(JsonWriter *w, McpEra era);
/* The result of a tool: `structured` (JSON text of an object, NULL for none) as structuredContent
 * and as a text block; `text` where there is no structured content. */
void mcp_write_tool_result(Buf *out, McpEra era, const char *id, const Buf *structured,
                           const char *text);
/* An isError result with one text block. */
void mcp_write_tool_error(Buf *out, McpEra era, const char *id, const char *text);

/* notifications/progress; token is JSON text. total 0: left out. */
void mcp_write_progress(Buf *out, const char *token, int64_t progress, int64_t total,
                        const char *message);
/* One server-sent event around one line of JSON. */
void mcp_write_event(Buf *out, const Buf *json);
#define MCP_KEEPALIVE ": keepalive\n\n"

/* {"name":…,"title":…,"version":…} */
void mcp_write_server_info(JsonWriter *w);
