/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of claims, sandboxes and pods that the gateway uses, copied out of their documents.
 * Texts are bounded (MODEL_TEXT_MAX); anything missing or of a wrong type reads as absent, never as
 * an error, because objects are written by others. Pure, no thread of its own.
 */
#pragma once

#include "common/json/json.h"

#define MODEL_TEXT_MAX 512

/* The Ready condition. */
typedef struct ReadyState {
    bool known;
    bool ready;
    char *reason;
    char *message;
} ReadyState;

typedef struct ClaimModel {
    char *uid;
    char *owner; /* hash; NULL unless annotation and label agree */
    char *sandbox_name;
    ReadyState ready;
    bool deleting;
    int64_t shutdown_ms;       /* wall clock, 0 = none */
    int64_t idle_timeout_s;    /* 0 = none */
    int64_t last_activity_ms;  /* wall clock, 0 = never */
    int64_t exec_lease_ms;     /* wall clock, 0 = none */
    int64_t activity_retry_ms; /* wall clock: not to be written before; this process's own */
} ClaimModel;

typedef struct SandboxModel {
    char *uid;
    char *owner_uid;  /* of its controller */
    char *owner_name; /* of its controller */
    char *pod_name;   /* NULL: as the sandbox */
    bool deleting;
} SandboxModel;

typedef enum PodPhase {
    POD_PENDING, /* or unknown */
    POD_RUNNING,
    POD_SUCCEEDED,
    POD_FAILED,
    POD_PHASE_MAX,
} PodPhase;

typedef struct PodModel {
    char *uid;
    char *owner_uid;
    char *owner_name;
    PodPhase phase;
    char *container;        /* the one commands run in */
    char *container_id;     /* of its latest run; NULL: it has not started */
    bool container_running; /* false also while unknown */
    bool cannot_start;      /* no waiting cures it: its image or its configuration is wrong */
    char *problem;          /* why it does not run, in the words of kubelet or scheduler; or NULL */
    bool deleting;
} PodModel;

ClaimModel *claim_model_new(const JsonValue *object);
ClaimModel *claim_model_free(ClaimModel *c);
SandboxModel *sandbox_model_new(const JsonValue *object);
SandboxModel *sandbox_model_free(SandboxModel *s);
PodModel *pod_model_new(const JsonValue *object);
PodModel *pod_model_free(PodModel *p);
