/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/reflector.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/stream.h"
#include "common/net/crypto.h"

#include <errno.h>
#include <string.h>

#define PAGE_SIZE_DEFAULT 500
#define OBJECT_MAX_BYTES ((size_t)8 * 1024 * 1024) /* the API server's own limit is about 3 MiB */
#define URL_MAX_BYTES ((size_t)64 * 1024)
#define LIST_DEADLINE_MS ((int64_t)10 * 60 * 1000)
#define LIST_IDLE_MS 60000 /* the server may collect for a while before the first byte */
#define WATCH_IDLE_DEFAULT_MS 90000
#define WATCH_SECONDS_MIN 300 /* the server ends a watch after this; the same again at random */
#define WATCH_SETTLED_MS 5000 /* a watch that lived this long makes earlier failures forgotten */
#define BACKOFF_BASE_MS 200
#define BACKOFF_MAX_MS 30000
#define VERSION_MAX 256

typedef enum Phase { PHASE_LIST, PHASE_WATCH } Phase;

struct Reflector {
    KubeClient *client;
    const KubeResource *resource;
    ReflectorHandlers handlers;
    void *userdata;
    char *path;     /* without query */
    char *selector; /* "&labelSelector=…&fieldSelector=…", maybe empty */
    bool metadata_only;
    unsigned page_size;
    int64_t watch_idle_ms;

    Phase phase; /* what is under way, or comes after the wait */
    HttpTransfer *transfer;
    JsonListStream *list;
    JsonLineStream *lines;
    LoopTimer wait;
    unsigned failures;
    int64_t watch_since_ms;
    bool advanced; /* the version, since the list or watch began */

    char *version;   /* resourceVersion the view has reached, or NULL */
    char *next_page; /* continue token, or NULL */
    bool whole_list; /* ask without a limit: the last continue token had expired */
    bool synced;
    bool connected;
    bool in_stream; /* a handler may be running inside of a stream's feed */
    bool freed;
};

/* --- consumer --- */

static void set_connected(Reflector *r, bool connected, const Error *error)
{
    bool changed = r->connected != connected;
    r->connected = connected;
    if ((changed || error) && r->handlers.state)
        r->handlers.state(connected, error, r->userdata);
}

static bool is_usable(const Reflector *r, const JsonValue *object)
{
    if (!str_empty(json_str(object, "metadata.name")))
        return true;
    log_warn("object without a name skipped", LOGF_STR("resource", r->resource->plural));
    return false;
}

static void deliver(Reflector *r, JsonValue *object, void (*handler)(JsonValue *, void *))
{
    if (is_usable(r, object))
        handler(object, r->userdata);
}

static void set_version(Reflector *r, const char *version)
{
    if (str_empty(version) || strlen(version) > VERSION_MAX || str_eq(version, r->version))
        return;
    str_replace(&r->version, version);
    r->advanced = true;
}

/* --- addresses --- */

static uint32_t random_below(uint32_t n)
{
    uint32_t bits;
    crypto_random(&bits, sizeof(bits));
    return bits % n;
}

static void add_selector(Buf *out, const char *key, const char *value)
{
    if (str_empty(value))
        return;
    buf_printf(out, "&%s=", key);
    str_url_encode(out, value, strlen(value), false);
}

static void list_url(const Reflector *r, Buf *url)
{
    buf_printf(url, "%s?limit=%u%s", r->path, r->whole_list ? 0 : r->page_size, r->selector);
    if (r->next_page)
        add_selector(url, "continue", r->next_page);
}

static void watch_url(const Reflector *r, Buf *url)
{
    buf_printf(url, "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%u%s", r->path,
               WATCH_SECONDS_MIN + random_below(WATCH_SECONDS_MIN), r->selector);
    add_selector(url, "resourceVersion", r->version);
}

static const char *accept_type(const Reflector *r)
{
    if (!r->metadata_only)
        return "application/json";
    return r->phase == PHASE_LIST
               ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
               : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
}

/* --- what comes next --- */

static void begin(Reflector *r);

static void wait_over(void *userdata)
{
    begin(userdata);
}

static int64_t backoff_ms(unsigned failures)
{
    int64_t delay = BACKOFF_BASE_MS;
    for (unsigned i = 1; i < failures && delay < BACKOFF_MAX_MS; i++)
        delay *= 2;
    if (delay > BACKOFF_MAX_MS)
        delay = BACKOFF_MAX_MS;
    return delay / 2 + random_below((uint32_t)(delay / 2));
}

static void begin_after(Reflector *r, Phase phase, int64_t delay_ms)
{
    r->phase = phase;
    loop_timer_set(kube_client_loop(r->client), &r->wait, delay_ms);
}

static void begin_after_failure(Reflector *r, Phase phase, const Error *error)
{
    r->failures++;
    int64_t delay = backoff_ms(r->failures);
    if (error->retry_after_ms > delay)
        delay = error->retry_after_ms;
    begin_after(r, phase, delay);
    set_connected(r, false, error);
}

static void list_anew(Reflector *r, bool whole)
{
    str_replace(&r->next_page, NULL);
    r->whole_list = whole;
}

/* --- list --- */

static int on_listed(JsonValue *item, void *userdata, Error **error)
{
    Reflector *r = userdata;
    if (!r->freed)
        deliver(r, item, r->handlers.upsert);
    return r->freed ? error_set(error, ERROR_CANCELLED, "the reflector is gone") : 0;
}

static void list_complete(Reflector *r)
{
    list_anew(r, false);
    r->synced = true;
    if (r->handlers.list_end)
        r->handlers.list_end(r->userdata);
    if (!r->freed)
        begin_after(r, PHASE_WATCH, 0);
}

static void list_page_complete(Reflector *r, const JsonValue *envelope)
{
    const char *next = json_str(envelope, "metadata.continue");
    if (str_empty(next)) {
        set_version(r, json_str(envelope, "metadata.resourceVersion"));
        list_complete(r);
        return;
    }
    str_replace(&r->next_page, next);
    begin_after(r, PHASE_LIST, 0);
}

static void list_failed(Reflector *r, const Error *error)
{
    /* An expired page: what was said so far is of an older state. One answer is of one state. */
    if (error->kind == ERROR_GONE)
        list_anew(r, r->next_page != NULL);
    begin_after_failure(r, PHASE_LIST, error);
}

static void list_ended(Reflector *r, Error *error)
{
    _cleanup_error_ Error *unfinished = NULL;
    _cleanup_(json_list_stream_freep) JsonListStream *list = TAKE_PTR(r->list);
    const JsonValue *envelope = NULL;
    if (!error && json_list_stream_finish(list, &envelope, &unfinished) < 0)
        error = unfinished;
    if (!error && str_empty(json_str(envelope, "metadata.resourceVersion"))) {
        error_set(&unfinished, ERROR_UNAVAILABLE, "list %s: the answer is no list", r->path);
        error = unfinished;
    }
    if (error)
        list_failed(r, error);
    else
        list_page_complete(r, envelope);
}

/* --- watch --- */

static void on_upsert(Reflector *r, JsonValue *object)
{
    deliver(r, object, r->handlers.upsert);
}

static void on_removed(Reflector *r, JsonValue *object)
{
    deliver(r, object, r->handlers.removed);
}

typedef struct EventType {
    const char *name;
    void (*handle)(Reflector *r, JsonValue *object); /* NULL: only the version counts */
} EventType;

static const EventType event_types[] = {
    {"ADDED", on_upsert},
    {"MODIFIED", on_upsert},
    {"DELETED", on_removed},
    {"BOOKMARK", NULL},
};

static const EventType *find_event_type(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(event_types); i++)
        if (str_eq(event_types[i].name, name))
            return &event_types[i];
    return NULL;
}

/* The object of an ERROR event is a Status, with the code that a status line would have had. */
static int event_error(const Reflector *r, const JsonValue *status, Error **error)
{
    _cleanup_buf_ Buf text = BUF_INIT((size_t)64 * 1024);
    json_print(status, &text);
    _cleanup_error_ Error *said =
        kube_status_error("watch", r->path, (int)json_int(status, "code", 500), buf_str(&text),
                          text.failed ? 0 : text.len, 0);
    int code = error_errno(said->kind);
    if (error)
        *error = TAKE_PTR(said);
    return code;
}

static int on_event(JsonValue *event, void *userdata, Error **error)
{
    Reflector *r = userdata;
    const char *name = json_str(event, "type");
    JsonValue *object = json_get(event, "object");
    if (str_eq(name, "ERROR"))
        return event_error(r, object, error);
    const EventType *type = find_event_type(name);
    if (!type) {
        log_warn("unknown watch event skipped", LOGF_STR("resource", r->resource->plural),
                 LOGF_STR("type", name));
        return 0;
    }
    if (type->handle)
        type->handle(r, object);
    if (r->freed)
        return error_set(error, ERROR_CANCELLED, "the reflector is gone");
    set_version(r, json_str(object, "metadata.resourceVersion"));
    return 0;
}

/* With these the version we hold is of no use any more. */
static bool needs_list(const Error *error)
{
    return error->kind == ERROR_GONE || error->kind == ERROR_NOT_FOUND ||
           error->kind == ERROR_INVALID || strstr(error->message, "Too large resource version");
}

static bool watch_was_settled(const Reflector *r)
{
    int64_t now = loop_now_ms(kube_client_loop(r->client));
    return r->watch_since_ms > 0 && now - r->watch_since_ms >= WATCH_SETTLED_MS;
}

static void watch_closed(Reflector *r)
{
    _cleanup_error_ Error *error = NULL;
    if (watch_was_settled(r)) {
        begin_after(r, PHASE_WATCH, 0);
        return;
    }
    error_set(&error, ERROR_UNAVAILABLE, "watch %s: closed at once", r->path);
    begin_after_failure(r, PHASE_WATCH, error);
}

static void watch_ended(Reflector *r, const Error *error)
{
    r->lines = json_line_stream_free(r->lines);
    if (watch_was_settled(r) || r->advanced)
        r->failures = 0;
    if (!error)
        watch_closed(r);
    else
        begin_after_failure(r, needs_list(error) ? PHASE_LIST : PHASE_WATCH, error);
}

/* --- transfers --- */

static int on_data(const char *data, size_t len, void *userdata, Error **error)
{
    Reflector *r = userdata;
    r->in_stream = true;
    int ret = r->phase == PHASE_LIST ? json_list_stream_feed(r->list, data, len, error)
                                     : json_line_stream_feed(r->lines, data, len, error);
    r->in_stream = false;
    if (!r->freed)
        return ret;
    reflector_free(r);
    return -ECANCELED;
}

static void on_status(int status, void *userdata)
{
    Reflector *r = userdata;
    if (r->phase != PHASE_WATCH || status != 200)
        return;
    r->watch_since_ms = loop_now_ms(kube_client_loop(r->client));
    r->in_stream = true;
    set_connected(r, true, NULL);
    r->in_stream = false;
    if (r->freed)
        reflector_free(r);
}

static void on_done(const HttpResponse *response, const Error *error, void *userdata)
{
    Reflector *r = userdata;
    const char *verb = r->phase == PHASE_LIST ? "list" : "watch";
    _cleanup_error_ Error *own = NULL;
    r->transfer = NULL;
    if (error)
        own = error_copy(error);
    else if (response->status != 200)
        own = kube_status_error(verb, r->path, response->status, response->body, response->body_len,
                                response->retry_after_ms);
    r->in_stream = true;
    if (r->phase == PHASE_LIST)
        list_ended(r, own);
    else
        watch_ended(r, own);
    r->in_stream = false;
    if (r->freed)
        reflector_free(r);
}

static HttpRequest request_for_phase(Reflector *r)
{
    bool list = r->phase == PHASE_LIST;
    return (HttpRequest){
        .method = "GET",
        .accept = accept_type(r),
        .deadline_ms = list ? LIST_DEADLINE_MS : HTTP_NO_DEADLINE,
        .idle_ms = list ? LIST_IDLE_MS : r->watch_idle_ms,
        .max_tries = 1, /* repeating is this file's job */
        .dedicated = !list,
        .on_status = on_status,
        .on_data = on_data,
        .on_done = on_done,
        .userdata = r,
    };
}

static void prepare_phase(Reflector *r, Buf *url)
{
    r->watch_since_ms = 0;
    r->advanced = false;
    if (r->phase == PHASE_WATCH) {
        r->lines = json_line_stream_new(OBJECT_MAX_BYTES, on_event, r);
        watch_url(r, url);
        return;
    }
    r->list = json_list_stream_new(OBJECT_MAX_BYTES, on_listed, r);
    list_url(r, url);
    if (r->next_page)
        return;
    if (r->handlers.list_begin)
        r->handlers.list_begin(r->userdata);
}

static void begin(Reflector *r)
{
    _cleanup_buf_ Buf url = BUF_INIT(URL_MAX_BYTES);
    _cleanup_error_ Error *error = NULL;
    r->in_stream = true;
    prepare_phase(r, &url);
    r->in_stream = false;
    if (r->freed) {
        reflector_free(r);
        return;
    }
    HttpRequest request = request_for_phase(r);
    request.path = buf_str(&url);
    int ret = buf_check(&url, "the request's address", &error);
    if (ret >= 0)
        ret = http_client_send(kube_client_http(r->client), &request, &r->transfer, &error);
    if (ret < 0)
        begin_after_failure(r, r->phase, error);
}

/* --- life --- */

static char *selector_query(const ReflectorOptions *o)
{
    _cleanup_buf_ Buf out = BUF_INIT(URL_MAX_BYTES / 2);
    add_selector(&out, "labelSelector", o->label_selector);
    add_selector(&out, "fieldSelector", o->field_selector);
    return out.failed ? NULL : buf_take(&out, NULL);
}

int reflector_new(KubeClient *c, const ReflectorOptions *options, Reflector **ret, Error **error)
{
    _cleanup_free_ char *selector = selector_query(options);
    if (!selector)
        return error_set(error, ERROR_TOO_LARGE, "the selector of %s is too long",
                         options->resource->plural);
    Reflector *r = xnew(Reflector);
    r->client = c;
    r->resource = options->resource;
    r->handlers = options->handlers;
    r->userdata = options->userdata;
    r->path = kube_path_dup(options->resource, options->ns, NULL, NULL);
    r->selector = TAKE_PTR(selector);
    r->metadata_only = options->metadata_only;
    r->page_size = options->page_size ? options->page_size : PAGE_SIZE_DEFAULT;
    r->watch_idle_ms = options->watch_idle_ms ? options->watch_idle_ms : WATCH_IDLE_DEFAULT_MS;
    r->wait = (LoopTimer){.fn = wait_over, .userdata = r};
    begin_after(r, PHASE_LIST, 0);
    *ret = r;
    return 0;
}

Reflector *reflector_free(Reflector *r)
{
    if (!r)
        return NULL;
    loop_timer_stop(kube_client_loop(r->client), &r->wait);
    r->transfer = http_transfer_cancel(r->transfer);
    if (r->in_stream) { /* a handler asks: whoever called it finishes this */
        r->freed = true;
        return NULL;
    }
    json_list_stream_free(r->list);
    json_line_stream_free(r->lines);
    free(r->path);
    free(r->selector);
    free(r->version);
    free(r->next_page);
    free(r);
    return NULL;
}

bool reflector_synced(const Reflector *r)
{
    return r->synced;
}

bool reflector_connected(const Reflector *r)
{
    return r->connected;
}

const char *reflector_resource_version(const Reflector *r)
{
    return r->version ? r->version : "";
}
