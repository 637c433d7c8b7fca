/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/line.h"

#include "common/base/contract.h"
#include "common/base/list.h"
#include "common/base/str.h"
#include "controller/names.h"
#include "tests/sim/check.h"
#include "tests/sim/watch.h"

#include <string.h>

/* A client gives up on an answer after this. */
#define CLIENT_TIMEOUT_MS 2000

struct Line {
    Reconciler *reconciler;
    unsigned process; /* number of the process: what belongs to a dead one is dropped */
    int64_t wake_us;  /* a wake-up is scheduled for then; −1: none */
    int64_t down_since_ms;
    WatchStream *streams[OBJ_KIND_MAX];
};

typedef enum CallType { CALL_OP, CALL_GET, CALL_LIST } CallType;

/* A request on its way. */
typedef struct Call {
    uint64_t ticket;
    unsigned process;
    CallType type;
    PlanVerb verb;
    ObjKind kind;
    char *ns, *name, *body;
    size_t body_len;
    bool answer_lost;
} Call;

/* An answer on its way. */
typedef struct Answer {
    uint64_t ticket;
    unsigned process;
    CallType type;
    ApiOutcome outcome;
    char *reason;
    int64_t retry_after_ms;
    char *text; /* of one object; of a list: objects, one a line */
    size_t len;
} Answer;

Reconciler *line_reconciler(const Sim *sim)
{
    return sim->line->reconciler;
}

static void call_done(Call *c)
{
    free(c->ns);
    free(c->name);
    free(c->body);
}

static JsonValue *parse(const char *text, size_t len)
{
    JsonValue *v = NULL;

    CONTRACT(json_parse(text, len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &v, NULL) >= 0);
    return v;
}

static void deliver_list(Reconciler *r, const Answer *a, const ApiResult *result)
{
    const char *p = a->text;

    while (result->outcome == API_OK && p && *p) {
        size_t n = strcspn(p, "\n");
        _cleanup_json_ JsonValue *item = parse(p, n);
        reconciler_list_item(r, a->ticket, item);
        p += n + (p[n] == '\n');
    }
    reconciler_list_done(r, a->ticket, result);
}

static void deliver_answer(Sim *sim, void *arg)
{
    Answer *a = arg;
    Reconciler *r = sim->line->reconciler;
    _cleanup_json_ JsonValue *object = NULL;
    ApiResult result = {
        .outcome = a->outcome,
        .message = a->reason ? a->reason : "injected",
        .reason = a->reason,
        .retry_after_ms = a->retry_after_ms,
    };

    if (r && a->process == sim->line->process) {
        if (a->outcome == API_OK && a->type != CALL_LIST) {
            object = parse(a->text, a->len);
            result.object = object;
        }
        if (a->type == CALL_OP)
            reconciler_op_done(r, a->ticket, &result);
        else if (a->type == CALL_GET)
            reconciler_get_done(r, a->ticket, &result);
        else
            deliver_list(r, a, &result);
    }
    free(a->reason);
    free(a->text);
}

static void answer(Sim *sim, const Call *c, ApiOutcome outcome, const char *reason, char *text,
                   size_t len, int64_t after_ms)
{
    Answer *a = xnew(Answer);

    *a = (Answer){
        .ticket = c->ticket,
        .process = c->process,
        .type = c->type,
        .outcome = outcome,
        .reason = xstrdup_null(reason),
        .text = text,
        .len = len,
    };
    if (outcome == API_RETRY && sim_chance(sim, 500))
        a->retry_after_ms = 1000;
    sim_after(sim, after_ms, deliver_answer, a);
}

static ApiOutcome outcome_of(const Reply *r)
{
    if (r->code < 400)
        return API_OK;
    if (r->code == 404)
        return API_NOT_FOUND;
    if (r->code == 409)
        return str_eq(r->reason, "AlreadyExists") ? API_EXISTS : API_CONFLICT;
    return API_REFUSED;
}

static Reply apply(Sim *sim, const Call *c)
{
    switch (c->verb) {
    case PLAN_CREATE:
        return server_create(sim, c->kind, c->body, c->body_len, WRITER_CONTROLLER);
    case PLAN_DELETE:
        return server_delete(sim, c->kind, c->ns, c->name, c->body, c->body_len, WRITER_CONTROLLER);
    case PLAN_PATCH_JSON:
        return server_patch_json(sim, c->kind, c->ns, c->name, c->body, c->body_len,
                                 WRITER_CONTROLLER);
    default:
        return server_patch(sim, c->kind, c->ns, c->name, c->verb == PLAN_PATCH_STATUS, c->body,
                            c->body_len, WRITER_CONTROLLER);
    }
}

typedef struct ListText {
    const char *ns;
    Buf text;
} ListText;

static void add_to_list(_unused_ Sim *sim, Stored *o, void *arg)
{
    ListText *l = arg;

    if (!str_eq(o->ns, l->ns))
        return;
    if (l->text.len > 0)
        (void)buf_append_char(&l->text, '\n');
    doc_print(o->doc, &l->text);
}

static void arrive_list(Sim *sim, Call *c)
{
    ListText l = {.ns = c->ns, .text = BUF_INIT(64 * 1024 * 1024)};
    size_t len;
    char *text;

    server_each(sim, c->kind, add_to_list, &l);
    text = buf_take(&l.text, &len);
    answer(sim, c, API_OK, NULL, text, len, sim_between(sim, 1, 30));
}

static void arrive(Sim *sim, void *arg)
{
    Call *c = arg;
    /* What a dead process had sent may still take effect, or not; not after the next one started,
     * for the API server ends the requests of a lost connection. */
    const Line *l = sim->line;
    bool dead = c->process != l->process;
    bool succeeded = dead && (l->reconciler || l->process > c->process + 1);
    Reply r;

    if (dead && (c->type != CALL_OP || succeeded || sim_chance(sim, 500))) {
        call_done(c);
        return;
    }
    if (c->type == CALL_LIST) {
        arrive_list(sim, c);
        call_done(c);
        return;
    }
    r = c->type == CALL_GET ? server_get(sim, c->kind, c->ns, c->name) : apply(sim, c);
    if (c->answer_lost || dead)
        reply_done(&r);
    else
        answer(sim, c, outcome_of(&r), r.reason, r.text, r.len, sim_between(sim, 1, 20));
    call_done(c);
}

/* One of the ways in which a request does not even arrive; true where it was answered so. */
static bool refuse_early(Sim *sim, const Call *c)
{
    const Faults *f = &sim->faults;
    int64_t after = sim_between(sim, 1, 30);

    if (c->type == CALL_OP && c->verb == PLAN_CREATE && sim_fault(sim, f->refuse))
        answer(sim, c, API_REFUSED, "Forbidden", NULL, 0, after);
    else if (c->type == CALL_OP && c->verb != PLAN_CREATE && sim_fault(sim, f->conflict))
        answer(sim, c, API_CONFLICT, "Conflict", NULL, 0, after);
    else if (sim_fault(sim, f->retry))
        answer(sim, c, API_RETRY, "TooManyRequests", NULL, 0, after);
    else if (sim_fault(sim, f->error))
        answer(sim, c, API_UNKNOWN, "InternalError", NULL, 0, after);
    else
        return false;
    check_disturbed(sim);
    return true;
}

static void send(Sim *sim, Call *c)
{
    int64_t delay = sim_between(sim, 1, 20);

    c->process = sim->line->process;
    if (refuse_early(sim, c)) {
        call_done(c);
        free(c);
        return;
    }
    if (c->type == CALL_OP && sim_fault(sim, sim->faults.lose)) {
        /* The client hears nothing; the write may have been applied, or will be, even after the
         * client has asked how things stand. */
        c->answer_lost = true;
        answer(sim, c, API_UNKNOWN, "Timeout", NULL, 0, CLIENT_TIMEOUT_MS);
        if (sim_chance(sim, 200))
            delay = sim_between(sim, CLIENT_TIMEOUT_MS, CLIENT_TIMEOUT_MS + 500);
        check_disturbed(sim);
    }
    sim_after(sim, delay, arrive, c);
}

static void port_submit(uint64_t ticket, const PlanOp *op, void *userdata)
{
    Sim *sim = userdata;
    Call *c = xnew(Call);

    *c = (Call){
        .ticket = ticket,
        .type = CALL_OP,
        .verb = op->verb,
        .kind = op->kind,
        .ns = xstrdup(op->ns),
        .name = xstrdup(op->name),
        .body = xstrndup(op->body, op->body_len),
        .body_len = op->body_len,
    };
    sim_trace(sim, "→ %s %s %s/%s (%s)", plan_verb_to_string(op->verb),
              obj_resource(op->kind)->kind, op->ns, op->name, op->purpose);
    check_submit(sim, op);
    send(sim, c);
}

static void port_get(uint64_t ticket, ObjKind kind, const char *ns, const char *name,
                     void *userdata)
{
    Call *c = xnew(Call);

    *c = (Call){
        .ticket = ticket, .type = CALL_GET, .kind = kind, .ns = xstrdup(ns), .name = xstrdup(name)};
    send(userdata, c);
}

static void port_list(uint64_t ticket, ObjKind kind, const char *ns, void *userdata)
{
    Call *c = xnew(Call);

    *c = (Call){.ticket = ticket, .type = CALL_LIST, .kind = kind, .ns = xstrdup(ns)};
    send(userdata, c);
}

static void port_event(const PlanEvent *event, void *userdata)
{
    check_event(userdata, event);
}

static void port_op_done(_unused_ const char *key, const PlanOp *op, const ApiResult *result,
                         void *userdata)
{
    sim_trace(userdata, "← %s %s %s/%s: %s", plan_verb_to_string(op->verb),
              obj_resource(op->kind)->kind, op->ns, op->name,
              api_outcome_to_string(result->outcome));
    check_op(userdata, op, result->outcome);
}

static void port_bad_object(_unused_ ObjKind kind, const Error *error, void *userdata)
{
    sim_fail(userdata, "an object was refused: %s", error_message(error));
}

static void start_process(Sim *sim, _unused_ void *arg)
{
    const ReconcilerOptions options = {
        .port = {.submit = port_submit,
                 .get = port_get,
                 .list = port_list,
                 .event = port_event,
                 .op_done = port_op_done,
                 .bad_object = port_bad_object,
                 .userdata = sim},
        .plan = sim_plan_config(),
        .max_inflight = sim_chance(sim, 200) ? 4 : 0,
        .sweep_interval_ms = 60 * 1000,
        .seed = sim_random(sim, UINT64_MAX),
    };
    Line *l = sim->line;

    if (sim->ending)
        return;
    sim_trace(sim, "controller starts");
    l->reconciler = reconciler_new(&options);
    l->wake_us = -1;
    reconciler_set_time(l->reconciler, sim_wall_ms(sim), sim_mono_ms(sim));
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++)
        watch_stream_start(sim, l->streams[k]);
}

Line *line_new(Sim *sim)
{
    Line *l = xnew(Line);

    sim->line = l;
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++)
        l->streams[k] = watch_stream_new(k);
    start_process(sim, NULL);
    return l;
}

Line *line_free(Line *l)
{
    reconciler_free(l->reconciler);
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++)
        watch_stream_free(l->streams[k]);
    free(l);
    return NULL;
}

void line_restart(Sim *sim)
{
    Line *l = sim->line;

    if (!l->reconciler)
        return;
    sim_trace(sim, "controller dies");
    check_restart(sim);
    l->process++;
    l->reconciler = reconciler_free(l->reconciler);
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++)
        watch_stream_stop(l->streams[k]);
    sim_after(sim, sim_between(sim, 50, 3000), start_process, NULL);
}

void line_cut_watch(Sim *sim, ObjKind kind)
{
    if (!sim->line->reconciler)
        return;
    sim_trace(sim, "watch of %s is cut", obj_resource(kind)->plural);
    check_watch_cut(sim);
    watch_stream_cut(sim, sim->line->streams[kind]);
}

void line_watch_event(Sim *sim, Stored *o, const char *type)
{
    watch_stream_event(sim, sim->line->streams[o->kind], o, type);
}

int64_t line_up_since_ms(const Sim *sim)
{
    int64_t since = 0;

    if (!sim->line->reconciler)
        return -1;
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++) {
        int64_t t = watch_stream_up_since_ms(sim->line->streams[k]);
        if (t < 0)
            return -1;
        if (t > since)
            since = t;
    }
    return since;
}

static void wake_up(Sim *sim, _unused_ void *arg)
{
    if (sim->line->wake_us <= sim->mono_us)
        sim->line->wake_us = -1;
}

void line_step(Sim *sim)
{
    Line *l = sim->line;
    int64_t next, at;

    if (!l->reconciler)
        return;
    reconciler_set_time(l->reconciler, sim_wall_ms(sim), sim_mono_ms(sim));
    if (sim->quiet || !sim_chance(sim, 100)) /* or let several events come together */
        reconciler_run(l->reconciler);
    next = reconciler_next_ms(l->reconciler);
    if (next > 24 * 3600 * 1000LL)
        return;
    at = sim->mono_us + (next > 0 ? next * 1000 : 1000);
    if (l->wake_us >= 0 && l->wake_us <= at)
        return;
    l->wake_us = at;
    sim_at_us(sim, at, wake_up, NULL);
}
