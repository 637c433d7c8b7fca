/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program around the kube layer for tests over real sockets: a reflector whose events it prints,
 * and a client and an event recorder that do what standard input says. One JSON object a line, both
 * ways; the end of standard input ends it.
 *
 *   {"op":"send","id":1,"verb":"get","path":"/…","body":"…","patch":1,"never":true,
 *    "deadline_ms":5000,"cancel":false}
 *   {"op":"emit","ns":"default","name":"a","uid":"u","reason":"Why","message":"…","warning":false}
 *   {"op":"free_on","name":"a"}   frees the reflector inside of the handler for that object
 *   {"op":"stats","id":2}
 */
#include "common/base/args.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/stream.h"
#include "common/json/write.h"
#include "common/kube/events.h"
#include "common/kube/reflector.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)4 * 1024 * 1024)

typedef struct Options {
    char *kubeconfig, *in_cluster, *group, *version, *plural, *ns, *label_selector, *field_selector;
    int64_t page_size, watch_idle_ms;
    bool metadata_only;
} Options;

static const ArgSpec specs[] = {
    {.name = "kubeconfig", .type = ARG_STRING, .offset = offsetof(Options, kubeconfig)},
    {.name = "in-cluster", .type = ARG_STRING, .offset = offsetof(Options, in_cluster)},
    {.name = "group", .type = ARG_STRING, .offset = offsetof(Options, group)},
    {.name = "version", .type = ARG_STRING, .offset = offsetof(Options, version), .def = "v1"},
    {.name = "plural", .type = ARG_STRING, .offset = offsetof(Options, plural)},
    {.name = "namespace", .type = ARG_STRING, .offset = offsetof(Options, ns)},
    {.name = "label-selector", .type = ARG_STRING, .offset = offsetof(Options, label_selector)},
    {.name = "field-selector", .type = ARG_STRING, .offset = offsetof(Options, field_selector)},
    {.name = "page-size", .type = ARG_INT, .offset = offsetof(Options, page_size), .max = 5000},
    {.name = "watch-idle-ms",
     .type = ARG_INT,
     .offset = offsetof(Options, watch_idle_ms),
     .max = 600000},
    {.name = "metadata-only", .type = ARG_BOOL, .offset = offsetof(Options, metadata_only)},
};

static const ArgProgram program = {.name = "kube_probe",
                                   .summary = "prints what the kube layer sees",
                                   .specs = specs,
                                   .n_specs = ARRAY_SIZE(specs)};

typedef struct Probe {
    Options options;
    Loop *loop;
    KubeClient *client;
    KubeEvents *events;
    KubeResource resource;
    Reflector *reflector;
    JsonLineStream *commands;
    char *free_on;
} Probe;

/* --- output --- */

static void print_line(Buf *line)
{
    buf_append_char(line, '\n');
    if (line->failed || write(STDOUT_FILENO, buf_str(line), line->len) != (ssize_t)line->len)
        abort();
}

static JsonWriter line_begin(Buf *line, const char *event)
{
    JsonWriter w = json_writer(line);
    jw_object(&w);
    jw_kv_str(&w, "event", event);
    return w;
}

static void print_object(Probe *p, const char *event, JsonValue *object)
{
    _cleanup_buf_ Buf line = BUF_INIT(LINE_MAX_BYTES);
    JsonWriter w = line_begin(&line, event);
    jw_kv_str(&w, "name", json_str(object, "metadata.name"));
    jw_kv_str(&w, "version", json_str(object, "metadata.resourceVersion"));
    jw_kv_str(&w, "data", json_str(object, "data.text"));
    jw_object_end(&w);
    print_line(&line);
    if (p->free_on && str_eq(p->free_on, json_str(object, "metadata.name")))
        p->reflector = reflector_free(p->reflector);
}

static void write_error(JsonWriter *w, const Error *error)
{
    if (!error)
        return;
    jw_kv_str(w, "kind", error_kind_to_string(error->kind));
    jw_kv_str(w, "message", error->message);
    jw_kv_str(w, "hint", error->hint);
    jw_kv_str(w, "reason", error->reason);
    jw_kv_int(w, "http_status", error->http_status);
    jw_kv_int(w, "retry_after_ms", error->retry_after_ms);
}

/* --- reflector --- */

static void print_plain(const char *event)
{
    _cleanup_buf_ Buf line = BUF_INIT(LINE_MAX_BYTES);
    JsonWriter w = line_begin(&line, event);
    jw_object_end(&w);
    print_line(&line);
}

static void list_begin(void *userdata)
{
    (void)userdata;
    print_plain("list_begin");
}

static void list_end(void *userdata)
{
    (void)userdata;
    print_plain("list_end");
}

static void upsert(JsonValue *object, void *userdata)
{
    print_object(userdata, "upsert", object);
}

static void removed(JsonValue *object, void *userdata)
{
    print_object(userdata, "removed", object);
}

static void state(bool connected, const Error *error, void *userdata)
{
    (void)userdata;
    _cleanup_buf_ Buf line = BUF_INIT(LINE_MAX_BYTES);
    JsonWriter w = line_begin(&line, "state");
    jw_kv_bool(&w, "connected", connected);
    write_error(&w, error);
    jw_object_end(&w);
    print_line(&line);
}

static int start_reflector(Probe *p, Error **error)
{
    const Options *o = &p->options;
    if (str_empty(o->plural))
        return 0;
    p->resource = (KubeResource){
        .group = o->group ? o->group : "", .version = o->version, .plural = o->plural};
    const ReflectorOptions options = {
        .resource = &p->resource,
        .ns = o->ns,
        .label_selector = o->label_selector,
        .field_selector = o->field_selector,
        .metadata_only = o->metadata_only,
        .page_size = (unsigned)o->page_size,
        .watch_idle_ms = o->watch_idle_ms,
        .handlers = {.list_begin = list_begin,
                     .upsert = upsert,
                     .removed = removed,
                     .list_end = list_end,
                     .state = state},
        .userdata = p,
    };
    return reflector_new(p->client, &options, &p->reflector, error);
}

/* --- commands --- */

typedef struct Call {
    int64_t id;
} Call;

static void answered(JsonValue *object, const Error *error, void *userdata)
{
    _cleanup_free_ Call *call = userdata;
    _cleanup_buf_ Buf line = BUF_INIT(LINE_MAX_BYTES);
    JsonWriter w = line_begin(&line, "answer");
    jw_kv_int(&w, "id", call->id);
    jw_kv_bool(&w, "ok", !error);
    if (object) {
        jw_key(&w, "object");
        jw_value(&w, object);
    }
    write_error(&w, error);
    jw_object_end(&w);
    print_line(&line);
}

static int do_send(Probe *p, const JsonValue *c, Error **error)
{
    const char *body = json_str(c, "body");
    Call *call = xnew(Call);
    call->id = json_int(c, "id", 0);
    const KubeRequest request = {
        .verb = json_str(c, "verb"),
        .path = json_str(c, "path"),
        .patch = (KubePatch)json_int(c, "patch", 0),
        .body = body,
        .body_len = body ? strlen(body) : 0,
        .deadline_ms = json_int(c, "deadline_ms", 0),
        .retry = json_bool(c, "never", false) ? HTTP_RETRY_NEVER : HTTP_RETRY_SAFE,
        .on_done = answered,
        .userdata = call,
    };
    KubeCall *sent = NULL;
    int r = kube_send(p->client, &request, &sent, error);
    if (r >= 0 && json_bool(c, "cancel", false))
        kube_call_cancel(sent);
    if (r < 0 || json_bool(c, "cancel", false))
        free(call);
    return r;
}

static int do_emit(Probe *p, const JsonValue *c, Error **error)
{
    static const KubeResource pods = {
        .group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
    (void)error;
    const KubeEvent event = {
        .resource = &pods,
        .ns = json_str(c, "ns"),
        .name = json_str(c, "name"),
        .uid = json_str(c, "uid"),
        .warning = json_bool(c, "warning", false),
        .reason = json_str(c, "reason"),
        .message = json_str(c, "message"),
        .annotations_json = json_str(c, "annotations"),
    };
    kube_events_emit(p->events, &event);
    return 0;
}

static int do_free_on(Probe *p, const JsonValue *c, Error **error)
{
    (void)error;
    str_replace(&p->free_on, json_str(c, "name"));
    return 0;
}

static int do_stats(Probe *p, const JsonValue *c, Error **error)
{
    (void)error;
    _cleanup_buf_ Buf line = BUF_INIT(LINE_MAX_BYTES);
    JsonWriter w = line_begin(&line, "stats");
    jw_kv_int(&w, "id", json_int(c, "id", 0));
    jw_kv_int(&w, "events_dropped", (int64_t)kube_events_dropped(p->events));
    jw_kv_int(&w, "events_pending", (int64_t)kube_events_pending(p->events));
    jw_kv_int(&w, "in_flight", (int64_t)http_client_in_flight(kube_client_http(p->client)));
    if (p->reflector)
        jw_kv_str(&w, "version", reflector_resource_version(p->reflector));
    jw_object_end(&w);
    print_line(&line);
    return 0;
}

static int on_command(JsonValue *c, void *userdata, Error **error)
{
    static const struct {
        const char *op;
        int (*run)(Probe *p, const JsonValue *c, Error **error);
    } ops[] = {{"send", do_send}, {"emit", do_emit}, {"free_on", do_free_on}, {"stats", do_stats}};
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (str_eq(ops[i].op, json_str(c, "op")))
            return ops[i].run(userdata, c, error);
    return error_set(error, ERROR_INVALID, "unknown op");
}

static void on_input(int fd, uint32_t events, void *userdata)
{
    (void)events;
    Probe *p = userdata;
    static char piece[65536];
    _cleanup_error_ Error *error = NULL;
    ssize_t n = read(fd, piece, sizeof(piece));
    if (n > 0 && json_line_stream_feed(p->commands, piece, (size_t)n, &error) >= 0)
        return;
    if (error)
        log_error("bad command", LOGF_STR("error", error_message(error)));
    loop_exit(p->loop, error ? 1 : 0);
}

/* --- life --- */

static int probe_start(Probe *p, Error **error)
{
    const Options *o = &p->options;
    const KubeClientOptions client = {.user_agent = "kube_probe/1", .field_manager = "probe"};
    KubeConfig *config = NULL;
    int r = o->in_cluster ? kube_config_load_in_cluster(o->in_cluster, &config, error)
                          : kube_config_load(o->kubeconfig, NULL, &config, error);
    if (r < 0)
        return r;
    r = loop_new(&clock_system, &p->loop, error);
    if (r < 0)
        return r;
    r = kube_client_new(p->loop, config, &client, &p->client, error);
    if (r < 0)
        return r;
    p->events = kube_events_new(p->client, "probe", "probe-0");
    p->commands = json_line_stream_new(LINE_MAX_BYTES, on_command, p);
    r = loop_fd_add(p->loop, STDIN_FILENO, POLLIN, on_input, p);
    return r < 0 ? r : start_reflector(p, error);
}

static void probe_stop(Probe *p)
{
    reflector_free(p->reflector);
    kube_events_free(p->events);
    kube_client_free(p->client);
    loop_free(p->loop);
    json_line_stream_free(p->commands);
    free(p->free_on);
    args_done(&program, &p->options);
}

int main(int argc, char **argv)
{
    Probe p = {0};
    _cleanup_error_ Error *error = NULL;
    log_init("probe", LOG_INFO, LOG_FORMAT_TEXT);
    int r = args_parse(&program, argc, argv, &p.options, &error);
    if (r == 0)
        r = probe_start(&p, &error);
    if (r < 0)
        log_error("cannot start", LOGF_STR("error", error_message(error)));
    int code = r < 0 ? 1 : loop_run(p.loop);
    probe_stop(&p);
    return code;
}
