/* SPDX-License-Identifier: Apache-2.0 */
/* A claim as the gateway writes it. Pure. */
#pragma once

#include "common/json/dispatch.h"

#define CLAIM_NAME_MAX 64

typedef struct ClaimSpec {
    const char *ns;
    const char *name;
    const char *warmpool;
    const char *owner;      /* hash */
    const char *created_by; /* for people: issuer and user name */
    int64_t now_ms;         /* wall clock */
    int64_t shutdown_ms;    /* wall clock, 0: never */
    const JsonStringMap *labels;
    const JsonStringMap *pod_labels;
    const JsonStringMap *pod_annotations;
} ClaimSpec;

/* "sandbox-claim-" and 80 random bits: not to be guessed. */
void claim_make_name(char out[CLAIM_NAME_MAX]);
/* The whole object in its first revision: lifetime and owner are never added later. */
void claim_write(Buf *out, const ClaimSpec *spec);
