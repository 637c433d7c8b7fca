/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/endpoint.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "gateway/audit.h"
#include "gateway/mcp/ladder.h"
#include "gateway/mcp/origin.h"
#include "gateway/tools/advice.h"

#include <stdio.h>

/* JSON escapes and base64 make a file larger on its way. */
#define BODY_SLACK (64 * 1024)
#define INSTRUCTIONS                                                                               \
    "Sandboxes to run code in. Call create_sandbox once, keep sandbox_claim_name and namespace "   \
    "for all other tools, use the sandbox as often as needed, call delete_sandbox at the end, "    \
    "also after failures. Errors say what to do next."

struct Endpoint {
    EndpointOptions options;
    OriginRules origins;
    ToolLimits limits;
    McpServer *server;
    HttpServer *http;
};

/* One thing that arrives on /mcp, on whichever thread owns the request. */
typedef struct Arrival {
    Endpoint *endpoint;
    HttpServerRequest *request;
    Principal *principal;
    bool deferred;
} Arrival;

/* --- answers --- */

static void reply_json(HttpServerRequest *r, int status, const Buf *json, const HttpHeader *headers,
                       size_t n_headers)
{
    http_reply(r, status, "application/json", buf_str(json), json->len, headers, n_headers);
}

static void reply_failure_with(HttpServerRequest *r, McpEra era, const char *id,
                               const McpFailure *failure, const HttpHeader *headers,
                               size_t n_headers)
{
    _cleanup_buf_ Buf json = BUF_INIT(MCP_REPLY_MAX);

    mcp_write_error(&json, era, id, failure);
    reply_json(r, failure->http_status, &json, headers, n_headers);
}

static void reply_failure(HttpServerRequest *r, McpEra era, const char *id,
                          const McpFailure *failure)
{
    reply_failure_with(r, era, id, failure, NULL, 0);
}

/* A result, in the media type that the client can take. */
static void reply_result(HttpServerRequest *r, McpAccept accept, const Buf *json)
{
    _cleanup_buf_ Buf event = BUF_INIT(CALL_REPLY_MAX);

    if (accept.json) {
        reply_json(r, 200, json, NULL, 0);
        return;
    }
    mcp_write_event(&event, json);
    http_reply(r, 200, "text/event-stream", buf_str(&event), event.len, NULL, 0);
}

static void reply_busy(HttpServerRequest *r, const char *id, const char *why)
{
    static const HttpHeader retry[] = {{"Retry-After", "2"}};
    _cleanup_mcp_failure_ McpFailure failure = {0};

    (void)mcp_fail(&failure, 503, MCP_INTERNAL_ERROR, "Service unavailable: %s; try again", why);
    reply_failure_with(r, MCP_ERA_LEGACY, id, &failure, retry, 1);
}

static void reply_unauthenticated(const Endpoint *e, HttpServerRequest *r, const Error *error)
{
    bool sent = http_request_header(r, "Authorization") != NULL;
    const HttpHeader challenge[] = {
        {"WWW-Authenticate", sent ? "Bearer realm=\"" MCP_SERVER_NAME "\", error=\"invalid_token\""
                                  : "Bearer realm=\"" MCP_SERVER_NAME "\""}};
    _cleanup_mcp_failure_ McpFailure failure = {0};

    (void)mcp_fail(&failure, 401, MCP_INVALID_REQUEST,
                   "Unauthorized: %s. Send \"Authorization: Bearer TOKEN\" with a token made by "
                   "kubectl create token SERVICEACCOUNT --audience=%s",
                   error_message(error), e->options.config->audience);
    reply_failure_with(r, MCP_ERA_LEGACY, NULL, &failure, challenge, 1);
}

/* Bodies of what the HTTP server answers by itself; text is a literal. */
static void write_error_body(int status, const char *text, Buf *out)
{
    _cleanup_mcp_failure_ McpFailure failure = {0};

    (void)mcp_fail(&failure, status, status >= 500 ? MCP_INTERNAL_ERROR : MCP_INVALID_REQUEST, "%s",
                   text);
    mcp_write_error(out, MCP_ERA_LEGACY, NULL, &failure);
}

/* --- a tool call --- */

static int find_tool(const McpMessage *m, const Tool **ret, JsonValue **ret_arguments,
                     McpFailure *failure)
{
    const JsonValue *name = json_get(m->params, "name");
    JsonValue *arguments = json_get(m->params, "arguments");

    if (json_type(name) != JSON_STRING)
        return mcp_fail(failure, 200, MCP_INVALID_PARAMS, "params.name must be a string");
    *ret = json_str_len(name) <= 128 ? tool_find(json_value_str(name)) : NULL;
    if (!*ret)
        return mcp_fail(failure, 200, MCP_INVALID_PARAMS, "Unknown tool: %.128s",
                        json_value_str(name));
    if (arguments && json_type(arguments) != JSON_OBJECT)
        return mcp_fail(failure, 200, MCP_INVALID_PARAMS, "params.arguments must be an object");
    *ret_arguments = arguments;
    return 0;
}

static int check_idempotency(HttpServerRequest *r, Error **error)
{
    if (!http_request_header(r, "Idempotency-Key"))
        return 0;
    return error_hint(error,
                      error_set(error, ERROR_INVALID,
                                "This gateway cannot keep the promise of an Idempotency-Key, so "
                                "nothing was done"),
                      "Send the call without that header; a call is cancelled when its connection "
                      "closes");
}

/* A call that ends before it begins. */
static void refuse_call(const Arrival *a, const McpMessage *m, McpAccept accept, const Tool *tool,
                        const Error *error)
{
    _cleanup_buf_ Buf text = BUF_INIT(ADVICE_MAX);
    _cleanup_buf_ Buf json = BUF_INIT(MCP_REPLY_MAX);
    const char *outcome = error_kind_to_string(error->kind);
    AuditRecord audit = {.principal = a->principal,
                         .peer = http_request_peer(a->request),
                         .tool = tool,
                         .outcome = outcome,
                         .detail = "arguments"};

    audit_call(&audit);
    metrics_add(a->endpoint->options.metrics, METRIC_TOOL_CALLS, tool->name, outcome, 1);
    tool_write_advice(&text, tool, error);
    mcp_write_tool_error(&json, m->era, m->id, buf_str(&text));
    reply_result(a->request, accept, &json);
}

static void submit(Arrival *a, CallRequest *call)
{
    HttpServerRequest *r = a->request;

    if (!a->deferred)
        http_request_defer(r);
    http_request_drop_body(r);
    call->http = r;
    call->principal = principal_ref(a->principal);
    if (calls_submit(a->endpoint->options.calls, call) < 0)
        reply_busy(r, call->id, "too many calls are under way");
    call_request_done(call);
}

static void handle_tool_call(Arrival *a, McpMessage *m, McpAccept accept)
{
    _cleanup_mcp_failure_ McpFailure failure = {0};
    _cleanup_error_ Error *error = NULL;
    JsonValue *arguments = NULL;
    const Tool *tool = NULL;
    ToolArgs *args = NULL;

    if (find_tool(m, &tool, &arguments, &failure) < 0 || !tool) {
        reply_failure(a->request, m->era, m->id, &failure);
        return;
    }
    if (check_idempotency(a->request, &error) < 0 ||
        tool_parse_args(tool, arguments, &a->endpoint->limits, &args, &error) < 0) {
        refuse_call(a, m, accept, tool, error);
        return;
    }
    CallRequest call = {
        .era = m->era,
        .accept = accept,
        .id = TAKE_PTR(m->id),
        .progress_token = TAKE_PTR(m->progress_token),
        .tool = tool,
        .args = args,
    };
    submit(a, &call);
}

/* --- a message --- */

static McpHeaders read_headers(const HttpServerRequest *r)
{
    return (McpHeaders){
        .content_type = http_request_header(r, "Content-Type"),
        .accept = http_request_header(r, "Accept"),
        .protocol_version = http_request_header(r, "MCP-Protocol-Version"),
        .method = http_request_header(r, "Mcp-Method"),
        .name = http_request_header(r, "Mcp-Name"),
    };
}

static int read_message(const HttpServerRequest *r, const McpHeaders *headers, McpMessage *m,
                        McpFailure *failure)
{
    size_t len = 0;
    const char *body = http_request_body(r, &len);
    int ret;

    m->era = mcp_era_of_headers(headers);
    ret = mcp_message_parse(body ? body : "", len, m, failure);
    if (ret < 0 || m->kind != MCP_REQUEST)
        return ret;
    return mcp_check_era(headers, m, failure);
}

static void handle_request(Arrival *a, McpMessage *m, McpAccept accept)
{
    _cleanup_mcp_failure_ McpFailure failure = {0};
    _cleanup_buf_ Buf json = BUF_INIT(MCP_REPLY_MAX);
    McpVerdict verdict = MCP_VERDICT_REPLY;

    if (mcp_dispatch(a->endpoint->server, m, &json, &verdict, &failure) < 0)
        reply_failure(a->request, m->era, m->id, &failure);
    else if (verdict == MCP_VERDICT_TOOL_CALL)
        handle_tool_call(a, m, accept);
    else
        reply_result(a->request, accept, &json);
}

/* The caller is known. */
static void handle_message(Arrival *a)
{
    _cleanup_mcp_failure_ McpFailure failure = {0};
    _cleanup_mcp_message_ McpMessage m = {0};
    McpHeaders headers = read_headers(a->request);
    McpAccept accept = {0};

    if (mcp_check_media(&headers, &accept, &failure) < 0 ||
        read_message(a->request, &headers, &m, &failure) < 0)
        reply_failure(a->request, m.era, m.id, &failure);
    else if (m.kind != MCP_REQUEST)
        http_reply(a->request, 202, NULL, NULL, 0, NULL, 0);
    else
        handle_request(a, &m, accept);
}

/* --- authentication --- */

static void refuse_caller(const Endpoint *e, HttpServerRequest *r, const Error *error)
{
    if (error->kind == ERROR_UNAUTHENTICATED) {
        reply_unauthenticated(e, r, error);
        return;
    }
    log_warn("callers cannot be checked", LOGF_STR("error", error_message(error)));
    reply_busy(r, NULL,
               error->kind == ERROR_DENIED
                   ? "the gateway may not create tokenreviews.authentication.k8s.io"
                   : "the API server cannot check your token at the moment");
}

static void on_authenticated(Principal *p, const Error *error, void *userdata)
{
    Arrival *a = userdata;

    a->principal = p;
    if (p)
        handle_message(a);
    else
        refuse_caller(a->endpoint, a->request, error);
    free(a);
}

static void ask_who(void *userdata)
{
    Arrival *a = userdata;

    authenticator_ask(a->endpoint->options.authenticator,
                      http_request_header(a->request, "Authorization"), on_authenticated, a);
}

static void authenticate_later(Endpoint *e, HttpServerRequest *r)
{
    Arrival *a = xnew(Arrival);

    *a = (Arrival){.endpoint = e, .request = r, .deferred = true};
    http_request_defer(r);
    if (loop_post(e->options.loop, ask_who, a) == 0)
        return;
    free(a);
    reply_busy(r, NULL, "too many callers are waiting");
}

static void handle_post(Endpoint *e, HttpServerRequest *r)
{
    _cleanup_principal_ Principal *principal = NULL;
    _cleanup_error_ Error *error = NULL;
    int known = authenticator_cached(e->options.authenticator,
                                     http_request_header(r, "Authorization"), &principal, &error);

    if (known < 0) {
        refuse_caller(e, r, error);
    } else if (known == 0) {
        authenticate_later(e, r);
    } else {
        Arrival a = {.endpoint = e, .request = r, .principal = principal};
        handle_message(&a);
    }
}

/* --- the door --- */

/* Refuses what the head alone shows to be wrong. */
static bool refused_at_door(const Endpoint *e, HttpServerRequest *r)
{
    static const HttpHeader allow[] = {{"Allow", "POST"}};
    _cleanup_mcp_failure_ McpFailure failure = {0};

    if (!mcp_host_allowed(&e->origins, http_request_header(r, "Host")))
        (void)mcp_fail(&failure, 403, MCP_INVALID_REQUEST,
                       "Forbidden: this Host is not served (see --allowed-hosts)");
    else if (!mcp_origin_allowed(&e->origins, http_request_header(r, "Origin")))
        (void)mcp_fail(&failure, 403, MCP_INVALID_REQUEST,
                       "Forbidden: this Origin is not served (see --allowed-origins)");
    else if (!str_eq(http_request_method(r), "POST"))
        (void)mcp_fail(&failure, 405, MCP_INVALID_REQUEST,
                       "Method not allowed: this server has no sessions and no standing streams, "
                       "send POST");
    if (failure.http_status == 405)
        reply_failure_with(r, MCP_ERA_LEGACY, NULL, &failure, allow, 1);
    else if (failure.message)
        reply_failure(r, MCP_ERA_LEGACY, NULL, &failure);
    return failure.message != NULL;
}

/* Before the body: who may not be served need not send it. */
static HttpHeadVerdict on_head(HttpServerRequest *r, void *userdata)
{
    Endpoint *e = userdata;
    _cleanup_principal_ Principal *principal = NULL;
    _cleanup_error_ Error *error = NULL;
    int known;

    if (refused_at_door(e, r))
        return HTTP_HEAD_STRANGER;
    known = authenticator_cached(e->options.authenticator, http_request_header(r, "Authorization"),
                                 &principal, &error);
    if (known < 0)
        refuse_caller(e, r, error);
    return known > 0 ? HTTP_HEAD_KNOWN : HTTP_HEAD_STRANGER;
}

static void on_mcp(HttpServerRequest *r, void *userdata)
{
    handle_post(userdata, r);
}

static const HttpRoute routes[] = {
    {NULL, "/mcp", on_mcp},
    {NULL, "/mcp/", on_mcp},
};

static void on_complete(_unused_ const char *method, _unused_ const char *path, int status,
                        _unused_ int64_t duration_ms, void *userdata)
{
    Endpoint *e = userdata;
    char code[16];

    (void)snprintf(code, sizeof(code), "%d", status);
    metrics_add(e->options.metrics, METRIC_HTTP_REQUESTS, code, NULL, 1);
}

static int serve(Endpoint *e, Error **error)
{
    const GatewayConfig *config = e->options.config;
    HttpServerOptions options = {
        .listen = config->listen,
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .userdata = e,
        .loop = e->options.loop,
        .threads = (unsigned)config->threads,
        .max_connections = (unsigned)config->max_connections,
        .max_body_bytes = 2 * (size_t)config->max_file_bytes + BODY_SLACK,
        .max_bodies_bytes = (size_t)config->max_transfer_bytes,
        .use_poll = config->use_poll,
        .on_head = on_head,
        .error_body = write_error_body,
        .on_complete = on_complete,
    };

    return http_server_new(&options, &e->http, error);
}

int endpoint_new(const EndpointOptions *options, Endpoint **ret, Error **error)
{
    _cleanup_buf_ Buf list = BUF_INIT(MCP_REPLY_MAX);
    const GatewayConfig *config = options->config;
    Endpoint *e = xnew(Endpoint);
    int r;

    e->options = *options;
    e->limits.max_file_bytes = (size_t)config->max_file_bytes;
    e->origins = (OriginRules){
        .loopback = config->is_loopback,
        .hosts = config->allowed_hosts,
        .n_hosts = config->n_allowed_hosts,
        .origins = config->allowed_origins,
        .n_origins = config->n_allowed_origins,
    };
    tools_write_list(&list);
    e->server = mcp_server_new(buf_str(&list), INSTRUCTIONS);
    r = serve(e, error);
    if (r < 0)
        (void)endpoint_free(e);
    else
        *ret = e;
    return r;
}

void endpoint_stop(Endpoint *e)
{
    e->http = http_server_free(e->http);
}

Endpoint *endpoint_free(Endpoint *e)
{
    if (!e)
        return NULL;
    endpoint_stop(e);
    (void)mcp_server_free(e->server);
    free(e);
    return NULL;
}

HttpServer *endpoint_server(Endpoint *e)
{
    return e->http;
}
