/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor's core: which keys a change concerns, one plan at a time per key, its ops in flight,
 * their answers, back-off and wake-ups. It talks to the API server through an ApiPort, so that the
 * daemon and the simulation share every line of it. It never blocks and never looks at a clock.
 *
 * Single-threaded. Nothing of the port may call back from inside one of its own functions: answers
 * come later, from the loop.
 *
 * Use: feed the watches (reconciler_list_begin … reconciler_removed), answers and the time; after
 * each batch call reconciler_run(), and again at the latest after reconciler_next_ms(). No key is
 * planned before every kind was listed once.
 */
#pragma once

#include "common/json/json.h"
#include "controller/plan.h"

typedef struct Reconciler Reconciler;

typedef enum ApiOutcome {
    API_OK,
    API_CONFLICT,  /* 409 with reason Conflict */
    API_EXISTS,    /* 409 with reason AlreadyExists */
    API_NOT_FOUND, /* 404, in the words of an API server about the object */
    API_REFUSED,   /* any other 4xx: certainly not applied, repeating it as it is cannot help */
    API_RETRY,     /* 429, 503 with Retry-After, no connection: certainly not applied */
    API_UNKNOWN,   /* time-out, connection lost, 5xx: may have been applied */
    API_OUTCOME_MAX,
} ApiOutcome;
const char *api_outcome_to_string(ApiOutcome o);
/* From what the client reports; NULL is API_OK. */
ApiOutcome api_outcome_of_error(const Error *e);

typedef struct ApiResult {
    ApiOutcome outcome;
    JsonValue *object;   /* borrowed; NULL where the answer has none */
    const char *message; /* of a failure; borrowed, may be NULL */
    const char *reason;  /* Status.reason or cause; borrowed, may be NULL */
    int64_t retry_after_ms;
} ApiResult;

typedef struct ApiPort {
    /* Sends a write; answered by reconciler_op_done. op is borrowed for the call. */
    void (*submit)(uint64_t ticket, const PlanOp *op, void *userdata);
    /* Reads one object live; answered by reconciler_get_done. */
    void (*get)(uint64_t ticket, ObjKind kind, const char *ns, const char *name, void *userdata);
    /* Lists all pages live: reconciler_list_item for each object, then reconciler_list_done. */
    void (*list)(uint64_t ticket, ObjKind kind, const char *ns, void *userdata);
    void (*event)(const PlanEvent *event, void *userdata); /* copies */
    /* For logs and metrics; any may be NULL. */
    void (*op_done)(const char *key, const PlanOp *op, const ApiResult *result, void *userdata);
    void (*bad_object)(ObjKind kind, const Error *error, void *userdata);
    void *userdata;
} ApiPort;

typedef struct ReconcilerOptions {
    ApiPort port;
    PlanConfig plan;
    unsigned max_inflight;         /* requests at a time; 0 = 16,384 */
    int64_t sweep_interval_ms;     /* slow check for orphans; 0 = 10 min */
    uint64_t seed;                 /* names of pool members, jitter */
    const char *const *namespaces; /* that are watched, each by watches of its own; borrowed */
    size_t n_namespaces;           /* 0: all, by one watch a kind */
} ReconcilerOptions;

Reconciler *reconciler_new(const ReconcilerOptions *options) _warn_unused_;
/* Outstanding tickets are forgotten: no answers may be delivered afterwards. */
Reconciler *reconciler_free(Reconciler *r);
World *reconciler_world(Reconciler *r);

/* Time, before anything else of a batch. A wall clock that jumped (compared with the monotonic one)
 * has every key planned again. */
void reconciler_set_time(Reconciler *r, int64_t realtime_ms, int64_t monotonic_ms);

/* Watches. ns is the one namespace that a watch covers, NULL where it covers all. list_end says the
 * resourceVersion that the list was made at. */
void reconciler_list_begin(Reconciler *r, ObjKind kind, const char *ns);
void reconciler_upsert(Reconciler *r, ObjKind kind, const JsonValue *doc);
void reconciler_removed(Reconciler *r, ObjKind kind, const JsonValue *doc);
void reconciler_list_end(Reconciler *r, ObjKind kind, const char *ns, uint64_t list_rv);
/* Whether the kind's watch is running; orphans are judged only while all are. */
void reconciler_connected(Reconciler *r, ObjKind kind, bool connected);
bool reconciler_synced(const Reconciler *r); /* every kind was listed */

/* Answers. A ticket that is not known (any more) is ignored. */
void reconciler_op_done(Reconciler *r, uint64_t ticket, const ApiResult *result);
void reconciler_get_done(Reconciler *r, uint64_t ticket, const ApiResult *result);
void reconciler_list_item(Reconciler *r, uint64_t ticket, const JsonValue *doc);
void reconciler_list_done(Reconciler *r, uint64_t ticket, const ApiResult *result);

/* Plans everything that is due, up to the ceiling of requests in flight. */
void reconciler_run(Reconciler *r);
/* ms until reconciler_run has something to do by itself: 0 = now, INT64_MAX = never. */
int64_t reconciler_next_ms(const Reconciler *r);
/* Has one key planned soon, whatever it is (tests, operators). */
void reconciler_enqueue(Reconciler *r, const char *key);

typedef struct ReconcilerStats {
    uint64_t plans, ops, gets, lists, events;
    uint64_t outcomes[API_OUTCOME_MAX]; /* of ops */
    uint64_t spins;                     /* a key that kept writing without getting anywhere */
    uint64_t bad_objects;
    size_t inflight;
    size_t queued;  /* keys that are due */
    size_t delayed; /* keys that wait for a deadline or the end of a back-off */
} ReconcilerStats;
ReconcilerStats reconciler_stats(const Reconciler *r);
