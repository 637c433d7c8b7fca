/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP headers that the protocol looks at, as pure functions over their text: media types,
 * Accept, routing values. Values come from outside and may be anything. Thread-safe.
 */
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>

/* NULL where absent. That none comes twice is the HTTP server's care. */
typedef struct McpHeaders {
    const char *content_type;
    const char *accept;
    const char *protocol_version; /* MCP-Protocol-Version */
    const char *method;           /* Mcp-Method */
    const char *name;             /* Mcp-Name */
} McpHeaders;

typedef struct McpAccept {
    bool json;
    bool sse;
} McpAccept;

/* True for application/json with any parameters. */
bool mcp_content_type_is_json(const char *content_type);
/* What the client can take. Absent or empty: both. Order does not matter, q=0 excludes. */
McpAccept mcp_accept_parse(const char *accept);
/* A routing header equals the value of the body: surrounding white space is ignored, a value
 * =?base64?…?= is decoded first, the comparison is exact. Values beyond 4096 bytes never match. */
bool mcp_header_matches(const char *header, const char *value, size_t value_len);
