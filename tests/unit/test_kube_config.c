/* SPDX-License-Identifier: Apache-2.0 */
/* The service account of a pod, and which configuration is taken. */
#include "tests/unit/cmocka_all.h"

#include "common/kube/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
#define CONFIG(server)                                                                             \
    "{current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, "     \
    "cluster: {server: '" server "'}}]}"

static char dir[] = "/tmp/kube-config-XXXXXX";

static char *in_dir(const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void put(const char *name, const char *text)
{
    _cleanup_free_ char *path = in_dir(name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void drop(const char *name)
{
    _cleanup_free_ char *path = in_dir(name);
    (void)unlink(path);
}

static int setup(void **state)
{
    (void)state;
    put("token", "tok\n");
    put("ca.crt", PEM);
    put("namespace", "agents");
    assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1), 0);
    assert_int_equal(setenv("KUBERNETES_SERVICE_PORT", "443", 1), 0);
    return 0;
}

static int group_setup(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    (void)unsetenv("KUBECONFIG");
    return setenv("HOME", dir, 1);
}

static int group_teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"token",        "ca.crt", "namespace",
                                        ".kube/config", "one",    "two"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        drop(names[i]);
    _cleanup_free_ char *kube = in_dir(".kube");
    (void)rmdir(kube);
    return rmdir(dir);
}

static void test_in_cluster(void **state)
{
    (void)state;
    _cleanup_(kube_config_freep) KubeConfig *c = NULL;
    assert_int_equal(kube_config_load_in_cluster(dir, &c, NULL), 0);
    assert_string_equal(c->server, "https://10.96.0.1:443");
    assert_string_equal(c->token, "tok");
    assert_string_equal(c->ca_pem, PEM);
    assert_string_equal(c->namespace_, "agents");
}

static void test_ipv6(void **state)
{
    (void)state;
    _cleanup_(kube_config_freep) KubeConfig *c = NULL;
    assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1), 0);
    assert_int_equal(kube_config_load_in_cluster(dir, &c, NULL), 0);
    assert_string_equal(c->server, "https://[fd00::1]:443");
}

static void test_rotation(void **state)
{
    (void)state;
    _cleanup_(kube_config_freep) KubeConfig *c = NULL;
    assert_int_equal(kube_config_load_in_cluster(dir, &c, NULL), 0);
    put("token", "tok2");
    assert_false(kube_config_refresh(c, 100));
    assert_string_equal(c->token, "tok2");
    put("ca.crt", PEM PEM);
    assert_true(kube_config_refresh(c, 200));
    assert_false(kube_config_refresh(c, 300));
    drop("token");
    drop("ca.crt");
    assert_false(kube_config_refresh(c, 400));
    assert_string_equal(c->token, "tok2");
    assert_string_equal(c->ca_pem, PEM PEM);
}

static void refused(ErrorKind kind, const char *said)
{
    KubeConfig *c = NULL;
    _cleanup_error_ Error *error = NULL;
    assert_true(kube_config_load_in_cluster(dir, &c, &error) < 0);
    assert_null(c);
    assert_int_equal(error->kind, kind);
    assert_non_null(strstr(error->message, said));
}

static void test_what_is_wrong_is_named(void **state)
{
    (void)state;
    put("token", "");
    refused(ERROR_INVALID, "empty");
    put("token", "a b");
    refused(ERROR_INVALID, "token");
    drop("token");
    refused(ERROR_NOT_FOUND, "token");
    put("token", "t");
    put("ca.crt", "no");
    refused(ERROR_INVALID, "ca.crt");
    drop("ca.crt");
    refused(ERROR_NOT_FOUND, "ca.crt");
    assert_int_equal(setenv("KUBERNETES_SERVICE_PORT", "https", 1), 0);
    refused(ERROR_INVALID, "KUBERNETES_SERVICE_PORT");
    assert_int_equal(setenv("KUBERNETES_SERVICE_PORT", "0", 1), 0);
    refused(ERROR_INVALID, "KUBERNETES_SERVICE_PORT");
    assert_int_equal(unsetenv("KUBERNETES_SERVICE_HOST"), 0);
    refused(ERROR_NOT_FOUND, "not in a cluster");
}

static void test_namespace_falls_back(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "No Good", "../x"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_(kube_config_freep) KubeConfig *c = NULL;
        put("namespace", bad[i]);
        assert_int_equal(kube_config_load_in_cluster(dir, &c, NULL), 0);
        assert_string_equal(c->namespace_, "default");
    }
}

static void expect_server(const char *path, const char *server)
{
    _cleanup_(kube_config_freep) KubeConfig *c = NULL;
    assert_int_equal(kube_config_load(path, NULL, &c, NULL), 0);
    assert_string_equal(c->server, server);
}

static void test_order_of_sources(void **state)
{
    (void)state;
    KubeConfig *c = NULL;
    _cleanup_error_ Error *error = NULL;
    assert_int_equal(unsetenv("KUBERNETES_SERVICE_HOST"), 0);
    assert_true(kube_config_load(NULL, NULL, &c, &error) < 0);
    assert_non_null(strstr(error->hint, "--kubeconfig"));

    _cleanup_free_ char *kube = in_dir(".kube");
    assert_int_equal(mkdir(kube, 0700), 0);
    put(".kube/config", CONFIG("http://home"));
    expect_server(NULL, "http://home");
    expect_server("", "http://home");

    put("one", CONFIG("http://one"));
    put("two", CONFIG("http://two"));
    _cleanup_free_ char *list = xasprintf(":%s/missing:%s/two:%s/one", dir, dir, dir);
    assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
    expect_server(NULL, "http://two");
    _cleanup_free_ char *one = in_dir("one");
    expect_server(one, "http://one");
    assert_int_equal(setenv("KUBECONFIG", "/nonexistent", 1), 0);
    assert_true(kube_config_load(NULL, NULL, &c, NULL) < 0);
    (void)unsetenv("KUBECONFIG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_cluster, setup),
        cmocka_unit_test_setup(test_ipv6, setup),
        cmocka_unit_test_setup(test_rotation, setup),
        cmocka_unit_test_setup(test_what_is_wrong_is_named, setup),
        cmocka_unit_test_setup(test_namespace_falls_back, setup),
        cmocka_unit_test_setup(test_order_of_sources, setup),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
