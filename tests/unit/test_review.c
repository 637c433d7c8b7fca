/* SPDX-License-Identifier: Apache-2.0 */
/* Who a token is, and what they may: nothing but a clear yes is a yes. */
#include "tests/unit/cmocka_all.h"

#include "common/kube/review.h"

#include <string.h>

#define AUDIENCE "k8s-agent-sandbox-mcp"
#define REVIEW(status) "{\"kind\":\"TokenReview\",\"status\":" status "}"
#define USER(user)                                                                                 \
    REVIEW("{\"authenticated\":true,\"audiences\":[\"" AUDIENCE "\"],\"user\":" user "}")

static int parse_token(const char *text, KubeUser *user, Error **error)
{
    _cleanup_json_ JsonValue *review = NULL;
    assert_int_equal(json_parse(text, strlen(text), 64, JSON_PARSE_DEFAULT, &review, NULL), 0);
    return kube_token_review_parse(review, AUDIENCE, user, error);
}

static void expect_refused(const char *text, ErrorKind kind)
{
    KubeUser user = {0};
    _cleanup_error_ Error *error = NULL;
    if (parse_token(text, &user, &error) >= 0)
        fail_msg("accepted %s", text);
    assert_int_equal(error->kind, kind);
    assert_null(user.name);
}

static void test_body(void **state)
{
    (void)state;
    _cleanup_buf_ Buf out = BUF_INIT(4096);
    kube_token_review_body(&out, "a\"b", AUDIENCE);
    assert_string_equal(buf_str(&out),
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                        "\"spec\":{\"token\":\"a\\\"b\",\"audiences\":[\"" AUDIENCE "\"]}}");
}

static void test_user(void **state)
{
    (void)state;
    KubeUser user = {0};
    _cleanup_error_ Error *error = NULL;
    assert_int_equal(
        parse_token(USER("{\"username\":\"system:serviceaccount:d:a\",\"uid\":\"u\",\"groups\":["
                         "\"g1\",\"g2\"],"
                         "\"extra\":{\"authentication.kubernetes.io/pod-name\":[\"p\"]}}"),
                    &user, &error),
        0);
    assert_string_equal(user.name, "system:serviceaccount:d:a");
    assert_string_equal(user.uid, "u");
    assert_int_equal(user.n_groups, 2);
    assert_string_equal(user.groups[1], "g2");
    assert_string_equal(user.extra_json, "{\"authentication.kubernetes.io/pod-name\":[\"p\"]}");
    kube_user_done(&user);
    assert_int_equal(
        parse_token(USER("{\"username\":\"x\",\"uid\":\"\",\"groups\":null}"), &user, &error), 0);
    assert_null(user.uid);
    assert_int_equal(user.n_groups, 0);
    kube_user_done(&user);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused(REVIEW("{\"authenticated\":false,\"error\":\"expired\"}"),
                   ERROR_UNAUTHENTICATED);
    expect_refused(REVIEW("{\"user\":{}}"), ERROR_UNAUTHENTICATED);
    expect_refused(REVIEW("{\"authenticated\":\"true\",\"user\":{\"username\":\"x\"}}"),
                   ERROR_UNAUTHENTICATED);
    expect_refused(REVIEW("{\"authenticated\":1,\"user\":{\"username\":\"x\"}}"),
                   ERROR_UNAUTHENTICATED);
    /* The server does not know audiences, or names another one. */
    expect_refused(REVIEW("{\"authenticated\":true,\"user\":{\"username\":\"x\"}}"),
                   ERROR_UNAUTHENTICATED);
    expect_refused(
        REVIEW("{\"authenticated\":true,\"audiences\":[],\"user\":{\"username\":\"x\"}}"),
        ERROR_UNAUTHENTICATED);
    expect_refused(REVIEW("{\"authenticated\":true,\"audiences\":[\"" AUDIENCE
                          "x\",5],\"user\":{\"username\":\"x\"}}"),
                   ERROR_UNAUTHENTICATED);
    expect_refused(REVIEW("{\"authenticated\":true,\"audiences\":\"" AUDIENCE
                          "\",\"user\":{\"username\":\"x\"}}"),
                   ERROR_UNAUTHENTICATED);
}

static void test_no_review(void **state)
{
    (void)state;
    expect_refused("{}", ERROR_UNAVAILABLE);
    expect_refused("[]", ERROR_UNAVAILABLE);
    expect_refused("{\"kind\":\"Status\",\"status\":{\"authenticated\":true}}", ERROR_UNAVAILABLE);
    expect_refused("{\"kind\":\"TokenReview\",\"status\":null}", ERROR_UNAVAILABLE);
    expect_refused("{\"kind\":\"TokenReview\",\"status\":\"ok\"}", ERROR_UNAVAILABLE);
}

static void test_unusable_users(void **state)
{
    (void)state;
    expect_refused(USER("{}"), ERROR_UNAUTHENTICATED);
    expect_refused(USER("null"), ERROR_UNAUTHENTICATED);
    expect_refused(USER("{\"username\":\"\"}"), ERROR_UNAUTHENTICATED);
    expect_refused(USER("{\"username\":5}"), ERROR_UNAUTHENTICATED);
    expect_refused(USER("{\"username\":\"admin\\u0000x\"}"), ERROR_UNAUTHENTICATED);
    expect_refused(USER("{\"username\":\"x\",\"groups\":[\"\"]}"), ERROR_UNAUTHENTICATED);
    expect_refused(USER("{\"username\":\"x\",\"groups\":[null]}"), ERROR_UNAUTHENTICATED);
    expect_refused(USER("{\"username\":\"x\",\"groups\":[\"a\",\"b\\u0000c\"]}"),
                   ERROR_UNAUTHENTICATED);
    expect_refused(USER("{\"username\":\"x\",\"uid\":\"a\\u0000\"}"), ERROR_UNAUTHENTICATED);
}

static void test_too_many_groups(void **state)
{
    (void)state;
    _cleanup_buf_ Buf text = BUF_INIT(1 << 20);
    buf_append_str(
        &text,
        "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"audiences\":[\"" AUDIENCE
        "\"],"
        "\"user\":{\"username\":\"x\",\"groups\":[\"g\"");
    for (int i = 0; i < KUBE_REVIEW_GROUPS_MAX; i++)
        buf_append_str(&text, ",\"g\"");
    buf_append_str(&text, "]}}}");
    expect_refused(buf_str(&text), ERROR_TOO_LARGE);
}

static void test_access_body(void **state)
{
    (void)state;
    char name[] = "jane", group[] = "dev", extra[] = "{\"k\":[\"v\"]}";
    char *groups[] = {group};
    const KubeUser user = {.name = name, .groups = groups, .n_groups = 1, .extra_json = extra};
    const KubeAccess access = {.verb = "create",
                               .group = "extensions.agents.x-k8s.io",
                               .resource = "sandboxclaims",
                               .subresource = "exec",
                               .ns = "d",
                               .name = "c"};
    _cleanup_buf_ Buf out = BUF_INIT(4096);
    kube_access_review_body(&out, &user, &access);
    assert_string_equal(
        buf_str(&out),
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
        "\"resourceAttributes\":{\"namespace\":\"d\",\"verb\":\"create\",\"group\":\"extensions."
        "agents.x-k8s.io\","
        "\"resource\":\"sandboxclaims\",\"subresource\":\"exec\",\"name\":\"c\"},"
        "\"user\":\"jane\",\"groups\":[\"dev\"],\"extra\":{\"k\":[\"v\"]}}}");
}

static int parse_access(const char *status, bool *ret, Error **error)
{
    _cleanup_free_ char *text =
        xasprintf("{\"kind\":\"SubjectAccessReview\",\"status\":%s}", status);
    _cleanup_json_ JsonValue *review = NULL;
    assert_int_equal(json_parse(text, strlen(text), 64, JSON_PARSE_DEFAULT, &review, NULL), 0);
    return kube_access_review_parse(review, ret, error);
}

static void test_access(void **state)
{
    (void)state;
    bool allowed = false;
    assert_int_equal(parse_access("{\"allowed\":true}", &allowed, NULL), 0);
    assert_true(allowed);
    assert_int_equal(parse_access("{\"allowed\":false,\"reason\":\"no\"}", &allowed, NULL), 0);
    assert_false(allowed);
    assert_int_equal(parse_access("{\"allowed\":true,\"denied\":true}", &allowed, NULL), 0);
    assert_false(allowed);
    static const char *const undecided[] = {
        "{}", "null", "{\"allowed\":\"true\"}", "{\"allowed\":1}", "[]", "true"};
    for (size_t i = 0; i < ARRAY_SIZE(undecided); i++) {
        _cleanup_error_ Error *error = NULL;
        assert_true(parse_access(undecided[i], &allowed, &error) < 0);
        assert_int_equal(error->kind, ERROR_UNAVAILABLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_body),           cmocka_unit_test(test_user),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_no_review),
        cmocka_unit_test(test_unusable_users), cmocka_unit_test(test_too_many_groups),
        cmocka_unit_test(test_access_body),    cmocka_unit_test(test_access),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
