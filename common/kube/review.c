/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/review.h"

#include "common/base/str.h"
#include "common/json/write.h"

#include <errno.h>
#include <string.h>

#define EXTRA_MAX ((size_t)64 * 1024)

static void review_begin(JsonWriter *w, const char *api_version, const char *kind)
{
    jw_object(w);
    jw_kv_str(w, "apiVersion", api_version);
    jw_kv_str(w, "kind", kind);
    jw_key(w, "spec");
    jw_object(w);
}

static void review_end(JsonWriter *w)
{
    jw_object_end(w);
    jw_object_end(w);
}

void kube_token_review_body(Buf *out, const char *token, const char *audience)
{
    JsonWriter w = json_writer(out);
    review_begin(&w, "authentication.k8s.io/v1", "TokenReview");
    jw_kv_str(&w, "token", token);
    jw_key(&w, "audiences");
    jw_array(&w);
    jw_str(&w, audience);
    jw_array_end(&w);
    review_end(&w);
}

static bool array_has(const JsonValue *array, const char *word)
{
    for (size_t i = 0; i < json_array_len(array); i++)
        if (str_eq(json_value_str(json_array_at(array, i)), word))
            return true;
    return false;
}

static int check_kind(const JsonValue *review, const char *kind, Error **error)
{
    if (!str_eq(json_str(review, "kind"), kind) ||
        json_type(json_get(review, "status")) != JSON_OBJECT)
        return error_set(error, ERROR_UNAVAILABLE, "the API server's answer is no %s", kind);
    return 0;
}

static int check_authenticated(const JsonValue *review, const char *audience, Error **error)
{
    if (!json_bool(review, "status.authenticated", false)) {
        const char *why = json_str(review, "status.error");
        return error_set(error, ERROR_UNAUTHENTICATED, "the token was not accepted%s%s",
                         why ? ": " : "", why ? why : "");
    }
    if (!array_has(json_path(review, "status.audiences"), audience))
        return error_set(error, ERROR_UNAUTHENTICATED,
                         "the token was not issued for the audience \"%s\"", audience);
    return 0;
}

static bool name_fits(const char *name, size_t len)
{
    return len > 0 && len <= KUBE_REVIEW_NAME_MAX && strlen(name) == len;
}

static int copy_name(const JsonValue *v, char **ret, Error **error)
{
    const char *name = json_value_str(v);
    if (!name || !name_fits(name, json_str_len(v)))
        return error_set(error, ERROR_UNAUTHENTICATED,
                         "the token's user or group name is unusable");
    *ret = xstrdup(name);
    return 0;
}

static int copy_groups(const JsonValue *groups, KubeUser *user, Error **error)
{
    size_t n = json_array_len(groups);
    if (n > KUBE_REVIEW_GROUPS_MAX)
        return error_set(error, ERROR_TOO_LARGE, "the token's user is in more than %d groups",
                         KUBE_REVIEW_GROUPS_MAX);
    user->groups = xcalloc(n ? n : 1, sizeof(char *));
    for (; user->n_groups < n; user->n_groups++) {
        int r =
            copy_name(json_array_at(groups, user->n_groups), &user->groups[user->n_groups], error);
        if (r < 0)
            return r;
    }
    return 0;
}

static int copy_extra(const JsonValue *extra, KubeUser *user, Error **error)
{
    if (json_type(extra) != JSON_OBJECT)
        return 0;
    _cleanup_buf_ Buf text = BUF_INIT(EXTRA_MAX);
    json_print(extra, &text);
    int r = buf_check(&text, "extra of the token's user", error);
    if (r < 0)
        return r;
    user->extra_json = buf_take(&text, NULL);
    return 0;
}

static int copy_user(const JsonValue *from, KubeUser *user, Error **error)
{
    int r = copy_name(json_get(from, "username"), &user->name, error);
    if (r < 0)
        return r;
    const JsonValue *uid = json_get(from, "uid");
    if (!str_empty(json_value_str(uid))) {
        r = copy_name(uid, &user->uid, error);
        if (r < 0)
            return r;
    }
    r = copy_groups(json_get(from, "groups"), user, error);
    if (r < 0)
        return r;
    return copy_extra(json_get(from, "extra"), user, error);
}

int kube_token_review_parse(const JsonValue *review, const char *audience, KubeUser *ret,
                            Error **error)
{
    int r = check_kind(review, "TokenReview", error);
    if (r < 0)
        return r;
    r = check_authenticated(review, audience, error);
    if (r < 0)
        return r;
    _cleanup_(kube_user_done) KubeUser user = {0};
    r = copy_user(json_path(review, "status.user"), &user, error);
    if (r < 0)
        return r;
    *ret = user;
    user = (KubeUser){0};
    return 0;
}

void kube_user_done(KubeUser *user)
{
    for (size_t i = 0; i < user->n_groups; i++)
        free(user->groups[i]);
    free(user->groups);
    free(user->name);
    free(user->uid);
    free(user->extra_json);
    *user = (KubeUser){0};
}

static void write_attributes(JsonWriter *w, const KubeAccess *access)
{
    jw_key(w, "resourceAttributes");
    jw_object(w);
    jw_kv_str(w, "namespace", access->ns);
    jw_kv_str(w, "verb", access->verb);
    jw_kv_str(w, "group", access->group);
    jw_kv_str(w, "resource", access->resource);
    jw_kv_str_opt(w, "subresource", access->subresource);
    jw_kv_str_opt(w, "name", access->name);
    jw_object_end(w);
}

void kube_access_review_body(Buf *out, const KubeUser *user, const KubeAccess *access)
{
    JsonWriter w = json_writer(out);
    review_begin(&w, "authorization.k8s.io/v1", "SubjectAccessReview");
    write_attributes(&w, access);
    jw_kv_str(&w, "user", user->name);
    jw_kv_str_opt(&w, "uid", user->uid);
    jw_key(&w, "groups");
    jw_array(&w);
    for (size_t i = 0; i < user->n_groups; i++)
        jw_str(&w, user->groups[i]);
    jw_array_end(&w);
    if (user->extra_json)
        jw_kv_raw(&w, "extra", user->extra_json);
    review_end(&w);
}

int kube_access_review_parse(const JsonValue *review, bool *ret_allowed, Error **error)
{
    int r = check_kind(review, "SubjectAccessReview", error);
    if (r < 0)
        return r;
    const JsonValue *allowed = json_path(review, "status.allowed");
    if (json_type(allowed) != JSON_BOOL)
        return error_set(error, ERROR_UNAVAILABLE,
                         "the API server did not decide about the access");
    *ret_allowed = json_value_bool(allowed, false) && !json_bool(review, "status.denied", false);
    return 0;
}
