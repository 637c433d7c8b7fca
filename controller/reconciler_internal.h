/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the reconciler. Private to reconciler*.c. */
#pragma once

#include "common/base/hashmap.h"
#include "common/kube/workqueue.h"
#include "controller/reconciler.h"

/* One pass over a key: its plan and what is still unanswered of it. */
typedef struct Flight {
    Reconciler *r;
    char *key;
    KeyKind kind;
    char *ns, *name;
    Plan plan;
    PlanLive live[PLAN_READS_MAX];
    PlanLiveItem *items[PLAN_READS_MAX]; /* what live points to, owned */
    size_t n_live;
    bool *op_ok;    /* per op: it succeeded */
    bool *was_open; /* per op: an earlier request for the same is still of unknown outcome */
    size_t outstanding;
    bool failed;   /* back off */
    bool conflict; /* somebody else was faster: plan again at once */
    int64_t retry_after_ms;
} Flight;

typedef enum RequestType {
    REQUEST_OP,
    REQUEST_REFRESH,  /* read what an op's outcome left in doubt */
    REQUEST_NEED_GET, /* the plan's live read */
    REQUEST_NEED_LIST,
} RequestType;

typedef struct Request {
    Flight *flight;
    RequestType type;
    size_t op;           /* OP, REFRESH */
    char *uid;           /* what the World had of that name when a read was sent; or NULL */
    PlanLiveItem *items; /* NEED_LIST */
    size_t n_items;
} Request;

/* One watch of one kind. */
typedef struct Scope {
    ObjKind kind;
    const char *ns; /* NULL: all namespaces */
    unsigned epoch; /* of the list under way */
    bool listed;
} Scope;

/* How often in a row a key was written for. */
typedef struct Streak {
    unsigned passes, conflicts;
} Streak;

struct Reconciler {
    ReconcilerOptions options;
    World *world;
    WorkQueue *queue;
    Hashmap *requests; /* ticket → Request */
    Hashmap *streaks;  /* key → Streak */
    Hashmap *wake;     /* "ns/pool" whose waiting claims may get a member now */
    char **released;   /* "ns/sandbox" whose reservation has lost its claim */
    size_t n_released;
    Scope *scopes;
    size_t n_scopes;
    bool connected[OBJ_KIND_MAX];
    uint64_t random;
    uint64_t next_ticket;
    size_t inflight;
    int64_t now_ms, mono_ms; /* wall clock, monotonic */
    int64_t sweep_ms;        /* next one; TIME_NONE: when synced */
    ReconcilerStats stats;
};

/* reconciler_dispatch.c: which keys a change concerns. */
void reconciler_on_change(const Obj *before, const Obj *after, void *userdata);
void reconciler_enqueue_kind(Reconciler *r, KeyKind kind, const char *ns, const char *name);
/* The keys of an object and of its controller, but not this one. */
void reconciler_enqueue_around(Reconciler *r, const Obj *o, const char *except);
/* Everything, as after a jump of the clock. */
void reconciler_enqueue_all(Reconciler *r);
/* Whatever may be an orphan. */
void reconciler_sweep(Reconciler *r);
void reconciler_wake_waiters(Reconciler *r);
void reconciler_release_reservations(Reconciler *r);

/* reconciler_request.c */
uint64_t reconciler_request_new(Flight *f, RequestType type, size_t op, const char *uid);
/* NULL where the ticket is not known. */
Request *reconciler_request_find(const Reconciler *r, uint64_t ticket);
/* Takes it off the books. */
Request *reconciler_request_take(Reconciler *r, uint64_t ticket);
void reconciler_request_free(Request *q);
void plan_items_free(PlanLiveItem *items, size_t n);

/* reconciler_flight.c */
void reconciler_start(Reconciler *r, const char *key);
void reconciler_flights_free(Reconciler *r);
/* The object that the key is about, where it is about one. */
Obj *flight_obj(const Flight *f);
Pool *flight_pool(const Flight *f);
Claim *flight_claim(const Flight *f);
/* The op's target as the World has it, if it is still the same. */
Obj *flight_op_target(const Reconciler *r, const PlanOp *op);
/* Members whose creation was in doubt and that turned up. */
void flight_settle_pending(Flight *f);
/* Plans with what was read so far, and sends what comes of it. f may be gone afterwards. */
void flight_plan(Flight *f);
/* All answers are in. Both end f. */
void flight_finish(Flight *f);
void flight_fail(Flight *f);
bool reconciler_all_connected(const Reconciler *r);
double reconciler_jitter(Reconciler *r);
/* Parses and takes over a document of the API server. */
void reconciler_take(Reconciler *r, ObjKind kind, const JsonValue *doc);
