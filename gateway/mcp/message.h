/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON-RPC message as it came in: the shape of JSON-RPC 2.0 as the Model Context Protocol
 * narrows it (one object; id a string or an integer, never null; params an object). Outside bytes;
 * fuzzed. A message owns a JSON tree, so it stays on the thread that parsed it; what has to go
 * elsewhere (id, progress token) is kept as text and can be taken out.
 */
#pragma once

#include "common/json/json.h"
#include "gateway/mcp/protocol.h"

#define MCP_DEPTH_MAX 64 /* nesting of a message */
#define MCP_ID_MAX 1024  /* bytes of an id or progress token as JSON text */

typedef enum McpMessageKind {
    MCP_REQUEST,
    MCP_NOTIFICATION, /* a method without an id */
    MCP_RESPONSE,     /* no method: an answer to something this server never asked */
    MCP_MESSAGE_KIND_MAX,
} McpMessageKind;

typedef struct McpMessage {
    JsonValue *root;
    McpMessageKind kind;
    McpEra era;           /* legacy until mcp_check_era() has looked */
    char *id;             /* JSON text; NULL while unknown */
    const char *method;   /* borrowed from root */
    JsonValue *params;    /* borrowed from root; an object, or NULL */
    char *progress_token; /* JSON text, or NULL */
} McpMessage;

/* Fills m, which the caller zeroed, as far as the message goes: on failure m->id is set where it
 * could be read. Returns 0, or -EINVAL with *failure. */
int mcp_message_parse(const char *text, size_t len, McpMessage *m, McpFailure *failure);
void mcp_message_done(McpMessage *m);
#define _cleanup_mcp_message_ _cleanup_(mcp_message_done)
