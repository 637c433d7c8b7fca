/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/auth/authenticator.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/net/crypto.h"

#include <string.h>
#include <strings.h>

#define REFUSED_TTL_MS 5000
#define TOKEN_KEY_HEX 64

struct Authenticator {
    Reviews *reviews;     /* NULL: no authentication */
    Principal *anonymous; /* likewise the other way round */
    char *audience;
};

/* token68 of RFC 9110. */
static bool is_token68(const char *s)
{
    size_t len = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/");

    return len > 0 && s[len + strspn(s + len, "=")] == '\0';
}

char *bearer_token(const char *authorization, Error **error)
{
    static const char scheme[] = "Bearer";
    const char *token;
    size_t len;

    if (str_empty(authorization)) {
        (void)error_set(error, ERROR_UNAUTHENTICATED, "a bearer token is required");
        return NULL;
    }
    if (strncasecmp(authorization, scheme, strlen(scheme)) != 0 ||
        authorization[strlen(scheme)] != ' ') {
        (void)error_set(error, ERROR_UNAUTHENTICATED,
                        "the Authorization header must be \"Bearer TOKEN\"");
        return NULL;
    }
    token = authorization + strlen(scheme);
    token += strspn(token, " ");
    len = strlen(token);
    if (len > TOKEN_MAX || !is_token68(token)) {
        (void)error_set(error, ERROR_UNAUTHENTICATED, "the bearer token is malformed");
        return NULL;
    }
    return xstrdup(token);
}

static void free_token(char **token)
{
    if (*token)
        explicit_bzero(*token, strlen(*token));
    free(*token);
}
#define _cleanup_token_ _cleanup_(free_token)

/* The cluster's own words (issuers, addresses) are for the log, not for strangers. */
static Error *refusal_for_caller(const Authenticator *a, const Error *refusal)
{
    Error *told = NULL;

    log_info("token refused", LOGF_STR("reason", error_message(refusal)));
    (void)error_set(&told, ERROR_UNAUTHENTICATED,
                    "the bearer token is not valid here; it must be of this cluster, not expired, "
                    "and issued for the audience \"%s\"",
                    a->audience);
    return told;
}

/* A refusal is a decision, too: it is kept for a moment. */
static int parse_review(const JsonValue *review, void *userdata, ReviewVerdict *ret, Error **error)
{
    const Authenticator *a = userdata;
    _cleanup_error_ Error *refusal = NULL;
    KubeUser user = {0};
    int r = kube_token_review_parse(review, a->audience, &user, &refusal);

    if (r == 0)
        ret->principal = principal_new_kubernetes(&user);
    else if (refusal->kind == ERROR_UNAUTHENTICATED)
        ret->error = refusal_for_caller(a, refusal);
    else if (error)
        *error = TAKE_PTR(refusal);
    return ret->principal || ret->error ? 0 : r;
}

static bool is_accepted(const ReviewVerdict *v)
{
    return v->principal != NULL;
}

Authenticator *authenticator_new(KubeClient *kube, const char *audience, int64_t ttl_ms)
{
    Authenticator *a = xnew(Authenticator);

    a->audience = xstrdup_null(audience);
    if (!kube) {
        a->anonymous = principal_new_anonymous();
        return a;
    }
    ReviewsOptions options = {
        .path = KUBE_TOKEN_REVIEW_PATH,
        .accepted_ttl_ms = ttl_ms,
        .refused_ttl_ms = REFUSED_TTL_MS < ttl_ms ? REFUSED_TTL_MS : ttl_ms,
        .parse = parse_review,
        .is_accepted = is_accepted,
        .background = true, /* strangers' floods do not hold up what known callers need */
        .userdata = a,
    };
    a->reviews = reviews_new(kube, &options);
    return a;
}

void authenticator_stop(Authenticator *a)
{
    if (a->reviews)
        reviews_stop(a->reviews);
}

Authenticator *authenticator_free(Authenticator *a)
{
    if (!a)
        return NULL;
    (void)reviews_free(a->reviews);
    (void)principal_unref(a->anonymous);
    free(a->audience);
    free(a);
    return NULL;
}

static void token_key(const char *token, char key[TOKEN_KEY_HEX + 1])
{
    crypto_sha256_hex(token, strlen(token), key, TOKEN_KEY_HEX);
}

int authenticator_cached(Authenticator *a, const char *authorization, Principal **ret,
                         Error **error)
{
    _cleanup_verdict_ ReviewVerdict verdict = {0};
    _cleanup_token_ char *token = NULL;
    char key[TOKEN_KEY_HEX + 1];

    if (a->anonymous) {
        *ret = principal_ref(a->anonymous);
        return 1;
    }
    token = bearer_token(authorization, error);
    if (!token)
        return error_errno(ERROR_UNAUTHENTICATED);
    token_key(token, key);
    if (!reviews_cached(a->reviews, key, &verdict))
        return 0;
    if (verdict.error)
        return error_set(error, verdict.error->kind, "%s", verdict.error->message);
    *ret = TAKE_PTR(verdict.principal);
    return 1;
}

typedef struct Question {
    AuthenticatedFn done;
    void *userdata;
} Question;

static void on_verdict(const ReviewVerdict *verdict, const Error *error, void *userdata)
{
    Question *q = userdata;

    q->done(verdict ? verdict->principal : NULL, verdict ? verdict->error : error, q->userdata);
    free(q);
}

void authenticator_ask(Authenticator *a, const char *authorization, AuthenticatedFn done,
                       void *userdata)
{
    _cleanup_(buf_wipe) Buf body = BUF_INIT(TOKEN_MAX + 4096);
    _cleanup_token_ char *token = NULL;
    _cleanup_error_ Error *error = NULL;
    char key[TOKEN_KEY_HEX + 1];
    Question *q;

    token = bearer_token(authorization, &error);
    if (!token) {
        done(NULL, error, userdata);
        return;
    }
    q = xnew(Question);
    q->done = done;
    q->userdata = userdata;
    token_key(token, key);
    kube_token_review_body(&body, token, a->audience);
    reviews_ask(a->reviews, key, &body, on_verdict, q);
}

uint64_t authenticator_asked(const Authenticator *a)
{
    return a->reviews ? reviews_asked(a->reviews) : 0;
}
