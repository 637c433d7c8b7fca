/* SPDX-License-Identifier: Apache-2.0 */
/* A Sandbox's Pod: which one it is, and what has to be done to it. Private to plan*.c. */
#pragma once

#include "controller/plan_internal.h"

#define POD_ERROR_MAX 1024

/* What the Sandbox's status is worked out from. */
typedef struct PodStep {
    const Pod *pod; /* the Pod that stands for the Sandbox, also a foreign one; or NULL */
    bool owned;     /* pod is controlled by the Sandbox */
    bool creating;  /* this step creates it */
    bool multiple;  /* more than one is controlled by the Sandbox: none is chosen */
    char error[POD_ERROR_MAX]; /* "" where all is well */
} PodStep;

/* Adds the ops; may set plan->need. */
int plan_pod_step(const PlanInput *in, const Sandbox *s, Plan *plan, PodStep *step, Error **error);
/* The Pods that it controls are to go, whatever else is the case. */
int plan_pod_delete_all(const PlanInput *in, const Sandbox *s, Plan *plan, Error **error);
/* The one Pod that is controlled by the Sandbox, or NULL where there is none or more than one. */
const Pod *sandbox_owned_pod(const World *w, const Sandbox *s, size_t *ret_count);

/* plan_pod_metadata.c: labels and annotations of a new Pod, and the patch that brings an existing
 * one in step (none where it is; adopt also makes the Sandbox its controller). */
void plan_pod_metadata(JsonWriter *w, const Sandbox *s);
int plan_pod_sync(const Sandbox *s, const Pod *pod, bool adopt, Plan *plan, Error **error);
