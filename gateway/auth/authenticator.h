/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a bearer token to a principal, by TokenReview with an audience. Tokens are kept as their
 * SHA-256 only, for as long as an answer is believed; they are never logged. Without authentication
 * every caller is the same anonymous principal.
 */
#pragma once

#include "gateway/auth/reviews.h"

#define TOKEN_MAX (16 * 1024)

/* The token of an Authorization header ("Bearer", in any case), copied, or NULL with an
 * ERROR_UNAUTHENTICATED that says what is wrong. Pure. */
char *bearer_token(const char *authorization, Error **error) _warn_unused_;

typedef struct Authenticator Authenticator;

/* kube NULL: no authentication. */
Authenticator *authenticator_new(KubeClient *kube, const char *audience, int64_t ttl_ms);
/* Answers the questions under way, and all that come, with ERROR_CANCELLED. Loop thread. */
void authenticator_stop(Authenticator *a);
Authenticator *authenticator_free(Authenticator *a);

/* What is known without asking. Any thread. 1: *ret is the caller (owned). 0: the API server has to
 * be asked. Negative: refused. */
int authenticator_cached(Authenticator *a, const char *authorization, Principal **ret,
                         Error **error);
/* Loop thread. done is called exactly once, later or within; p is borrowed. */
typedef void (*AuthenticatedFn)(Principal *p, const Error *error, void *userdata);
void authenticator_ask(Authenticator *a, const char *authorization, AuthenticatedFn done,
                       void *userdata);
uint64_t authenticator_asked(const Authenticator *a);
