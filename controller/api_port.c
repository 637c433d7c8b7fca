/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/api_port.h"

#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "controller/metrics.h"
#include "controller/op_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIST_PAGE "100" /* a page is parsed as a whole */
#define LIVE_DEADLINE_MS 30000

typedef enum RequestKind { REQUEST_OP, REQUEST_GET, REQUEST_LIST } RequestKind;

typedef struct Request {
    ApiGate *gate;
    RequestKind kind;
    uint64_t ticket;
    ObjKind obj_kind; /* list */
    char *ns;         /* list */
    KubeCall *call;
    Error *refused; /* could not be sent: answered from the loop */
    List link;
} Request;

struct ApiGate {
    KubeClient *kube;
    KubeEvents *events;
    Metrics *metrics;
    Reconciler *reconciler;
    LoopFn after_answer;
    void *userdata;
    List requests; /* under way */
    List unsent;
    LoopTimer unsent_timer;
};

static Request *request_free(Request *q)
{
    list_remove(&q->link);
    q->call = kube_call_cancel(q->call);
    error_free(q->refused);
    free(q->ns);
    free(q);
    return NULL;
}

static void answer(Request *q, const ApiResult *result)
{
    static void (*const deliver[])(Reconciler *, uint64_t, const ApiResult *) = {
        [REQUEST_OP] = reconciler_op_done,
        [REQUEST_GET] = reconciler_get_done,
        [REQUEST_LIST] = reconciler_list_done,
    };
    ApiGate *g = q->gate;
    RequestKind kind = q->kind;
    uint64_t ticket = q->ticket;
    const Clock *clock = loop_clock(kube_client_loop(g->kube));
    reconciler_set_time(g->reconciler, clock_realtime_ms(clock), clock_monotonic_ms(clock));
    deliver[kind](g->reconciler, ticket, result);
    request_free(q);
    g->after_answer(g->userdata);
}

static ApiResult result_of(JsonValue *object, const Error *error)
{
    return (ApiResult){
        .outcome = api_outcome_of_error(error),
        .object = object,
        .message = error ? error_message(error) : NULL,
        .reason = error ? error->reason : NULL,
        .retry_after_ms = error ? error->retry_after_ms : 0,
    };
}

static void on_done(JsonValue *object, const Error *error, void *userdata)
{
    Request *q = userdata;
    q->call = NULL;
    ApiResult result = result_of(object, error);
    answer(q, &result);
}

static void send_unsent(void *userdata)
{
    ApiGate *g = userdata;
    List *node;
    while ((node = list_pop(&g->unsent))) {
        Request *q = LIST_ENTRY(node, Request, link);
        ApiResult result = result_of(NULL, q->refused);
        answer(q, &result);
    }
}

static Request *request_new(ApiGate *g, RequestKind kind, uint64_t ticket)
{
    Request *q = xnew(Request);
    q->gate = g;
    q->kind = kind;
    q->ticket = ticket;
    list_push(&g->requests, &q->link);
    return q;
}

static void request_send(Request *q, KubeRequest *request)
{
    request->deadline_ms = LIVE_DEADLINE_MS;
    request->userdata = q;
    if (kube_send(q->gate->kube, request, &q->call, &q->refused) >= 0)
        return;
    list_remove(&q->link);
    list_push(&q->gate->unsent, &q->link);
    loop_timer_set(kube_client_loop(q->gate->kube), &q->gate->unsent_timer, 0);
}

static void port_submit(uint64_t ticket, const PlanOp *op, void *userdata)
{
    static const struct {
        const char *verb, *subresource;
        KubePatch patch;
        bool named;
    } how[PLAN_VERB_MAX] = {
        [PLAN_CREATE] = {.verb = "create"},
        [PLAN_PATCH] = {.verb = "patch", .patch = KUBE_PATCH_MERGE, .named = true},
        [PLAN_PATCH_STATUS] = {.verb = "patch",
                               .subresource = "status",
                               .patch = KUBE_PATCH_MERGE,
                               .named = true},
        [PLAN_PATCH_JSON] = {.verb = "patch", .patch = KUBE_PATCH_JSON, .named = true},
        [PLAN_DELETE] = {.verb = "delete", .named = true},
    };
    Request *q = request_new(userdata, REQUEST_OP, ticket);
    _cleanup_free_ char *path =
        kube_path_dup(obj_resource(op->kind), op->ns, how[op->verb].named ? op->name : NULL,
                      how[op->verb].subresource);
    KubeRequest request = {
        .verb = how[op->verb].verb,
        .path = path,
        .patch = how[op->verb].patch,
        .body = op->body,
        .body_len = op->body_len,
        .retry = HTTP_RETRY_NEVER,
        .on_done = on_done,
    };
    request_send(q, &request);
}

static void port_get(uint64_t ticket, ObjKind kind, const char *ns, const char *name,
                     void *userdata)
{
    Request *q = request_new(userdata, REQUEST_GET, ticket);
    _cleanup_free_ char *path = kube_path_dup(obj_resource(kind), ns, name, NULL);
    KubeRequest request = {.verb = "get", .path = path, .on_done = on_done};
    request_send(q, &request);
}

static void on_page(JsonValue *page, const Error *error, void *userdata);

static void send_page(Request *q, const char *continue_token)
{
    _cleanup_buf_ Buf path = BUF_INIT(64 * 1024);
    kube_path(&path, obj_resource(q->obj_kind), q->ns, NULL, NULL);
    (void)buf_append_str(&path, "?limit=" LIST_PAGE);
    if (!str_empty(continue_token)) {
        (void)buf_append_str(&path, "&continue=");
        (void)str_url_encode(&path, continue_token, strlen(continue_token), false);
    }
    KubeRequest request = {.verb = "list", .path = buf_str(&path), .on_done = on_page};
    request_send(q, &request);
}

/* A list that expired between two pages ends as an error: the reconciler asks again. */
static void on_page(JsonValue *page, const Error *error, void *userdata)
{
    Request *q = userdata;
    q->call = NULL;
    const JsonValue *items = json_get(page, "items");
    for (size_t i = 0; !error && i < json_array_len(items); i++)
        reconciler_list_item(q->gate->reconciler, q->ticket, json_array_at(items, i));
    const char *more = error ? NULL : json_str(page, "metadata.continue");
    if (!str_empty(more)) {
        send_page(q, more);
        return;
    }
    ApiResult result = result_of(NULL, error);
    answer(q, &result);
}

static void port_list(uint64_t ticket, ObjKind kind, const char *ns, void *userdata)
{
    Request *q = request_new(userdata, REQUEST_LIST, ticket);
    q->obj_kind = kind;
    q->ns = xstrdup_null(ns);
    send_page(q, NULL);
}

static void port_event(const PlanEvent *event, void *userdata)
{
    ApiGate *g = userdata;
    char rv[24];
    (void)snprintf(rv, sizeof(rv), "%" PRIu64, event->rv);
    KubeEvent e = {
        .resource = obj_resource(event->kind),
        .ns = event->ns,
        .name = event->name,
        .uid = event->uid,
        .resource_version = event->rv ? rv : NULL,
        .warning = event->warning,
        .reason = event->reason,
        .action = event->action,
        .message = event->message,
        .annotations_json = event->annotations_json,
    };
    kube_events_emit(g->events, &e);
}

static void port_op_done(const char *key, const PlanOp *op, const ApiResult *result, void *userdata)
{
    ApiGate *g = userdata;
    metrics_add(g->metrics, METRIC_API_WRITES, op->purpose, api_outcome_to_string(result->outcome),
                1);
    op_log(key, op, result);
}

static void port_bad_object(ObjKind kind, const Error *error, void *userdata)
{
    ApiGate *g = userdata;
    metrics_add(g->metrics, METRIC_BAD_OBJECTS, obj_resource(kind)->plural, NULL, 1);
    log_warn("skipped an object that cannot be read", LOGF_STR("kind", obj_resource(kind)->kind),
             LOGF_STR("error", error_message(error)));
}

ApiGate *api_gate_new(KubeClient *kube, KubeEvents *events, Metrics *metrics, LoopFn after_answer,
                      void *userdata)
{
    ApiGate *g = xnew(ApiGate);
    g->kube = kube;
    g->events = events;
    g->metrics = metrics;
    g->after_answer = after_answer;
    g->userdata = userdata;
    list_init(&g->requests);
    list_init(&g->unsent);
    g->unsent_timer.fn = send_unsent;
    g->unsent_timer.userdata = g;
    return g;
}

ApiGate *api_gate_free(ApiGate *g)
{
    if (!g)
        return NULL;
    loop_timer_stop(kube_client_loop(g->kube), &g->unsent_timer);
    List *const heads[] = {&g->requests, &g->unsent};
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
        while (!list_empty(heads[i]))
            request_free(LIST_ENTRY(heads[i]->next, Request, link));
    free(g);
    return NULL;
}

void api_gate_connect(ApiGate *g, Reconciler *r)
{
    g->reconciler = r;
}

void api_gate_port(ApiGate *g, ApiPort *port)
{
    port->submit = port_submit;
    port->get = port_get;
    port->list = port_list;
    port->event = port_event;
    port->op_done = port_op_done;
    port->bad_object = port_bad_object;
    port->userdata = g;
}
