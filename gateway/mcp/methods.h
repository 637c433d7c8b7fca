/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of the protocol and what they answer, from a table. Everything that is the same for
 * every caller is built once, at start; answering then only puts the request's id in front. Only
 * tools/call is left to the caller. An McpServer is constant after its creation: thread-safe.
 */
#pragma once

#include "gateway/mcp/message.h"
#include "gateway/mcp/reply.h"

#define MCP_REPLY_MAX (1024 * 1024) /* ceiling for what this module writes */

typedef struct McpServer McpServer;

/* tools: JSON text of the array of tools. instructions: for the model, in a few sentences. */
McpServer *mcp_server_new(const char *tools, const char *instructions);
McpServer *mcp_server_free(McpServer *s);

typedef enum McpVerdict {
    MCP_VERDICT_REPLY,     /* the answer is in the buffer, HTTP 200 */
    MCP_VERDICT_TOOL_CALL, /* m is a tools/call */
} McpVerdict;

/* m has passed mcp_check_era(). A negative errno comes with *failure. */
int mcp_dispatch(const McpServer *s, const McpMessage *m, Buf *out, McpVerdict *ret,
                 McpFailure *failure);
