/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the API server about callers (TokenReview, SubjectAccessReview): answers are kept
 * for a while, and equal questions that arrive meanwhile share one request. Asking happens on the
 * loop's thread; reviews_cached() may be called from any thread. Bounded: answers kept
 * (REVIEWS_CACHED_MAX, the oldest go) and questions under way (REVIEWS_FLIGHTS_MAX, beyond that
 * ERROR_EXHAUSTED).
 */
#pragma once

#include "common/kube/client.h"
#include "gateway/auth/principal.h"

#define REVIEWS_CACHED_MAX 8192
#define REVIEWS_FLIGHTS_MAX 256

/* A decision. error is set where the answer is a refusal that is worth keeping. */
typedef struct ReviewVerdict {
    Principal *principal; /* token reviews */
    bool allowed;         /* access reviews */
    Error *error;
} ReviewVerdict;
void review_verdict_done(ReviewVerdict *v);
#define _cleanup_verdict_ _cleanup_(review_verdict_done)

typedef struct Reviews Reviews;

typedef struct ReviewsOptions {
    const char *path; /* of the kind of review */
    int64_t accepted_ttl_ms;
    int64_t refused_ttl_ms;
    /* Reads an answer. A negative errno with *error means that there was no decision. */
    int (*parse)(const JsonValue *review, void *userdata, ReviewVerdict *ret, Error **error);
    bool (*is_accepted)(const ReviewVerdict *v); /* which of the two periods applies */
    bool background;                             /* behind all other requests to the API server */
    void *userdata;
} ReviewsOptions;

Reviews *reviews_new(KubeClient *kube, const ReviewsOptions *options);
/* Answers the questions under way, and all that come, with ERROR_CANCELLED. */
void reviews_stop(Reviews *r);
Reviews *reviews_free(Reviews *r); /* stops it first */
/* True where a live answer is kept; *ret owns its parts. Any thread. */
bool reviews_cached(Reviews *r, const char *key, ReviewVerdict *ret);
/* verdict is borrowed; error is set instead where there is no decision. */
typedef void (*ReviewDoneFn)(const ReviewVerdict *verdict, const Error *error, void *userdata);
/* done is called exactly once, later or within. body is the review as JSON text. */
void reviews_ask(Reviews *r, const char *key, const Buf *body, ReviewDoneFn done, void *userdata);
uint64_t reviews_asked(const Reviews *r); /* requests made so far; loop thread */
