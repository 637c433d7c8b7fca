/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name of a claim to the pod behind it, by UID, for one owner: what a call may use, and
 * what to say where it may not. Pure, over the store.
 */
#pragma once

#include "gateway/sandbox/store.h"

typedef enum SandboxState {
    SANDBOX_MISSING,   /* no such claim, or somebody else's: never told apart */
    SANDBOX_NOT_READY, /* nothing can run in it */
    SANDBOX_RUNNING,   /* its container runs, but it is not declared ready */
    SANDBOX_READY,
    SANDBOX_STATE_MAX,
} SandboxState;

#define SANDBOX_MESSAGE_MAX (MODEL_TEXT_MAX + 256)

typedef struct SandboxView {
    SandboxState state;
    bool settling;        /* declared ready, but the watches have not shown all of it yet */
    bool cannot_start;    /* its pod's image or configuration is wrong */
    bool failed;          /* waiting cannot help */
    const char *reason;   /* machine word; never NULL; borrowed as the models are */
    ClaimModel *claim;    /* NULL where missing */
    const char *pod_name; /* NULL unless running or ready */
    const PodModel *pod;  /* likewise */
    char message[SANDBOX_MESSAGE_MAX]; /* a sentence without a full stop */
} SandboxView;

/* Models in *ret are borrowed from the store until its next change. */
void sandbox_resolve(const Store *s, const char *ns, const char *claim, const char *owner,
                     SandboxView *ret);
static inline bool sandbox_is_usable(const SandboxView *v)
{
    return v->state >= SANDBOX_RUNNING;
}
