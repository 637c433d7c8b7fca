/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/call.h"

#include "common/base/str.h"
#include "gateway/audit.h"
#include "gateway/mcp/message.h"
#include "gateway/tools/advice.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

struct Calls {
    CallServices services;
    List calls;
    size_t bytes_held;
    bool stopped; /* whatever still comes is told so at once */
    atomic_size_t pending;
};

struct Call {
    Calls *calls;
    List node;
    CallRequest request;
    int64_t began_ms;
    void *state;
    void (*cancel)(Call *c);
    bool cancelled;
    bool stopping;  /* this gateway stops */
    bool streaming; /* the answer is a stream by now */
    LoopTimer to_stream;
    LoopTimer keepalive;
    LoopTimer progress;
    LoopTimer late_cancel;
    size_t bytes_held;
    char *claim;
    char *pod;
    const char *outcome;
    int64_t number;
};

void call_request_done(CallRequest *r)
{
    (void)principal_unref(r->principal);
    free(r->id);
    free(r->progress_token);
    if (r->tool)
        tool_args_free(r->tool, r->args);
    *r = (CallRequest){0};
}

static Loop *call_loop(const Call *c)
{
    return c->calls->services.loop;
}

static void call_free(Call *c)
{
    if (c->request.tool->state_free && c->state)
        c->request.tool->state_free(c->state);
    loop_timer_stop(call_loop(c), &c->to_stream);
    loop_timer_stop(call_loop(c), &c->keepalive);
    loop_timer_stop(call_loop(c), &c->progress);
    loop_timer_stop(call_loop(c), &c->late_cancel);
    list_remove(&c->node);
    c->calls->bytes_held -= c->bytes_held;
    atomic_fetch_sub(&c->calls->pending, 1);
    call_request_done(&c->request);
    free(c->claim);
    free(c->pod);
    free(c);
}

/* --- the answer --- */

/* A stream has them of its own. */
static const HttpHeader event_headers[] = {{"Cache-Control", "no-cache, no-transform"},
                                           {"X-Accel-Buffering", "no"}};

static void send_answer(Call *c, const Buf *json)
{
    _cleanup_buf_ Buf event = BUF_INIT(CALL_REPLY_MAX + 64);

    if (c->streaming) {
        mcp_write_event(&event, json);
        (void)http_stream_send(c->request.http, buf_str(&event), event.len);
        http_stream_end(c->request.http);
    } else if (c->request.accept.json) {
        http_reply(c->request.http, 200, "application/json", buf_str(json), json->len, NULL, 0);
    } else {
        mcp_write_event(&event, json);
        http_reply(c->request.http, 200, "text/event-stream", buf_str(&event), event.len,
                   event_headers, ARRAY_SIZE(event_headers));
    }
}

static int64_t call_age_ms(const Call *c)
{
    int64_t age_ms = loop_now_ms(call_loop(c)) - c->began_ms;

    return age_ms > 0 ? age_ms : 0;
}

static void record(const Call *c, const char *outcome)
{
    const CallServices *s = &c->calls->services;
    int64_t duration_ms = call_age_ms(c);
    AuditRecord audit = {
        .principal = c->request.principal,
        .peer = http_request_peer(c->request.http),
        .tool = c->request.tool,
        .args = c->request.args,
        .claim = c->claim,
        .pod = c->pod,
        .outcome = outcome,
        .detail = c->outcome,
        .number = c->number,
        .duration_ms = duration_ms,
    };

    audit_call(&audit);
    metrics_add(s->metrics, METRIC_TOOL_CALLS, c->request.tool->name, outcome, 1);
    metrics_observe(s->metrics, METRIC_TOOL_SECONDS, c->request.tool->name, NULL,
                    (double)duration_ms / 1000);
}

static void finish(Call *c, const Buf *json, const char *outcome)
{
    record(c, c->cancelled ? error_kind_to_string(ERROR_CANCELLED) : outcome);
    send_answer(c, json);
    call_free(c);
}

static void finish_error(Call *c, const Error *error)
{
    _cleanup_buf_ Buf text = BUF_INIT(ADVICE_MAX);
    _cleanup_buf_ Buf json = BUF_INIT(CALL_REPLY_MAX);

    tool_write_advice(&text, c->request.tool, error);
    mcp_write_tool_error(&json, c->request.era, c->request.id, buf_str(&text));
    finish(c, &json, error_kind_to_string(error->kind));
}

/* What everyone is told whose call this gateway's end has cut short. */
static void finish_stopped(Call *c)
{
    _cleanup_error_ Error *error = NULL;

    (void)error_set(&error, ERROR_UNAVAILABLE,
                    "This gateway is being stopped and has ended the call after %lld seconds",
                    (long long)(call_age_ms(c) / 1000));
    if (c->request.args->claim)
        (void)error_hint(&error, 0,
                         "The sandbox still exists. Check what the call has done so far, then "
                         "call %s again",
                         c->request.tool->name);
    finish_error(c, error);
}

void call_fail(Call *c, const Error *error)
{
    if (c->stopping)
        finish_stopped(c);
    else
        finish_error(c, error);
}

static void succeed(Call *c, const Buf *structured, const char *text)
{
    _cleanup_buf_ Buf json = BUF_INIT(CALL_REPLY_MAX);
    _cleanup_error_ Error *error = NULL;

    if (c->stopping) {
        finish_stopped(c);
        return;
    }
    if (!structured || buf_check(structured, "the answer", &error) == 0)
        mcp_write_tool_result(&json, c->request.era, c->request.id, structured, text);
    if (error || buf_check(&json, "the answer", &error) < 0) {
        finish_error(c, error);
        return;
    }
    finish(c, &json, "ok");
}

void call_succeed(Call *c, const Buf *structured)
{
    succeed(c, structured, NULL);
}

void call_succeed_text(Call *c, const char *text)
{
    succeed(c, NULL, text);
}

/* --- the stream --- */

static void on_keepalive(void *userdata)
{
    Call *c = userdata;

    (void)http_stream_send(c->request.http, MCP_KEEPALIVE, strlen(MCP_KEEPALIVE));
    loop_timer_set(call_loop(c), &c->keepalive, CALL_KEEPALIVE_MS);
}

static void on_progress(void *userdata)
{
    Call *c = userdata;
    _cleanup_buf_ Buf json = BUF_INIT(MCP_ID_MAX + 1024);
    _cleanup_buf_ Buf event = BUF_INIT(MCP_ID_MAX + 2048);
    int64_t seconds = call_age_ms(c) / 1000;
    _cleanup_free_ char *message =
        xasprintf("%s is running for %lld s", c->request.tool->name, (long long)seconds);

    mcp_write_progress(&json, c->request.progress_token, seconds, 0, message);
    mcp_write_event(&event, &json);
    (void)http_stream_send(c->request.http, buf_str(&event), event.len);
    loop_timer_set(call_loop(c), &c->progress, CALL_PROGRESS_MS);
}

static void on_to_stream(void *userdata)
{
    Call *c = userdata;

    c->streaming = true;
    metrics_add(c->calls->services.metrics, METRIC_STREAMS, NULL, NULL, 1);
    http_stream_start(c->request.http, NULL, 0);
    on_keepalive(c);
    if (c->request.progress_token)
        on_progress(c);
}

static void timer_init(LoopTimer *t, LoopFn fn, Call *c)
{
    t->fn = fn;
    t->userdata = c;
}

/* --- the way there --- */

static void call_cancel(Call *c)
{
    void (*cancel)(Call *) = TAKE_PTR(c->cancel);

    if (cancel)
        cancel(c);
}

static void on_late_cancel(void *userdata)
{
    call_cancel(userdata);
}

static void on_gone(void *userdata)
{
    Call *c = userdata;

    c->cancelled = true;
    call_cancel(c);
}

static void on_authorised(const Error *failed, void *userdata)
{
    Call *c = userdata;
    _cleanup_error_ Error *error = NULL;

    if (!failed && (c->cancelled || c->stopping))
        (void)error_set(&error, ERROR_CANCELLED, "the caller went away");
    if (failed || error)
        call_fail(c, failed ? failed : error);
    else
        c->request.tool->run(c);
}

static void refuse_namespace(Call *c)
{
    _cleanup_error_ Error *error = NULL;

    (void)error_set(&error, ERROR_DENIED, "Namespace '%s' is not served by this gateway",
                    c->request.args->ns);
    (void)error_hint(&error, 0, "Call %s with a namespace that is", c->request.tool->name);
    call_fail(c, error);
}

static void call_begin(void *userdata)
{
    Call *c = userdata;
    const CallServices *s = &c->calls->services;
    const Tool *tool = c->request.tool;

    list_push(&c->calls->calls, &c->node);
    timer_init(&c->to_stream, on_to_stream, c);
    timer_init(&c->keepalive, on_keepalive, c);
    timer_init(&c->progress, on_progress, c);
    timer_init(&c->late_cancel, on_late_cancel, c);
    if (c->calls->stopped) {
        finish_stopped(c);
        return;
    }
    http_request_on_gone(c->request.http, on_gone, c);
    if (c->request.accept.sse)
        loop_timer_set(s->loop, &c->to_stream, CALL_SSE_AFTER_MS);
    if (!sandbox_cache_serves(s->cache, c->request.args->ns)) {
        refuse_namespace(c);
        return;
    }
    authorizer_ask(s->authorizer, c->request.principal, c->request.args->ns, tool->verb,
                   tool->subresource, on_authorised, c);
}

Calls *calls_new(const CallServices *services)
{
    Calls *c = xnew(Calls);

    c->services = *services;
    list_init(&c->calls);
    atomic_init(&c->pending, 0);
    return c;
}

Calls *calls_free(Calls *c)
{
    free(c);
    return NULL;
}

int calls_submit(Calls *calls, CallRequest *request)
{
    Call *c;

    if (atomic_fetch_add(&calls->pending, 1) >= CALLS_MAX) {
        atomic_fetch_sub(&calls->pending, 1);
        return -EAGAIN;
    }
    c = xnew(Call);
    c->calls = calls;
    c->request = *request;
    c->began_ms = clock_monotonic_ms(loop_clock(calls->services.loop));
    if (loop_post(calls->services.loop, call_begin, c) < 0) {
        atomic_fetch_sub(&calls->pending, 1);
        free(c);
        return -EAGAIN;
    }
    *request = (CallRequest){0};
    return 0;
}

size_t calls_pending(const Calls *c)
{
    return atomic_load(&c->pending);
}

void calls_stop(Calls *calls, bool now)
{
    calls->stopped |= now;
    list_foreach_safe (pos, &calls->calls) {
        Call *c = LIST_ENTRY(pos, Call, node);

        c->stopping = true;
        if (now)
            finish_stopped(c);
        else
            call_cancel(c);
    }
}

/* --- for tools --- */

const CallServices *call_services(const Call *c)
{
    return &c->calls->services;
}

const ToolArgs *call_args(const Call *c)
{
    return c->request.args;
}

const char *call_owner(const Call *c)
{
    return principal_owner(c->request.principal);
}

const Principal *call_principal(const Call *c)
{
    return c->request.principal;
}

void *call_state(const Call *c)
{
    return c->state;
}

void call_set_state(Call *c, void *state)
{
    c->state = state;
}

void call_on_cancel(Call *c, void (*cancel)(Call *c))
{
    c->cancel = cancel;
    /* The caller went away while nothing could be done about it. Not within: a cancelled call may
     * be gone at once, and the tool is not through with it. */
    if (cancel && call_is_cancelled(c))
        loop_timer_set(call_loop(c), &c->late_cancel, 0);
}

bool call_is_cancelled(const Call *c)
{
    return c->cancelled || c->stopping;
}

void call_set_claim(Call *c, const char *claim)
{
    str_replace(&c->claim, claim);
}

void call_set_pod(Call *c, const char *pod)
{
    str_replace(&c->pod, pod);
}

void call_set_outcome(Call *c, const char *outcome, int64_t number)
{
    c->outcome = outcome;
    c->number = number;
}

int call_reserve_bytes(Call *c, size_t bytes, Error **error)
{
    size_t others = c->calls->bytes_held - c->bytes_held;
    size_t taken = others + http_request_answers_bytes(c->request.http);
    size_t max = (size_t)c->calls->services.config->max_transfer_bytes;

    if (bytes > max)
        return error_set(error, ERROR_TOO_LARGE,
                         "The transfer needs %zu bytes of memory, this gateway has %zu for all",
                         bytes, max);
    if (taken > max - bytes)
        return error_set(error, ERROR_EXHAUSTED,
                         "Too many bytes are being transferred by this gateway at the moment");
    c->calls->bytes_held = others + bytes;
    c->bytes_held = bytes;
    return 0;
}
