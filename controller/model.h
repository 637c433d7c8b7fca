/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller remembers of the cluster's objects: typed views that hold the fields it uses
 * and nothing else. model_parse.h makes them from documents, world.h keeps them. All strings are
 * interned (intern.h) and never changed in place; NULL means absent or empty. Times are wall-clock
 * milliseconds, TIME_NONE where there is none.
 *
 * A view has two kinds of fields: what the API server said, and the memo, which only this process
 * knows (writes under way, when something was first seen). The memo survives the arrival of a newer
 * version of the same object (same UID) and is lost with the process, which is always safe.
 *
 * resourceVersion is kept as a number: versions of one cluster are comparable decimal numbers. An
 * object whose version is no such number is refused by the parser.
 */
#pragma once

#include "common/base/list.h"
#include "common/kube/client.h"
#include "controller/intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIME_NONE INT64_MIN

#define IDLE_SECONDS_MAX (10 * 365 * 24 * 3600) /* what a claim may ask for */

typedef enum ObjKind {
    OBJ_SANDBOX,
    OBJ_CLAIM,
    OBJ_POOL,
    OBJ_TEMPLATE,
    OBJ_POD,
    OBJ_POLICY, /* NetworkPolicy */
    OBJ_KIND_MAX,
} ObjKind;

/* Group, version, plural and kind. */
const KubeResource *obj_resource(ObjKind kind);
/* "agents.x-k8s.io/v1beta1"; "v1" for pods. */
const char *obj_api_version(ObjKind kind);

/* Who controls an object, by group and kind of its controller reference (the version does not
 * count). */
typedef enum OwnerKind {
    OWNER_NONE, /* no controller reference */
    OWNER_SANDBOX,
    OWNER_CLAIM,
    OWNER_POOL,
    OWNER_TEMPLATE,
    OWNER_OTHER,
} OwnerKind;

/* Memo: the last child write that the API server refused for good (quota, admission, invalid), or
 * that cannot work now. Its text belongs in the object's status. */
typedef struct ObjTrouble {
    char *message;
    char *reason;        /* Status.reason or the cause ("NamespaceTerminating"); may be NULL */
    int64_t retry_at_ms; /* not before this */
    unsigned failures;
} ObjTrouble;

typedef struct Obj {
    ObjKind kind;
    OwnerKind owner_kind;
    const char *ns, *name, *uid;
    const char *owner_name, *owner_uid; /* of the controller reference */
    const char *owner_kind_name;        /* "ReplicaSet": for messages */
    uint64_t rv;
    int64_t generation;
    int64_t created_ms;
    unsigned n_owners;       /* all owner references */
    bool deleting;           /* has a deletionTimestamp */
    bool made_by_controller; /* its spec was first written by a controller of ours or upstream's */

    /* memo */
    bool gone;         /* proved to be deleted; kept only to ward off late events of it */
    unsigned inflight; /* writes to this object whose answer is not there yet */
    ObjTrouble *trouble;
    /* When what controls it, or the first of a chain of owners, was seen to go; 0: it lives, as far
     * as is known. */
    int64_t owner_gone_ms;

    /* private to world.c */
    List by_owner;
    unsigned list_epoch;
} Obj;

typedef enum ConditionStatus { CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN } ConditionStatus;
const char *condition_status_to_string(ConditionStatus s);

typedef struct Condition {
    const char *type, *reason, *message;
    ConditionStatus status;
    int64_t transition_ms;
    int64_t observed_generation; /* 0 = absent */
} Condition;

#define CONDITIONS_MAX 16 /* more are dropped when an object is read */
typedef struct Conditions {
    size_t len;
    Condition items[];
} Conditions;
/* NULL where there is none of that type. */
const Condition *conditions_get(const Conditions *c, const char *type);
bool conditions_eq(const Conditions *a, const Conditions *b);

typedef enum ServiceWish { SERVICE_UNSET, SERVICE_FALSE, SERVICE_TRUE } ServiceWish;

/* Labels of ours only (agents.x-k8s.io/…) are kept for Sandboxes. */
typedef struct Sandbox {
    Obj obj;
    const StrMap *labels;
    const char *template_ref;    /* annotation sandbox-template-ref */
    const char *legacy_pod_name; /* annotation pod-name of old releases */
    bool has_legacy_pod_name;    /* the key exists, even if empty */
    /* spec */
    bool suspended;
    bool shutdown_delete; /* else Retain */
    bool has_volume_claims;
    ServiceWish service;
    int64_t shutdown_ms;
    const StrMap *pod_labels, *pod_annotations; /* of podTemplate.metadata, all keys */
    uint64_t blueprint_hash;                    /* blueprint.h */
    /* status */
    const Conditions *conditions;
    const char *status_selector, *status_service, *status_service_fqdn, *status_node;
    const StrList *status_pod_ips;

    /* memo */
    const char *reserved_for; /* UID of the claim that a transfer was sent for */
    int64_t status_due_ms;    /* a status write that may wait: not later than this; or TIME_NONE */
    List candidate;           /* private to world.c */
    List unowned;
    void *candidate_bucket;
    uint64_t candidate_seq;
} Sandbox;

typedef enum ShutdownPolicy {
    SHUTDOWN_RETAIN,
    SHUTDOWN_DELETE,
    SHUTDOWN_DELETE_FOREGROUND
} ShutdownPolicy;
const char *shutdown_policy_to_string(ShutdownPolicy p);

typedef struct Claim {
    Obj obj;
    const char *created_by;     /* label, as given */
    const char *legacy_sandbox; /* label sandbox-name of old releases */
    const char *owner_hash;     /* label session-id: hash of the principal who asked */
    const char *assigned;       /* annotation sandbox-name */
    const char *first_observed; /* annotations, as text */
    const char *first_ready;
    const char *trace_context;
    /* idle time-out (annotations of the gateway, clamped when they were first seen) */
    int64_t idle_timeout_ms;                /* TIME_NONE: none or not valid */
    const char *bad_idle_timeout;           /* its text, cut short, where it is not valid */
    const char *last_activity, *exec_lease; /* as text */
    int64_t activity_ms, lease_ms;          /* clamped; TIME_NONE */
    /* spec */
    const char *pool;
    int64_t shutdown_ms;
    int64_t ttl_seconds; /* −1: none */
    ShutdownPolicy policy;
    bool has_env, has_volume_claims;
    const StrMap *extra_labels, *extra_annotations; /* additionalPodMetadata */
    /* status */
    const Conditions *conditions;
    const char *status_sandbox, *status_service_fqdn;
    const StrList *status_pod_ips;

    /* memo */
    int64_t first_seen_ms;
    int64_t ready_seen_ms; /* when it turned Ready before our eyes; TIME_NONE */
    /* Sandbox that it may have got: a transfer or create whose outcome is not known */
    const char *attempt;
    int64_t attempt_ms;    /* when its outcome became unknown */
    uint64_t warning;      /* the one that was given last and still holds (plan.h); or 0 */
    bool waiting;          /* for a pool member to become available */
    List by_pool, waiters; /* private to world.c */
} Claim;

typedef struct Pool {
    Obj obj;
    /* spec */
    int64_t replicas;
    const char *template_name;
    bool recreate; /* updateStrategy Recreate, else OnReplenish */
    /* status */
    int64_t status_replicas, status_ready, status_observed_generation; /* −1: absent */
    const char *status_selector;

    /* memo */
    int64_t status_due_ms;  /* as in Sandbox */
    const StrList *pending; /* names of members whose creation was sent and not yet settled */
    int64_t pending_ms;     /* when the outcome of the last of them became unknown */
    uint64_t warning;       /* as in Claim */
    List by_template;       /* private to world.c */
} Pool;

typedef enum InjectionPolicy {
    INJECTION_DISALLOWED,
    INJECTION_ALLOWED,
    INJECTION_OVERRIDES
} InjectionPolicy;

typedef struct Template {
    Obj obj;
    const char *ref_hash_label; /* label sandbox-template-ref-hash as it is */
    const StrMap *pod_labels, *pod_annotations;
    char *pod_spec; /* JSON text with the secure defaults; owned */
    size_t pod_spec_len;
    bool has_volume_claims;
    ServiceWish service;
    bool policy_unmanaged;
    char *policy_spec;    /* JSON text of the NetworkPolicy spec wanted; owned */
    uint64_t policy_hash; /* of it, comparable with Policy.spec_hash */
    InjectionPolicy env_policy, volume_policy;
    uint64_t blueprint_hash;
    const char *blueprint_label;    /* value of label sandbox-template-hash */
    const char *pod_template_label; /* value of label sandbox-pod-template-hash */
} Template;

typedef enum PodPhase {
    POD_UNKNOWN,
    POD_PENDING,
    POD_RUNNING,
    POD_SUCCEEDED,
    POD_FAILED,
    POD_PHASE_MAX
} PodPhase;
const char *pod_phase_to_string(PodPhase p);

typedef struct Pod {
    Obj obj;
    const StrMap *labels;      /* all */
    const StrMap *annotations; /* propagated-* and what they list, and reserved ones */
    const char *node;
    const StrList *ips;
    PodPhase phase;
    bool ready;
    bool has_scheduled; /* condition PodScheduled exists: */
    ConditionStatus scheduled;
    const char *scheduled_reason, *scheduled_message;

    /* memo */
    List unowned; /* private to world.c */
} Pod;

typedef struct Policy {
    Obj obj;
    uint64_t spec_hash;
} Policy;

/* Frees a view that no World holds. Returns NULL. */
Obj *obj_free(Interner *in, Obj *obj);
void obj_trouble_clear(Obj *obj);
/* The memo of the warning that was given last; NULL for kinds without. */
uint64_t *obj_warning(const Obj *o);

/* Checked downcasts: NULL stays NULL, another kind ends the process. */
Sandbox *obj_sandbox(const Obj *o);
Claim *obj_claim(const Obj *o);
Pool *obj_pool(const Obj *o);
Template *obj_template(const Obj *o);
Pod *obj_pod(const Obj *o);
Policy *obj_policy(const Obj *o);
