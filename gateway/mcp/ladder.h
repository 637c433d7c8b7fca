/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks a message passes before anything is done for it, in the order that clients rely on to
 * tell the eras apart: media types, era, version, routing headers, client capabilities. Host,
 * Origin, method, path and authentication come before it (endpoint), methods and arguments after
 * it. Pure, thread-safe.
 */
#pragma once

#include "gateway/mcp/headers.h"
#include "gateway/mcp/message.h"

/* Content-Type (415) and Accept (406). *ret is what the answer may be. */
int mcp_check_media(const McpHeaders *headers, McpAccept *ret, McpFailure *failure);
/* Decides m->era for a request and checks what that era asks of headers and _meta. */
int mcp_check_era(const McpHeaders *headers, McpMessage *m, McpFailure *failure);
/* The era that the headers alone claim: for answers to bodies that cannot be read. */
McpEra mcp_era_of_headers(const McpHeaders *headers);
