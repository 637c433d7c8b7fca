/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is this token, and may they: bodies and answers of TokenReview (authentication.k8s.io/v1) and
 * SubjectAccessReview (authorization.k8s.io/v1). Pure text functions; sending is the caller's.
 */
#pragma once

#include "common/base/buf.h"
#include "common/json/json.h"

#define KUBE_TOKEN_REVIEW_PATH "/apis/authentication.k8s.io/v1/tokenreviews"
#define KUBE_ACCESS_REVIEW_PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define KUBE_REVIEW_GROUPS_MAX 1024
#define KUBE_REVIEW_NAME_MAX 1024 /* bytes of a user, group or uid */

typedef struct KubeUser {
    char *name; /* never NULL or empty */
    char *uid;  /* may be NULL */
    char **groups;
    size_t n_groups;
    char *extra_json; /* object text for a SubjectAccessReview, or NULL */
} KubeUser;

/* The server is asked whether the token was issued for the audience. */
void kube_token_review_body(Buf *out, const char *token, const char *audience);
/* ERROR_UNAUTHENTICATED where the token is not accepted, or not for this audience (a server that
 * does not know audiences counts as that); ERROR_UNAVAILABLE where the answer is no TokenReview or
 * the server could not check. ret is filled on success only, and freed with kube_user_done. */
int kube_token_review_parse(const JsonValue *review, const char *audience, KubeUser *ret,
                            Error **error);
void kube_user_done(KubeUser *user);

typedef struct KubeAccess {
    const char *verb;
    const char *group;
    const char *resource;
    const char *subresource; /* or NULL */
    const char *ns;
    const char *name; /* or NULL */
} KubeAccess;

void kube_access_review_body(Buf *out, const KubeUser *user, const KubeAccess *access);
/* *ret_allowed on success; an answer without a decision is ERROR_UNAVAILABLE. */
int kube_access_review_parse(const JsonValue *review, bool *ret_allowed, Error **error);
