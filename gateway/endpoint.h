/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /mcp: from an HTTP request to an answer, or to a call. The checks go in the order that
 * clients rely on: Host and Origin, method, authentication, then the protocol's ladder. What needs
 * no waiting is answered on the server's thread; an unknown token and a tool call move to the loop.
 */
#pragma once

#include "gateway/auth/authenticator.h"
#include "gateway/call.h"
#include "gateway/mcp/methods.h"

typedef struct Endpoint Endpoint;

typedef struct EndpointOptions {
    const GatewayConfig *config;
    Authenticator *authenticator;
    Calls *calls;
    Metrics *metrics;
    Loop *loop;
} EndpointOptions;

/* Listens from now on. */
int endpoint_new(const EndpointOptions *options, Endpoint **ret, Error **error);
/* Ends all connections and the threads that serve them. Requests that were handed over must still
 * be answered; nobody reads that. Loop thread. */
void endpoint_stop(Endpoint *e);
Endpoint *endpoint_free(Endpoint *e);
HttpServer *endpoint_server(Endpoint *e);
