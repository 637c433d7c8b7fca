/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the Model Context Protocol that are the same everywhere: revisions, the two eras on the
 * wire, error codes. The modern era (2026-07-28) has no handshake and carries its version in each
 * request; the legacy era opens with `initialize`. Neither needs state here. Pure, thread-safe.
 */
#pragma once

#include "common/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum McpEra { MCP_ERA_LEGACY, MCP_ERA_MODERN, MCP_ERA_MAX } McpEra;

#define MCP_VERSION_MODERN "2026-07-28"
#define MCP_VERSION_LEGACY_NEWEST "2025-11-25"
/* All supported revisions, newest first. */
extern const char *const mcp_versions[];
extern const size_t mcp_n_versions;
/* A revision that opens with `initialize`, exactly spelled. */
bool mcp_version_is_legacy(const char *version);
/* A date of the modern era, supported or not: "2026-07-28" and everything later. */
bool mcp_version_looks_modern(const char *version);
/* What `initialize` answers: the version asked for where it is legacy, else the newest legacy one.
 */
const char *mcp_version_negotiate(const char *asked);

#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_SERVER_INFO "io.modelcontextprotocol/serverInfo"

typedef enum McpCode {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_UNSUPPORTED_VERSION = -32022,
} McpCode;

/* A request that ends as a JSON-RPC error: the code, the HTTP status it travels with, a sentence
 * for people, and `data` as JSON text (or NULL). */
typedef struct McpFailure {
    McpCode code;
    int http_status;
    char *message;
    char *data;
} McpFailure;

/* Fills *ret (data stays NULL) and returns -EINVAL, so that `return mcp_fail(…)` reads well. */
int mcp_fail(McpFailure *ret, int http_status, McpCode code, const char *fmt, ...) _printf_(4, 5);
void mcp_failure_done(McpFailure *f);
#define _cleanup_mcp_failure_ _cleanup_(mcp_failure_done)
