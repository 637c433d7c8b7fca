/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is calling. A principal is immutable and counted, so that server threads and the loop share
 * it. Its hash is the owner of what it creates: the first 32 hex digits of SHA-256 over the issuer,
 * a NUL, and the subject; the subject of a Kubernetes user is its name, a NUL, and its UID.
 */
#pragma once

#include "common/kube/review.h"

#define OWNER_HASH_LEN 32

typedef struct Principal Principal;

/* Takes the user's fields over and leaves it empty. */
Principal *principal_new_kubernetes(KubeUser *user);
Principal *principal_new_anonymous(void);
Principal *principal_ref(Principal *p);
Principal *principal_unref(Principal *p); /* NULL is fine; returns NULL */
static inline void principal_unrefp(Principal **p)
{
    *p = principal_unref(*p);
}
#define _cleanup_principal_ _cleanup_(principal_unrefp)

const char *principal_issuer(const Principal *p); /* "kubernetes" or "none" */
const char *principal_name(const Principal *p);
const char *principal_owner(const Principal *p); /* OWNER_HASH_LEN hex digits */
const KubeUser *principal_user(const Principal *p);
/* Key under which decisions about this principal may be kept: covers name, UID and groups. */
const char *principal_key(const Principal *p);
