/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/auth/authorizer.h"

#include "gateway/sandbox/api_error.h"
#include "gateway/sandbox/names.h"

#define REFUSED_TTL_MS 5000
#define BODY_MAX (4 * 1024 * 1024)

struct Authorizer {
    Reviews *reviews; /* NULL: everything is allowed */
};

typedef struct Question {
    char *what; /* "create sandboxclaims/exec in namespace \"x\"" */
    char *who;
    AuthorizedFn done;
    void *userdata;
} Question;

static int parse_review(const JsonValue *review, _unused_ void *userdata, ReviewVerdict *ret,
                        Error **error)
{
    return kube_access_review_parse(review, &ret->allowed, error);
}

static bool is_accepted(const ReviewVerdict *v)
{
    return v->allowed;
}

Authorizer *authorizer_new(KubeClient *kube, int64_t ttl_ms)
{
    Authorizer *a = xnew(Authorizer);
    ReviewsOptions options = {
        .path = KUBE_ACCESS_REVIEW_PATH,
        .accepted_ttl_ms = ttl_ms,
        .refused_ttl_ms = REFUSED_TTL_MS < ttl_ms ? REFUSED_TTL_MS : ttl_ms,
        .parse = parse_review,
        .is_accepted = is_accepted,
    };

    if (kube)
        a->reviews = reviews_new(kube, &options);
    return a;
}

void authorizer_stop(Authorizer *a)
{
    if (a->reviews)
        reviews_stop(a->reviews);
}

Authorizer *authorizer_free(Authorizer *a)
{
    if (!a)
        return NULL;
    (void)reviews_free(a->reviews);
    free(a);
    return NULL;
}

static void question_free(Question *q)
{
    free(q->what);
    free(q->who);
    free(q);
}

static void on_verdict(const ReviewVerdict *verdict, const Error *failed, void *userdata)
{
    Question *q = userdata;
    _cleanup_error_ Error *error = NULL;

    if (failed) {
        _cleanup_error_ Error *told = api_error_for_caller(failed);
        (void)error_set(&error, failed->kind == ERROR_EXHAUSTED ? failed->kind : ERROR_UNAVAILABLE,
                        "your rights could not be checked: %s", error_message(told));
    } else if (!verdict->allowed) {
        (void)error_set(&error, ERROR_DENIED, "%s may not %s", q->who, q->what);
        (void)error_hint(&error, 0,
                         "Ask an administrator for a Role that grants it (the ClusterRole "
                         "sandbox-user does)");
    }
    q->done(error, q->userdata);
    question_free(q);
}

void authorizer_ask(Authorizer *a, const Principal *p, const char *ns, const char *verb,
                    const char *subresource, AuthorizedFn done, void *userdata)
{
    _cleanup_buf_ Buf body = BUF_INIT(BODY_MAX);
    _cleanup_free_ char *key = NULL;
    Question *q;
    KubeAccess access = {.verb = verb,
                         .group = resource_claims.group,
                         .resource = resource_claims.plural,
                         .subresource = subresource,
                         .ns = ns};

    if (!a->reviews) {
        done(NULL, userdata);
        return;
    }
    q = xnew(Question);
    q->what = xasprintf("%s %s%s%s in namespace '%s' (API group %s)", verb, access.resource,
                        subresource ? "/" : "", subresource ? subresource : "", ns, access.group);
    q->who = xasprintf("'%.256s'", principal_name(p));
    q->done = done;
    q->userdata = userdata;
    key = xasprintf("%s %s %s %s", principal_key(p), ns, verb, subresource ? subresource : "-");
    kube_access_review_body(&body, principal_user(p), &access);
    reviews_ask(a->reviews, key, &body, on_verdict, q);
}

uint64_t authorizer_asked(const Authorizer *a)
{
    return a->reviews ? reviews_asked(a->reviews) : 0;
}
