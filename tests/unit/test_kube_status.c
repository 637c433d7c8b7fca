/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the API, its Status objects as errors, and delete options. */
#include "tests/unit/cmocka_all.h"

#include "common/base/str.h"
#include "common/kube/client.h"
#include "common/kube/exec_url.h"

#include <string.h>

static const KubeResource pods = {.group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
static const KubeResource claims = {.group = "extensions.agents.x-k8s.io",
                                    .version = "v1beta1",
                                    .plural = "sandboxclaims",
                                    .kind = "SandboxClaim"};

static void expect_path(const KubeResource *r, const char *ns, const char *name, const char *sub,
                        const char *path)
{
    _cleanup_free_ char *got = kube_path_dup(r, ns, name, sub);
    assert_string_equal(got, path);
}

static void test_paths(void **state)
{
    (void)state;
    static const KubeResource nodes = {
        .group = "", .version = "v1", .plural = "nodes", .kind = "Node"};
    expect_path(&pods, NULL, NULL, NULL, "/api/v1/pods");
    expect_path(&pods, "default", NULL, NULL, "/api/v1/namespaces/default/pods");
    expect_path(&pods, "default", "a.b", "exec", "/api/v1/namespaces/default/pods/a.b/exec");
    expect_path(&nodes, NULL, "n", NULL, "/api/v1/nodes/n");
    expect_path(&claims, "d", "c", "status",
                "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/d/sandboxclaims/c/status");
}

static void test_a_part_stays_one_part(void **state)
{
    (void)state;
    expect_path(&pods, "d", "../x?y#z%", NULL, "/api/v1/namespaces/d/pods/..%2Fx%3Fy%23z%25");
    expect_path(&pods, "d", "system:\xc3\xa4 b", NULL,
                "/api/v1/namespaces/d/pods/system%3A%C3%A4%20b");
}

static Error *from(int status, const char *body)
{
    return kube_status_error(
        "create", "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team/sandboxclaims", status,
        body, strlen(body), 0);
}

static void expect_kind(int status, const char *reason, ErrorKind kind)
{
    _cleanup_free_ char *body = xasprintf(
        "{\"kind\":\"Status\",\"message\":\"why\",\"reason\":\"%s\",\"code\":%d}", reason, status);
    _cleanup_error_ Error *e = from(status, body);
    assert_int_equal(e->kind, kind);
    assert_int_equal(e->http_status, status);
    assert_string_equal(e->reason, reason);
    assert_non_null(strstr(e->message, "why"));
}

static void test_kinds(void **state)
{
    (void)state;
    expect_kind(400, "BadRequest", ERROR_INVALID);
    expect_kind(401, "Unauthorized", ERROR_UNAUTHENTICATED);
    expect_kind(403, "Forbidden", ERROR_DENIED);
    expect_kind(404, "NotFound", ERROR_NOT_FOUND);
    expect_kind(408, "Timeout", ERROR_TIMEOUT);
    expect_kind(409, "AlreadyExists", ERROR_EXISTS);
    expect_kind(409, "Conflict", ERROR_CONFLICT);
    expect_kind(410, "Expired", ERROR_GONE);
    expect_kind(413, "RequestEntityTooLarge", ERROR_TOO_LARGE);
    expect_kind(418, "Teapot", ERROR_INVALID);
    expect_kind(422, "Invalid", ERROR_INVALID);
    expect_kind(429, "TooManyRequests", ERROR_EXHAUSTED);
    expect_kind(500, "InternalError", ERROR_UNAVAILABLE);
    expect_kind(503, "ServiceUnavailable", ERROR_UNAVAILABLE);
    expect_kind(504, "Timeout", ERROR_TIMEOUT);
    expect_kind(504, "GatewayTimeout", ERROR_UNAVAILABLE);
    expect_kind(302, "Found", ERROR_UNAVAILABLE);
}

static void test_bodies_that_are_no_status(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "{",
        "null",
        "[]",
        "{}",
        "{\"message\":5,\"reason\":{}}",
        "{\"message\":\"\"}",
        "<html><body>no</body></html>",
        "\x00\xff",
        "{\"details\":{\"retryAfterSeconds\":\"x\"}}",
        "{\"details\":{\"retryAfterSeconds\":9999999999999}}",
        "{\"details\":{\"retryAfterSeconds\":-5}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        _cleanup_error_ Error *e = from(502, bodies[i]);
        assert_int_equal(e->kind, ERROR_UNAVAILABLE);
        assert_non_null(strstr(e->message, "502"));
        assert_null(strchr(e->message, '<'));
        assert_int_equal(e->retry_after_ms, 0);
    }
}

static void test_plain_text_is_quoted_shortly(void **state)
{
    (void)state;
    _cleanup_error_ Error *e = from(500, "etcd is away\nsecond line");
    assert_non_null(strstr(e->message, "etcd is away"));
    assert_null(strstr(e->message, "second"));
    char longest[5000];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    _cleanup_error_ Error *cut = from(500, longest);
    assert_true(strlen(cut->message) < 300);
}

static void test_denied_names_what_is_missing(void **state)
{
    (void)state;
    _cleanup_error_ Error *e = from(403, "{\"message\":\"User \\\"x\\\" cannot create resource\"}");
    assert_non_null(strstr(
        e->message, "may not create sandboxclaims.extensions.agents.x-k8s.io in namespace team"));
    assert_non_null(
        strstr(e->hint, "verb \"create\" on \"sandboxclaims.extensions.agents.x-k8s.io\""));
    _cleanup_error_ Error *bare = from(403, "");
    assert_non_null(bare->hint);
    _cleanup_error_ Error *node = kube_status_error("get", "/api/v1/nodes/n?x=y", 403, "", 0, 0);
    assert_non_null(strstr(node->message, "may not get nodes:"));
    _cleanup_error_ Error *exec =
        kube_status_error("create", "/api/v1/namespaces/d/pods/p/exec?command=x", 403, "", 0, 0);
    assert_non_null(strstr(exec->message, "may not create pods/exec in namespace d"));
    _cleanup_error_ Error *ns = kube_status_error("get", "/api/v1/namespaces/d", 403, "", 0, 0);
    assert_non_null(strstr(ns->message, "namespaces in namespace d"));
    _cleanup_error_ Error *odd = kube_status_error("get", "", 403, "", 0, 0);
    assert_int_equal(odd->kind, ERROR_DENIED);
}

static void test_denied_by_other_than_rights(void **state)
{
    (void)state;
    _cleanup_error_ Error *quota =
        from(403, "{\"message\":\"pods \\\"p\\\" is forbidden: exceeded quota: q\"}");
    assert_int_equal(quota->kind, ERROR_EXHAUSTED);
    assert_non_null(strstr(quota->hint, "ResourceQuota"));
    _cleanup_error_ Error *webhook =
        from(403, "{\"message\":\"admission webhook \\\"w\\\" denied the request\"}");
    assert_int_equal(webhook->kind, ERROR_DENIED);
    assert_null(webhook->hint);
    _cleanup_error_ Error *pss =
        from(403, "{\"message\":\"violates PodSecurity \\\"restricted\\\"\"}");
    assert_null(pss->hint);
}

static void test_retry_after(void **state)
{
    (void)state;
    const char *body = "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":3}}";
    _cleanup_error_ Error *details = from(429, body);
    assert_int_equal(details->retry_after_ms, 3000);
    _cleanup_error_ Error *header =
        kube_status_error("get", "/api/v1/pods", 429, body, strlen(body), 7000);
    assert_int_equal(header->retry_after_ms, 7000);
    _cleanup_error_ Error *huge = kube_status_error("get", "/api/v1/pods", 429, "", 0, INT64_MAX);
    assert_int_equal(huge->retry_after_ms, INT32_MAX);
}

static void expect_delete(const char *uid, const char *version, const char *policy,
                          const char *text)
{
    _cleanup_buf_ Buf out = BUF_INIT(1024);
    kube_delete_options(&out, uid, version, policy);
    assert_string_equal(buf_str(&out), text);
}

static void test_delete_options(void **state)
{
    (void)state;
#define HEAD "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\""
    expect_delete(NULL, NULL, NULL, HEAD "}");
    expect_delete("u", NULL, NULL, HEAD ",\"preconditions\":{\"uid\":\"u\"}}");
    expect_delete("u", "7", "Background",
                  HEAD ",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},"
                       "\"propagationPolicy\":\"Background\"}");
}

static void expect_exec(const KubeExec *exec, const char *path)
{
    _cleanup_buf_ Buf out = BUF_INIT(4096);
    kube_exec_path(&out, exec);
    assert_string_equal(buf_str(&out), path);
}

static void test_exec_address(void **state)
{
    (void)state;
    const char *const shell[] = {"sh", "-c", "echo \"a&b\" | x=1 '\n'", ""};
    expect_exec(
        &(KubeExec){.ns = "d",
                    .pod = "p",
                    .container = "main",
                    .command = shell,
                    .n_command = 4,
                    .stdin_ = true,
                    .stdout_ = true,
                    .stderr_ = true},
        "/api/v1/namespaces/d/pods/p/"
        "exec?command=sh&command=-c&command=echo%20%22a%26b%22%20%7C%20x%3D1%20%27%0A%27&command="
        "&container=main&stdin=true&stdout=true&stderr=true&tty=false");
    expect_exec(
        &(KubeExec){.ns = "d", .pod = "p", .command = shell, .n_command = 1, .stdout_ = true},
        "/api/v1/namespaces/d/pods/p/"
        "exec?command=sh&stdin=false&stdout=true&stderr=false&tty=false");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_a_part_stays_one_part),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_bodies_that_are_no_status),
        cmocka_unit_test(test_plain_text_is_quoted_shortly),
        cmocka_unit_test(test_denied_names_what_is_missing),
        cmocka_unit_test(test_denied_by_other_than_rights),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_delete_options),
        cmocka_unit_test(test_exec_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
