/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this principal do that in this namespace: SubjectAccessReview on sandboxclaims and its
 * virtual subresources exec and files, so that plain Roles grant the use of sandboxes and
 * `kubectl auth can-i` explains the answer. Loop thread.
 */
#pragma once

#include "gateway/auth/reviews.h"

typedef struct Authorizer Authorizer;

/* kube NULL: everything is allowed (no authentication either). */
Authorizer *authorizer_new(KubeClient *kube, int64_t ttl_ms);
/* Answers the questions under way, and all that come, with ERROR_CANCELLED. Loop thread. */
void authorizer_stop(Authorizer *a);
Authorizer *authorizer_free(Authorizer *a);

/* error NULL: allowed. ERROR_DENIED names verb, resource, namespace and user. */
typedef void (*AuthorizedFn)(const Error *error, void *userdata);
/* done is called exactly once, later or within. subresource may be NULL. */
void authorizer_ask(Authorizer *a, const Principal *p, const char *ns, const char *verb,
                    const char *subresource, AuthorizedFn done, void *userdata);
uint64_t authorizer_asked(const Authorizer *a);
