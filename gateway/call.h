/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a tool call, from parsed arguments to the answer:
 *
 *   authorising → running → answered
 *
 * A call belongs to the loop's thread from calls_submit() on; only it answers the HTTP request. It
 * answers as JSON, or, once it has taken CALL_SSE_AFTER_MS and the client can take it, as a stream
 * of server-sent events: a comment every CALL_KEEPALIVE_MS, progress every CALL_PROGRESS_MS where
 * the client gave a token, the answer last. When the client goes away the call is cancelled: what
 * it was doing is stopped, nothing is answered.
 */
#pragma once

#include "common/net/http_server.h"
#include "gateway/auth/authorizer.h"
#include "gateway/config.h"
#include "gateway/mcp/headers.h"
#include "gateway/mcp/reply.h"
#include "gateway/metrics.h"
#include "gateway/sandbox/activity.h"
#include "gateway/sandbox/lookup.h"
#include "gateway/tools/tool.h"
#include "gateway/transport/transport.h"

#define CALL_SSE_AFTER_MS 5000
#define CALL_KEEPALIVE_MS 15000
#define CALL_PROGRESS_MS 30000
#define CALL_REPLY_MAX HTTP_STREAM_MAX /* bytes of one answer */
#define CALLS_MAX 4096                 /* at a time; beyond: 503 */

/* What calls work with; outlives them. */
typedef struct CallServices {
    Loop *loop;
    KubeClient *kube;
    SandboxCache *cache;
    Lookups *lookups;
    Activity *activity;
    Transport *transport;
    Authorizer *authorizer;
    Metrics *metrics;
    const GatewayConfig *config;
} CallServices;

/* What a call begins with. Its parts are taken over by calls_submit(). */
typedef struct CallRequest {
    HttpServerRequest *http; /* deferred */
    Principal *principal;
    McpEra era;
    McpAccept accept;
    char *id;             /* JSON text */
    char *progress_token; /* JSON text, or NULL */
    const Tool *tool;
    ToolArgs *args;
} CallRequest;
void call_request_done(CallRequest *r);

typedef struct Calls Calls;
Calls *calls_new(const CallServices *services);
Calls *calls_free(Calls *c); /* none may be left */
/* Any thread. Negative where too many are under way: nothing was taken over then. */
int calls_submit(Calls *c, CallRequest *request);
size_t calls_pending(const Calls *c); /* any thread */
/* Loop thread. Ends all calls with an error that says that this gateway stops: first politely
 * (commands are killed, claims under creation deleted), then, now true, at once. */
void calls_stop(Calls *c, bool now);

/* --- for tools; loop thread --- */

const CallServices *call_services(const Call *c);
const ToolArgs *call_args(const Call *c);
const char *call_owner(const Call *c);
const Principal *call_principal(const Call *c);
/* The tool's own state; freed with the tool's state_free. */
void *call_state(const Call *c);
void call_set_state(Call *c, void *state);
/* What to do when the client goes away; it has to lead to call_fail() or call_succeed(), now or
 * later. Replaces the one before; NULL: nothing can be done, the call is answered when it is. */
void call_on_cancel(Call *c, void (*cancel)(Call *c));
bool call_is_cancelled(const Call *c);
/* For the audit line: the claim that was made, and where the call is run. */
void call_set_claim(Call *c, const char *claim);
void call_set_pod(Call *c, const char *pod);
/* What it was about besides its arguments, for the audit line: a word and a number. */
void call_set_outcome(Call *c, const char *outcome, int64_t number);

/* Counts the bytes that the call holds until it is answered against --max-transfer-bytes, beside
 * those of other calls and of answers that their callers have not taken yet; a second count
 * replaces the first. ERROR_EXHAUSTED where that is too much. */
int call_reserve_bytes(Call *c, size_t bytes, Error **error);

/* Each of these answers the call and frees it. */
void call_succeed(Call *c, const Buf *structured);
void call_succeed_text(Call *c, const char *text);
void call_fail(Call *c, const Error *error);
