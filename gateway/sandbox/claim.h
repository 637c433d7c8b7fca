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
/* When a lifetime from now on ends. Up to a whole second, as an object holds no less: nobody gets
 * less than was asked for. */
int64_t claim_shutdown_ms(int64_t now_ms, int64_t lifetime_s);
/* The whole object in its first revision: lifetime and owner are never added later. */
void claim_write(Buf *out, const ClaimSpec *spec);
