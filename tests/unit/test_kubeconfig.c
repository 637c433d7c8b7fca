/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfigs as people have them, and as nobody should. */
#include "tests/unit/cmocka_all.h"

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/kube/kubeconfig.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_CERT "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
#define PEM_KEY "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"
/* Base64 of the two. */
#define CERT64 "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
#define KEY64 "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUUKLS0tLS1FTkQgUFJJVkFURSBLRVktLS0tLQo="

static char dir[] = "/tmp/kubeconfig-XXXXXX";

static int group_setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static char *in_dir(const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void put(const char *name, const char *text)
{
    _cleanup_free_ char *path = in_dir(name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static int group_teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"ca.pem", "cert.pem", "key.pem", "token",
                                        "config", "fifo",     "big"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        _cleanup_free_ char *path = in_dir(names[i]);
        (void)unlink(path);
    }
    return rmdir(dir);
}

static int parse(const char *text, const char *context, KubeConfig **ret, Error **error)
{
    _cleanup_free_ char *path = in_dir("config");
    return kube_config_parse(text, strlen(text), path, context, ret, error);
}

static KubeConfig *accept(const char *text, const char *context)
{
    KubeConfig *c = NULL;
    _cleanup_error_ Error *error = NULL;
    if (parse(text, context, &c, &error) < 0)
        fail_msg("refused: %s", error_message(error));
    assert_null(error);
    return c;
}

static void refuse(const char *text, const char *said)
{
    KubeConfig *c = NULL;
    _cleanup_error_ Error *error = NULL;
    if (parse(text, NULL, &c, &error) >= 0)
        fail_msg("accepted: %s", text);
    assert_null(c);
    assert_non_null(error);
    if (!strstr(error->message, said) && !(error->hint && strstr(error->hint, said)))
        fail_msg("\"%s\" does not say \"%s\"", error->message, said);
}

#define CONTEXT                                                                                    \
    "current-context: x\n"                                                                         \
    "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
#define CLUSTER                                                                                    \
    "clusters: [{name: c, cluster: {server: 'https://h:6443', certificate-authority-data: " CERT64 \
    "}}]\n"
#define USER(fields) CONTEXT CLUSTER "users: [{name: u, user: {" fields "}}]\n"
#define SERVER(fields)                                                                             \
    CONTEXT "clusters: [{name: c, cluster: {" fields "}}]\nusers: [{name: u, user: {}}]\n"

/* As kubeadm writes it. */
static void test_inline_certificates(void **state)
{
    (void)state;
    _cleanup_(kube_config_freep) KubeConfig *c =
        accept("apiVersion: v1\n"
               "clusters:\n"
               "- cluster:\n"
               "    certificate-authority-data: " CERT64 "\n"
               "    server: https://10.0.0.1:6443\n"
               "  name: kubernetes\n"
               "contexts:\n"
               "- context:\n"
               "    cluster: kubernetes\n"
               "    user: kubernetes-admin\n"
               "    namespace: team-a\n"
               "  name: kubernetes-admin@kubernetes\n"
               "current-context: kubernetes-admin@kubernetes\n"
               "kind: Config\n"
               "preferences: {}\n"
               "users:\n"
               "- name: kubernetes-admin\n"
               "  user:\n"
               "    client-certificate-data: " CERT64 "\n"
               "    client-key-data: " KEY64 "\n",
               NULL);
    assert_string_equal(c->server, "https://10.0.0.1:6443");
    assert_string_equal(c->ca_pem, PEM_CERT);
    assert_string_equal(c->client_cert_pem, PEM_CERT);
    assert_string_equal(c->client_key_pem, PEM_KEY);
    assert_string_equal(c->namespace_, "team-a");
    assert_null(c->token);
    assert_null(c->tls_server_name);
    assert_false(c->insecure_skip_verify);
}

static void test_files_beside_the_config(void **state)
{
    (void)state;
    put("ca.pem", PEM_CERT);
    put("cert.pem", PEM_CERT);
    put("key.pem", PEM_KEY);
    put("token", "  secret-token\n");
    _cleanup_free_ char *key = in_dir("key.pem");
    _cleanup_free_ char *text = xasprintf(
        CONTEXT
        "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: ca.pem}}]\n"
        "users: [{name: u, user: {client-certificate: ./cert.pem, client-key: '%s',"
        " tokenFile: token, token: stale}}]\n",
        key);
    _cleanup_(kube_config_freep) KubeConfig *c = accept(text, NULL);
    assert_string_equal(c->ca_pem, PEM_CERT);
    assert_string_equal(c->client_key_pem, PEM_KEY);
    assert_string_equal(c->token, "secret-token");
    assert_string_equal(c->namespace_, "default");
    assert_true(str_ends_with(c->ca_path, "/ca.pem"));
    assert_true(str_ends_with(c->token_path, "/token"));
}

static void test_rotation_of_files(void **state)
{
    (void)state;
    put("ca.pem", PEM_CERT);
    put("token", "one");
    _cleanup_(kube_config_freep) KubeConfig *c = accept(
        CONTEXT
        "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: ca.pem}}]\n"
        "users: [{name: u, user: {tokenFile: token}}]\n",
        NULL);
    assert_false(kube_config_refresh(c, 5));
    assert_int_equal(c->token_read_ms, 5);
    put("token", "two\n");
    assert_false(kube_config_refresh(c, 6));
    assert_string_equal(c->token, "two");
    put("ca.pem", PEM_CERT PEM_CERT);
    assert_true(kube_config_refresh(c, 7));
    assert_string_equal(c->ca_pem, PEM_CERT PEM_CERT);
    assert_false(kube_config_refresh(c, 8));
    put("ca.pem", "half written");
    put("token", "");
    assert_false(kube_config_refresh(c, 9));
    assert_string_equal(c->token, "two");
    assert_string_equal(c->ca_pem, PEM_CERT PEM_CERT);
}

static void test_json_is_yaml(void **state)
{
    (void)state;
    _cleanup_(kube_config_freep) KubeConfig *c = accept(
        "{\"current-context\":\"x\",\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":"
        "\"http://127.0.0.1:8001\"}}],\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"t\"}}],"
        "\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}]}",
        NULL);
    assert_string_equal(c->server, "http://127.0.0.1:8001");
    assert_string_equal(c->token, "t");
    assert_null(c->ca_pem);
}

static void test_contexts(void **state)
{
    (void)state;
    const char *text = "current-context: one\n"
                       "clusters: [{name: a, cluster: {server: 'http://a'}}, {name: b, cluster: "
                       "{server: 'http://b'}}]\n"
                       "contexts: [{name: one, context: {cluster: a}}, {name: two, context: "
                       "{cluster: b, user: null}}]\n"
                       "users: null\n";
    _cleanup_(kube_config_freep) KubeConfig *one = accept(text, NULL);
    _cleanup_(kube_config_freep) KubeConfig *two = accept(text, "two");
    assert_string_equal(one->server, "http://a");
    assert_string_equal(two->server, "http://b");
    KubeConfig *c = NULL;
    assert_true(parse(text, "three", &c, NULL) < 0);
}

static void test_yaml_forms(void **state)
{
    (void)state;
    /* Anchors, folded base64, numbers as tokens, a comment, quoted null. */
    _cleanup_(kube_config_freep) KubeConfig *c =
        accept("# mine\n" CONTEXT "clusters:\n- name: c\n  cluster:\n    server: https://h\n    "
               "certificate-authority-data: >-\n"
               "      LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1F\n"
               "      TkQgQ0VSVElGSUNBVEUtLS0tLQo=\n"
               "other: &me {token: 12345}\nusers: [{name: u, user: *me}]\n",
               NULL);
    assert_string_equal(c->ca_pem, PEM_CERT);
    assert_string_equal(c->token, "12345");
    _cleanup_(kube_config_freep) KubeConfig *d = accept(USER("token: 'null'"), NULL);
    assert_string_equal(d->token, "null");
    _cleanup_(kube_config_freep) KubeConfig *e =
        accept(USER("token: ~, username: '', exec: null"), NULL);
    assert_null(e->token);
}

static void test_tls_fields(void **state)
{
    (void)state;
    _cleanup_(kube_config_freep) KubeConfig *c = accept(
        SERVER("server: 'https://h', insecure-skip-tls-verify: true, tls-server-name: k8s.example"),
        NULL);
    assert_true(c->insecure_skip_verify);
    assert_string_equal(c->tls_server_name, "k8s.example");
    assert_null(c->ca_pem);
    _cleanup_(kube_config_freep) KubeConfig *d =
        accept(SERVER("server: 'https://h', insecure-skip-tls-verify: false, "
                      "certificate-authority-data: " CERT64),
               NULL);
    assert_false(d->insecure_skip_verify);
}

static void test_plugins_are_refused(void **state)
{
    (void)state;
    refuse(USER("exec: {command: aws}"), "exec is not supported");
    refuse(USER("auth-provider: {name: gcp}"), "auth-provider is not supported");
    refuse(USER("username: me, password: secret"), "username is not supported");
    refuse(USER("as: admin"), "as is not supported");
    refuse(USER("exec: {command: aws}"), "token or a client certificate");
    refuse(SERVER("server: 'http://h', proxy-url: 'http://p'"), "proxy-url is not supported");
}

static void test_what_is_missing_is_named(void **state)
{
    (void)state;
    refuse("", "no current-context");
    refuse("current-context: ''\n", "no current-context");
    refuse("current-context: x\n", "no context named \"x\"");
    refuse("current-context: x\ncontexts: [{name: x}]\n", "names no cluster");
    refuse("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n",
           "no cluster named \"c\"");
    refuse(CONTEXT CLUSTER, "no user named \"u\"");
    refuse(SERVER("x: y"), "no http(s) server");
    refuse(SERVER("server: 'ftp://h'"), "no http(s) server");
    refuse(SERVER("server: [a]"), "no http(s) server");
    refuse(CONTEXT "clusters: [{name: c}]\nusers: []\n", "no http(s) server");
}

static void test_bad_values(void **state)
{
    (void)state;
    refuse(USER("client-certificate-data: " CERT64), "together");
    refuse(USER("client-key-data: " KEY64), "together");
    refuse(USER("client-certificate-data: '!!'"), "client-certificate-data");
    refuse(USER("client-certificate-data: aGVsbG8="), "no PEM");
    refuse(USER("client-certificate-data: LS0tLS1CRUdJTiAA"), "no PEM"); /* a NUL inside */
    refuse(USER("client-certificate: no-such-file"), "no-such-file");
    refuse(USER("tokenFile: no-such-file"), "no-such-file");
    refuse(USER("token: \"two words\""), "token");
    refuse(USER("token: \"a\\r\\nX-Header: b\""), "token");
    refuse(USER("token: \"\\x07\""), "token");
    refuse(SERVER("server: 'https://h', certificate-authority: no-such-file"), "no-such-file");
    refuse("current-context: x\ncontexts: [{name: x, context: {cluster: c, namespace: "
           "../etc}}]\n" CLUSTER,
           "bad namespace");
}

static void test_errors_name_user_and_cluster(void **state)
{
    (void)state;
    refuse(USER("exec: {}"), "user \"u\"");
    refuse(SERVER("server: x"), "cluster \"c\"");
}

static void test_not_yaml(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a: [",         "\t- x",   "{",           "a: b: c", "*unknown", "'", "%YAML 9.9\n---\n",
        "\xff\xfe\x00", "a: \x01", "--- |\n\x80",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        KubeConfig *c = NULL;
        _cleanup_error_ Error *error = NULL;
        assert_true(parse(texts[i], NULL, &c, &error) < 0);
        assert_int_equal(error->kind, ERROR_INVALID);
    }
}

static void test_roots_of_other_types(void **state)
{
    (void)state;
    refuse("just text", "no current-context");
    refuse("[1, 2]", "no current-context");
    refuse("current-context: {a: b}", "no current-context");
    refuse("current-context: x\ncontexts: {name: x}", "no context named");
    refuse("current-context: x\ncontexts: [x, [x], {name: [x]}, {x: x}]", "no context named");
}

/* Aliases are references, never copies: a "billion laughs" file is as small as it looks. */
static void test_aliases_do_not_multiply(void **state)
{
    (void)state;
    _cleanup_buf_ Buf text = BUF_INIT(1 << 20);
    buf_append_str(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 30; i++)
        buf_printf(&text, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                   i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    buf_append_str(&text, "current-context: x\ncontexts: *a29\n");
    refuse(buf_str(&text), "no context named");
    refuse("current-context: x\ncontexts: &c [*c]\n", "");
}

static void test_deep_nesting(void **state)
{
    (void)state;
    static const char *const openings[] = {"[", "{a: ", "- ", "? "};
    for (size_t i = 0; i < ARRAY_SIZE(openings); i++) {
        _cleanup_buf_ Buf text = BUF_INIT(1 << 20);
        while (text.len < (1 << 20) - 8)
            buf_append_str(&text, openings[i]);
        refuse(buf_str(&text), "nested more than 64 deep");
    }
}

static void load_refused(const char *name, ErrorKind kind)
{
    _cleanup_free_ char *path = in_dir(name);
    _cleanup_error_ Error *error = NULL;
    KubeConfig *c = NULL;
    assert_true(kube_config_load_file(path, NULL, &c, &error) < 0);
    assert_int_equal(error->kind, kind);
    assert_non_null(strstr(error->message, path));
}

static void test_files_that_are_none(void **state)
{
    (void)state;
    _cleanup_free_ char *fifo = in_dir("fifo");
    _cleanup_free_ char *big = in_dir("big");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int fd = open(big, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
    (void)close(fd);
    load_refused("missing", ERROR_NOT_FOUND);
    load_refused("fifo", ERROR_INVALID);
    load_refused("big", ERROR_TOO_LARGE);
    load_refused(".", ERROR_INVALID);
    assert_int_equal(truncate(big, 100), 0); /* NUL bytes */
    load_refused("big", ERROR_INVALID);
}

static void test_load_file(void **state)
{
    (void)state;
    put("config", USER("token: t"));
    _cleanup_free_ char *path = in_dir("config");
    _cleanup_(kube_config_freep) KubeConfig *c = NULL;
    assert_int_equal(kube_config_load_file(path, NULL, &c, NULL), 0);
    assert_string_equal(c->token, "t");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inline_certificates),
        cmocka_unit_test(test_files_beside_the_config),
        cmocka_unit_test(test_rotation_of_files),
        cmocka_unit_test(test_json_is_yaml),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_yaml_forms),
        cmocka_unit_test(test_tls_fields),
        cmocka_unit_test(test_plugins_are_refused),
        cmocka_unit_test(test_what_is_missing_is_named),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_errors_name_user_and_cluster),
        cmocka_unit_test(test_not_yaml),
        cmocka_unit_test(test_roots_of_other_types),
        cmocka_unit_test(test_aliases_do_not_multiply),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_load_file),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
