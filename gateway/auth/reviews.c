/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/auth/reviews.h"

#include "common/base/hashmap.h"
#include "common/base/list.h"
#include "gateway/auth/ttl_map.h"

#include <pthread.h>

#define REVIEW_DEADLINE_MS 10000

typedef struct Waiter {
    List node;
    ReviewDoneFn done;
    void *userdata;
} Waiter;

/* One question under way and everyone who asked it. */
typedef struct Flight {
    Reviews *reviews;
    char *key;
    List waiters;
    KubeCall *call;
} Flight;

struct Reviews {
    KubeClient *kube;
    ReviewsOptions options;
    Hashmap *flights;
    uint64_t asked;
    bool stopped;
    pthread_mutex_t lock; /* guards both maps */
    TtlMap *accepted;
    TtlMap *refused; /* apart, so that a flood of strangers pushes no one out */
};

void review_verdict_done(ReviewVerdict *v)
{
    v->principal = principal_unref(v->principal);
    v->error = error_free(v->error);
}

static ReviewVerdict verdict_copy(const ReviewVerdict *v)
{
    return (ReviewVerdict){
        .principal = v->principal ? principal_ref(v->principal) : NULL,
        .allowed = v->allowed,
        .error = v->error ? error_copy(v->error) : NULL,
    };
}

static void verdict_free(void *value)
{
    ReviewVerdict *v = value;

    review_verdict_done(v);
    free(v);
}

static int64_t now_ms(const Reviews *r)
{
    return clock_monotonic_ms(loop_clock(kube_client_loop(r->kube)));
}

Reviews *reviews_new(KubeClient *kube, const ReviewsOptions *options)
{
    Reviews *r = xnew(Reviews);

    r->kube = kube;
    r->options = *options;
    r->flights = hashmap_new();
    r->accepted = ttl_map_new(REVIEWS_CACHED_MAX, verdict_free);
    r->refused = ttl_map_new(REVIEWS_CACHED_MAX, verdict_free);
    (void)pthread_mutex_init(&r->lock, NULL);
    return r;
}

static void flight_free(Flight *f)
{
    (void)kube_call_cancel(f->call);
    free(f->key);
    free(f);
}

static void flight_answer(Flight *f, const ReviewVerdict *verdict, const Error *error)
{
    List *node;

    while ((node = list_pop(&f->waiters))) {
        Waiter *w = LIST_ENTRY(node, Waiter, node);

        w->done(verdict, error, w->userdata);
        free(w);
    }
}

void reviews_stop(Reviews *r)
{
    _cleanup_error_ Error *error = NULL;

    r->stopped = true;
    (void)error_set(&error, ERROR_CANCELLED, "the gateway is stopping");
    hashmap_foreach (it, r->flights) {
        Flight *f = hashmap_remove(r->flights, it.key);

        flight_answer(f, NULL, error);
        flight_free(f);
    }
}

Reviews *reviews_free(Reviews *r)
{
    if (!r)
        return NULL;
    reviews_stop(r);
    (void)hashmap_free(r->flights);
    (void)ttl_map_free(r->accepted);
    (void)ttl_map_free(r->refused);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}

bool reviews_cached(Reviews *r, const char *key, ReviewVerdict *ret)
{
    const ReviewVerdict *v;

    (void)pthread_mutex_lock(&r->lock);
    v = ttl_map_get(r->accepted, key, now_ms(r));
    if (!v)
        v = ttl_map_get(r->refused, key, now_ms(r));
    if (v)
        *ret = verdict_copy(v);
    (void)pthread_mutex_unlock(&r->lock);
    return v != NULL;
}

static void keep(Reviews *r, const char *key, const ReviewVerdict *v)
{
    bool accepted = r->options.is_accepted(v);
    int64_t ttl = accepted ? r->options.accepted_ttl_ms : r->options.refused_ttl_ms;
    ReviewVerdict *kept = xnew(ReviewVerdict);

    *kept = verdict_copy(v);
    (void)pthread_mutex_lock(&r->lock);
    ttl_map_put(accepted ? r->accepted : r->refused, key, kept, now_ms(r) + ttl);
    (void)pthread_mutex_unlock(&r->lock);
}

/* Ends the flight before anyone is told, because who is told may ask again. */
static void flight_land(Flight *f, const ReviewVerdict *verdict, const Error *error)
{
    f->call = NULL;
    (void)hashmap_remove(f->reviews->flights, f->key);
    flight_answer(f, verdict, error);
    flight_free(f);
}

static void on_review(JsonValue *object, const Error *failed, void *userdata)
{
    Flight *f = userdata;
    Reviews *r = f->reviews;
    _cleanup_verdict_ ReviewVerdict verdict = {0};
    _cleanup_error_ Error *error = NULL;

    if (failed) {
        flight_land(f, NULL, failed);
        return;
    }
    if (r->options.parse(object, r->options.userdata, &verdict, &error) < 0) {
        flight_land(f, NULL, error);
        return;
    }
    keep(r, f->key, &verdict);
    flight_land(f, &verdict, NULL);
}

static void flight_join(Flight *f, ReviewDoneFn done, void *userdata)
{
    Waiter *w = xnew(Waiter);

    w->done = done;
    w->userdata = userdata;
    list_push(&f->waiters, &w->node);
}

static int flight_start(Reviews *r, const char *key, const Buf *body, Flight **ret, Error **error)
{
    Flight *f;
    int r_send;

    if (r->stopped)
        return error_set(error, ERROR_CANCELLED, "the gateway is stopping");
    if (hashmap_size(r->flights) >= REVIEWS_FLIGHTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "too many callers are being checked at a time");
    f = xnew(Flight);
    f->reviews = r;
    f->key = xstrdup(key);
    list_init(&f->waiters);
    KubeRequest request = {
        .verb = "create",
        .path = r->options.path,
        .body = buf_str(body),
        .body_len = body->len,
        .deadline_ms = REVIEW_DEADLINE_MS,
        .background = r->options.background,
        .on_done = on_review,
        .userdata = f,
    };
    r_send = kube_send(r->kube, &request, &f->call, error);
    if (r_send < 0) {
        flight_free(f);
        return r_send;
    }
    r->asked++;
    (void)hashmap_put(r->flights, key, f);
    *ret = f;
    return 0;
}

void reviews_ask(Reviews *r, const char *key, const Buf *body, ReviewDoneFn done, void *userdata)
{
    _cleanup_verdict_ ReviewVerdict verdict = {0};
    _cleanup_error_ Error *error = NULL;
    Flight *f = hashmap_get(r->flights, key);

    if (reviews_cached(r, key, &verdict)) {
        done(&verdict, NULL, userdata);
        return;
    }
    if (!f &&
        (buf_check(body, "a review", &error) < 0 || flight_start(r, key, body, &f, &error) < 0)) {
        done(NULL, error, userdata);
        return;
    }
    flight_join(f, done, userdata);
}

uint64_t reviews_asked(const Reviews *r)
{
    return r->asked;
}
