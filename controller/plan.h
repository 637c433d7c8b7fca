/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning: from what the World shows and the time to what is to be done about one key. Pure: no
 * I/O, no clock, no logging, nothing kept. The executor (reconciler.h) carries a plan out.
 *
 * A plan holds at most one step: all of its ops may be sent at once, in any order, and none depends
 * on another's outcome. When all answers are in, and the World has taken them over, the key is
 * planned again and gives the next step. So the order of writes (a sandbox's transfer before the
 * claim's status, ClaimExpired before the delete) follows from state alone, and a restarted
 * controller goes on from whatever state it finds: nothing but the World's memo is lost.
 *
 * How the executor treats an answer:
 *   success     the returned object goes into the World at once (a delete's Status marks it gone);
 *   exists      (create) live read of that name into the World, plan again;
 *   conflict    live read of the target into the World, plan again;
 *   not found   (patch, delete) marked gone, plan again; (create) as refused;
 *   refused     403, 413, 422 and the like, certainly not applied: of a guarded op, the key's
 * object gets a trouble (model.h) with a growing delay, which the next plan shows in the status and
 * which holds the op back until it is due; retry       429, 503: certainly not applied: back-off of
 * the key; unknown     time-out, lost connection, 500: live read of the target, then back-off.
 *
 * Preconditions are in the bodies: metadata.uid and, where the plan rests on it, resourceVersion.
 */
#pragma once

#include "common/json/json.h"
#include "controller/world.h"

typedef enum KeyKind {
    KEY_SANDBOX,
    KEY_CLAIM,
    KEY_POOL,
    KEY_TEMPLATE,
    /* Whose owner is gone? One key a namespace, the name is empty. */
    KEY_ORPHANS_OF_CLAIMS,    /* Sandboxes that carry a claim-uid */
    KEY_ORPHANS_OF_POOLS,     /* Sandboxes that were made for a pool */
    KEY_ORPHANS_OF_SANDBOXES, /* Pods */
    KEY_KIND_MAX,
} KeyKind;

/* "claim/NAMESPACE/NAME". */
char *key_format(KeyKind kind, const char *ns, const char *name) _warn_unused_;
/* Splits without copying: *ret_ns has *ret_ns_len bytes, *ret_name ends the key. False for anything
 * that key_format did not make. */
bool key_split(const char *key, KeyKind *ret_kind, const char **ret_ns, size_t *ret_ns_len,
               const char **ret_name);
const char *key_kind_to_string(KeyKind kind);

typedef struct PlanConfig {
    bool claim_events;              /* --disable-claim-events turns it off */
    bool observability_annotations; /* first-observed and first-ready on claims */
    bool warm_pool_eviction;        /* safe-to-evict on members */
    int64_t readiness_grace_ms;     /* a member that is not ready for longer is replaced */
    int64_t unschedulable_recheck_ms;
    int64_t pool_batch_max;           /* creations or deletions of a pool in one step */
    const char *const *label_domains; /* that additionalPodMetadata may use */
    size_t n_label_domains;
    int64_t idle_max_ms; /* ceiling of idle time-outs; 0 = none */
    bool collect_orphans;
    bool delete_unmarked; /* orphans that no controller made: delete, not just report */
} PlanConfig;
extern const PlanConfig plan_config_default;

typedef enum PlanVerb {
    PLAN_CREATE,
    PLAN_PATCH,        /* JSON merge patch */
    PLAN_PATCH_STATUS, /* the same on the subresource */
    PLAN_PATCH_JSON,   /* JSON patch */
    PLAN_DELETE,       /* body: DeleteOptions */
    PLAN_VERB_MAX,
} PlanVerb;
const char *plan_verb_to_string(PlanVerb v);

/* What the log says, for an admin, once the op is carried out. */
typedef struct PlanNote {
    const char *message;           /* literal; NULL: nothing */
    char *claim, *sandbox, *cause; /* or NULL */
} PlanNote;

typedef struct PlanOp {
    PlanVerb verb;
    ObjKind kind;
    char *ns, *name;
    char *uid;  /* of the target; NULL for create */
    char *body; /* complete JSON text */
    size_t body_len;
    const char *purpose; /* a word for logs and metrics: "transfer", "claim-status", … (literal) */
    bool guarded;        /* a refusal is remembered as the key's trouble */
    bool foreground;     /* delete: the object stays until its dependants are gone */
    char *reserve_for;   /* what gives a claim its Sandbox: the claim's UID */
    PlanNote note;
} PlanOp;

/* Sent when the op it belongs to succeeded, or all of the step's. */
typedef struct PlanEvent {
    size_t op; /* number of that op, counted from 1; 0: all of them */
    ObjKind kind;
    char *ns, *name, *uid;
    uint64_t rv;
    bool warning;
    const char *reason, *action; /* literals */
    char *message;
    char *annotations_json; /* object text or NULL */
    uint64_t warning_hash;  /* of a warning that is given once, see PlanMemo; else 0 */
} PlanEvent;

#define PLAN_READS_MAX 4
typedef enum PlanNeedType { NEED_NONE, NEED_GET, NEED_LIST } PlanNeedType;

/* The plan cannot go on without a live read: the executor does it and plans again with the answer
 * in PlanInput.live. A GET's object also goes into the World. A pass reads PLAN_READS_MAX times at
 * most. */
typedef struct PlanNeed {
    PlanNeedType type;
    ObjKind kind;
    char *ns, *name; /* LIST: all of the namespace, to the last page */
} PlanNeed;

typedef struct PlanLiveItem {
    char *name, *uid;
} PlanLiveItem;

typedef struct PlanLive {
    PlanNeedType type; /* what was asked for */
    ObjKind kind;
    char *ns, *name;
    bool found;                /* GET: false proves that there is none of that name */
    const JsonValue *object;   /* GET: the document, in the round after the read only */
    const PlanLiveItem *items; /* LIST: complete */
    size_t n_items;
} PlanLive;

typedef struct PlanInput {
    World *world; /* not changed by planning */
    const PlanConfig *config;
    const char *key;
    int64_t now_ms;       /* wall clock */
    uint64_t random;      /* seeds the names of new pool members */
    bool synced;          /* every cache has been listed and is being watched now */
    const PlanLive *live; /* all that was read in this pass, in order */
    size_t n_live;
} PlanInput;

/* What the memo is to become (model.h); applied by the executor when it takes the plan. */
typedef struct PlanMemo {
    bool wait_for_member;  /* claim */
    bool keep_attempt;     /* claim: its transfer of unknown outcome is still wanted */
    int64_t status_due_ms; /* Sandbox, Pool: TIME_NONE clears */
    /* Claim, Pool: the warning that holds now, 0 for none. It is given when it is another than the
     * one that was given last, and again after a time without it. */
    uint64_t warning;
} PlanMemo;

typedef struct Plan {
    PlanOp *ops;
    size_t n_ops;
    PlanEvent *events;
    size_t n_events;
    PlanNeed need;   /* type ≠ NEED_NONE: no ops, no events */
    int64_t wake_ms; /* look again at this instant at the latest; TIME_NONE: only on a change */
    PlanMemo memo;
} Plan;

#define PLAN_BODY_MAX (3 * 1024 * 1024)

/* Fails only on a body beyond PLAN_BODY_MAX or a key that is none. plan is reset first. */
int plan_key(const PlanInput *in, Plan *plan, Error **error);
void plan_done(Plan *plan);
