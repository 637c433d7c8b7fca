/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/events.h"

#include "common/base/hashmap.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/write.h"
#include "common/net/crypto.h"

#include <string.h>

#define EQUAL_WITHIN_MS ((int64_t)10 * 60 * 1000)
#define COUNT_EVERY_MS 60000
#define BURST_MAX 25
#define REFILL_MS 5000
#define SWEEP_MS 60000
#define IN_FLIGHT_MAX 2
#define MESSAGE_MAX 1024 /* the API server's limits */
#define REASON_MAX 128
#define NAME_STEM_MAX 230 /* of 253, with a dot and 16 digits behind it */
#define BODY_MAX ((size_t)64 * 1024)

typedef enum RecordState { RECORD_QUEUED, RECORD_SENDING, RECORD_RESTING } RecordState;

/* One Event object: the first of its kind, and those like it within 10 min. */
typedef struct Record {
    KubeEvents *events;
    char *key;       /* what makes events equal, hashed */
    char *name;      /* of the Event object */
    KubeEvent event; /* its strings are those below; after the first write only ns and reason */
    char *ns, *reason;
    char *strings[6];
    size_t n_strings;
    int64_t first_ms, last_ms; /* wall clock */
    bool created;              /* the first write was sent */
    int64_t written_ms;        /* monotonic, of the last write */
    unsigned count, written_count;
    RecordState state;
    List node;       /* in queue or resting */
    LoopTimer timer; /* the next count, or the record's end */
    KubeCall *call;
} Record;

/* What an object may still say. */
typedef struct Bucket {
    int tokens;
    int64_t refilled_ms;
} Bucket;

struct KubeEvents {
    KubeClient *client;
    Loop *loop;
    char *component;
    char *instance;
    Hashmap *records; /* key → Record */
    Hashmap *buckets; /* uid → Bucket */
    List queue;       /* for their write */
    List resting;     /* written, the longest rest first */
    size_t pending;   /* length of queue */
    unsigned in_flight;
    uint64_t dropped;
    LoopTimer sweep;
};

static int64_t mono_ms(const KubeEvents *e)
{
    return clock_monotonic_ms(loop_clock(e->loop));
}

static int64_t wall_ms(const KubeEvents *e)
{
    return clock_realtime_ms(loop_clock(e->loop));
}

/* --- rate per object --- */

static void bucket_refill(Bucket *b, int64_t now)
{
    int64_t more = (now - b->refilled_ms) / REFILL_MS;
    b->refilled_ms += more * REFILL_MS;
    b->tokens = more >= BURST_MAX - b->tokens ? BURST_MAX : b->tokens + (int)more;
}

/* A full bucket says nothing that a new one would not. */
static void drop_full_buckets(KubeEvents *e)
{
    int64_t now = mono_ms(e);
    hashmap_foreach (it, e->buckets) {
        Bucket *b = it.value;
        bucket_refill(b, now);
        if (b->tokens == BURST_MAX) {
            hashmap_remove(e->buckets, it.key);
            free(b);
        }
    }
}

static Bucket *bucket_get(KubeEvents *e, const char *uid)
{
    Bucket *b = hashmap_get(e->buckets, uid);
    if (b)
        return b;
    if (hashmap_size(e->buckets) >= KUBE_EVENTS_QUEUE_MAX)
        drop_full_buckets(e);
    if (hashmap_size(e->buckets) >= KUBE_EVENTS_QUEUE_MAX)
        return NULL;
    b = xnew(Bucket);
    *b = (Bucket){.tokens = BURST_MAX, .refilled_ms = mono_ms(e)};
    hashmap_put(e->buckets, uid, b);
    return b;
}

/* Where so many objects speak that there is no bucket left, the queue is the limit. */
static bool bucket_take(KubeEvents *e, const char *uid)
{
    Bucket *b = bucket_get(e, uid);
    if (!b)
        return true;
    bucket_refill(b, mono_ms(e));
    if (b->tokens == 0)
        return false;
    b->tokens--;
    return true;
}

static void sweep_timer(void *userdata)
{
    KubeEvents *e = userdata;
    drop_full_buckets(e);
    loop_timer_set(e->loop, &e->sweep, SWEEP_MS);
}

/* --- records --- */

/* A copy of at most max bytes, not cut within a character. */
static char *copy_cut(const char *s, size_t max)
{
    size_t len = strlen(s);
    if (len > max)
        for (len = max; len > 0 && ((unsigned char)s[len] & 0xC0) == 0x80;)
            len--;
    return xstrndup(s, len);
}

static const char *record_keep(Record *r, const char *s, size_t max)
{
    if (!s)
        return NULL;
    char *copy = copy_cut(s, max);
    r->strings[r->n_strings++] = copy;
    return copy;
}

static void record_copy_event(Record *r, const KubeEvent *from)
{
    r->event = *from;
    r->event.ns = r->ns = xstrdup(from->ns ? from->ns : "default");
    r->event.reason = r->reason = copy_cut(from->reason, REASON_MAX);
    r->event.name = record_keep(r, from->name, SIZE_MAX);
    r->event.uid = record_keep(r, from->uid, SIZE_MAX);
    r->event.resource_version = record_keep(r, from->resource_version, SIZE_MAX);
    r->event.action = record_keep(r, from->action, REASON_MAX);
    r->event.message = record_keep(r, from->message, MESSAGE_MAX);
    r->event.annotations_json = record_keep(r, from->annotations_json, SIZE_MAX);
}

/* A record may rest for minutes: what only the first write needed goes. */
static void record_slim(Record *r)
{
    while (r->n_strings > 0)
        free(r->strings[--r->n_strings]);
    r->event = (KubeEvent){.ns = r->ns, .reason = r->reason};
}

static void record_set_state(Record *r, RecordState state)
{
    KubeEvents *e = r->events;
    if (r->state == RECORD_QUEUED && list_linked(&r->node))
        e->pending--;
    list_remove(&r->node);
    r->state = state;
    if (state == RECORD_QUEUED) {
        list_push(&e->queue, &r->node);
        e->pending++;
    } else if (state == RECORD_RESTING) {
        list_push(&e->resting, &r->node);
    }
}

static void record_free(Record *r)
{
    record_set_state(r, RECORD_SENDING); /* out of the lists */
    loop_timer_stop(r->events->loop, &r->timer);
    kube_call_cancel(r->call);
    record_slim(r);
    free(r->ns);
    free(r->reason);
    free(r->key);
    free(r->name);
    free(r);
}

static void record_forget(Record *r)
{
    hashmap_remove(r->events->records, r->key);
    record_free(r);
}

static char *event_key(const KubeEvent *event)
{
    _cleanup_free_ char *text =
        xasprintf("%s\n%s\n%s\n%s\n%s\n%d", event->ns ? event->ns : "", event->name,
                  event->uid ? event->uid : "", event->reason, event->message, event->warning);
    char *key = xmalloc(33);
    crypto_sha256_hex(text, strlen(text), key, 32);
    return key;
}

static char *event_name(const KubeEvent *event)
{
    unsigned char random[8];
    char hex[2 * sizeof(random) + 1];
    crypto_random(random, sizeof(random));
    str_hex(random, sizeof(random), hex);
    size_t len = strnlen(event->name, NAME_STEM_MAX);
    while (len > 0 && event->name[len - 1] == '.')
        len--;
    return xasprintf("%.*s.%s", (int)len, event->name, hex);
}

/* --- texts --- */

static void write_object(JsonWriter *w, const KubeEvent *event)
{
    const KubeResource *r = event->resource;
    _cleanup_free_ char *api_version =
        str_empty(r->group) ? xstrdup(r->version) : xasprintf("%s/%s", r->group, r->version);
    jw_key(w, "involvedObject");
    jw_object(w);
    jw_kv_str(w, "apiVersion", api_version);
    jw_kv_str(w, "kind", r->kind);
    jw_kv_str_opt(w, "namespace", event->ns);
    jw_kv_str(w, "name", event->name);
    jw_kv_str_opt(w, "uid", event->uid);
    jw_kv_str_opt(w, "resourceVersion", event->resource_version);
    jw_object_end(w);
}

static void write_source(JsonWriter *w, const KubeEvents *e)
{
    jw_key(w, "source");
    jw_object(w);
    jw_kv_str(w, "component", e->component);
    jw_object_end(w);
    jw_kv_str(w, "reportingComponent", e->component);
    jw_kv_str(w, "reportingInstance", e->instance);
}

static void write_event(const Record *r, Buf *out)
{
    char first[RFC3339_MAX], last[RFC3339_MAX];
    time_format_rfc3339(r->first_ms, first);
    time_format_rfc3339(r->last_ms, last);
    JsonWriter w = json_writer(out);
    jw_object(&w);
    jw_kv_str(&w, "apiVersion", "v1");
    jw_kv_str(&w, "kind", "Event");
    jw_key(&w, "metadata");
    jw_object(&w);
    jw_kv_str(&w, "name", r->name);
    jw_kv_str(&w, "namespace", r->ns);
    if (r->event.annotations_json)
        jw_kv_raw(&w, "annotations", r->event.annotations_json);
    jw_object_end(&w);
    write_object(&w, &r->event);
    jw_kv_str(&w, "type", r->event.warning ? "Warning" : "Normal");
    jw_kv_str(&w, "reason", r->event.reason);
    jw_kv_str_opt(&w, "action", r->event.action);
    jw_kv_str(&w, "message", r->event.message);
    jw_kv_str(&w, "firstTimestamp", first);
    jw_kv_str(&w, "lastTimestamp", last);
    jw_kv_int(&w, "count", r->count);
    write_source(&w, r->events);
    jw_object_end(&w);
}

static void write_count(const Record *r, Buf *out)
{
    char last[RFC3339_MAX];
    time_format_rfc3339(r->last_ms, last);
    JsonWriter w = json_writer(out);
    jw_object(&w);
    jw_kv_str(&w, "lastTimestamp", last);
    jw_kv_int(&w, "count", r->count);
    jw_object_end(&w);
}

/* --- writes --- */

static void pump(KubeEvents *e);

/* Waits for the next count to write, or for the end of the 10 min. */
static void record_rest(Record *r)
{
    KubeEvents *e = r->events;
    int64_t until = r->count > r->written_count ? r->written_ms + COUNT_EVERY_MS - mono_ms(e)
                                                : r->last_ms + EQUAL_WITHIN_MS - wall_ms(e);
    record_set_state(r, RECORD_RESTING);
    loop_timer_set(e->loop, &r->timer, until);
}

static void record_queue(Record *r)
{
    record_set_state(r, RECORD_QUEUED);
    pump(r->events);
}

static void record_timer(void *userdata)
{
    Record *r = userdata;
    if (r->count > r->written_count)
        record_queue(r);
    else
        record_forget(r);
}

static void written(JsonValue *object, const Error *error, void *userdata)
{
    (void)object;
    Record *r = userdata;
    KubeEvents *e = r->events;
    r->call = NULL;
    e->in_flight--;
    record_slim(r);
    if (error) {
        e->dropped++;
        log_debug("event not written", LOGF_STR("reason", r->event.reason),
                  LOGF_STR("error", error_message(error)));
        record_forget(r);
    } else {
        record_rest(r);
    }
    pump(e);
}

static int record_send(Record *r, const KubeRequest *request, const Buf *body, Error **error)
{
    int ret = buf_check(body, "event", error);
    if (ret < 0)
        return ret;
    KubeRequest full = *request;
    full.body = buf_str(body);
    full.body_len = body->len;
    full.ignore_object = true;
    full.background = true;
    full.on_done = written;
    full.userdata = r;
    return kube_send(r->events->client, &full, &r->call, error);
}

static int record_write(Record *r, Error **error)
{
    static const KubeResource events = {
        .group = "", .version = "v1", .plural = "events", .kind = "Event"};
    bool first = !r->created;
    _cleanup_buf_ Buf body = BUF_INIT(BODY_MAX);
    _cleanup_free_ char *path = kube_path_dup(&events, r->ns, first ? NULL : r->name, NULL);
    if (first)
        write_event(r, &body);
    else
        write_count(r, &body);
    const KubeRequest request = {
        .verb = first ? "create" : "patch",
        .path = path,
        .patch = first ? KUBE_PATCH_NONE : KUBE_PATCH_MERGE,
    };
    r->created = true;
    r->written_ms = mono_ms(r->events);
    r->written_count = r->count;
    return record_send(r, &request, &body, error);
}

static void pump(KubeEvents *e)
{
    while (e->in_flight < IN_FLIGHT_MAX && !list_empty(&e->queue)) {
        Record *r = LIST_ENTRY(e->queue.next, Record, node);
        record_set_state(r, RECORD_SENDING);
        if (record_write(r, NULL) < 0) {
            e->dropped++;
            record_forget(r);
        } else {
            e->in_flight++;
        }
    }
}

/* --- interface --- */

KubeEvents *kube_events_new(KubeClient *c, const char *component, const char *instance)
{
    KubeEvents *e = xnew(KubeEvents);
    e->client = c;
    e->loop = kube_client_loop(c);
    e->component = xstrdup(component);
    e->instance = xstrdup(instance);
    e->records = hashmap_new();
    e->buckets = hashmap_new();
    list_init(&e->queue);
    list_init(&e->resting);
    e->sweep = (LoopTimer){.fn = sweep_timer, .userdata = e};
    loop_timer_set(e->loop, &e->sweep, SWEEP_MS);
    return e;
}

static void free_record_value(void *p)
{
    record_free(p);
}

KubeEvents *kube_events_free(KubeEvents *e)
{
    if (!e)
        return NULL;
    loop_timer_stop(e->loop, &e->sweep);
    hashmap_free_with(e->records, free_record_value);
    hashmap_free_with(e->buckets, free);
    free(e->component);
    free(e->instance);
    free(e);
    return NULL;
}

/* True where an equal event is known already and was counted. */
static bool count_equal(KubeEvents *e, const char *key)
{
    Record *r = hashmap_get(e->records, key);
    if (!r)
        return false;
    r->count++;
    r->last_ms = wall_ms(e);
    if (r->state == RECORD_RESTING)
        record_rest(r);
    return true;
}

static void record_new(KubeEvents *e, const KubeEvent *event, char *key)
{
    Record *r = xnew(Record);
    r->events = e;
    r->key = key;
    r->name = event_name(event);
    r->timer = (LoopTimer){.fn = record_timer, .userdata = r};
    r->first_ms = r->last_ms = wall_ms(e);
    r->count = 1;
    record_copy_event(r, event);
    hashmap_put(e->records, key, r);
    record_queue(r);
}

/* A full table forgets the event that has rested longest; one that is all queue has no room. */
static bool make_room(KubeEvents *e)
{
    if (hashmap_size(e->records) < KUBE_EVENTS_QUEUE_MAX)
        return true;
    if (list_empty(&e->resting))
        return false;
    record_forget(LIST_ENTRY(e->resting.next, Record, node));
    return true;
}

void kube_events_emit(KubeEvents *e, const KubeEvent *event)
{
    _cleanup_free_ char *key = event_key(event);
    if (count_equal(e, key))
        return;
    if (!make_room(e) || !bucket_take(e, event->uid ? event->uid : event->name)) {
        e->dropped++;
        return;
    }
    record_new(e, event, TAKE_PTR(key));
}

uint64_t kube_events_dropped(const KubeEvents *e)
{
    return e->dropped;
}

size_t kube_events_pending(const KubeEvents *e)
{
    return e->pending + e->in_flight;
}
