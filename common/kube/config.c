/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/config.h"

#include "common/base/file.h"
#include "common/base/str.h"
#include "common/kube/config-internal.h"

#include <ctype.h>
#include <string.h>

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* --- files --- */

void kube_wipe(char **secret)
{
    if (*secret)
        explicit_bzero(*secret, strlen(*secret));
    free(*secret);
    *secret = NULL;
}

int kube_check_token(char *token, const char *where, Error **error)
{
    size_t start = strspn(token, " \t\r\n");
    size_t len = strlen(token + start);
    while (len > 0 && strchr(" \t\r\n", token[start + len - 1]))
        len--;
    memmove(token, token + start, len);
    token[len] = '\0';
    if (len == 0)
        return error_set(error, ERROR_INVALID, "the token in %s is empty", where);
    for (size_t i = 0; i < len; i++)
        if (!isgraph((unsigned char)token[i]))
            return error_set(error, ERROR_INVALID, "the token in %s has bytes no token has", where);
    return 0;
}

int kube_check_pem(const char *pem, const char *where, Error **error)
{
    if (strstr(pem, "-----BEGIN "))
        return 0;
    return error_set(error, ERROR_INVALID, "%s holds no PEM text", where);
}

/* --- refresh --- */

static int read_token(const char *path, char **ret, Error **error)
{
    _cleanup_(kube_wipep) char *token = NULL;
    int r = file_read_text(path, KUBE_TOKEN_MAX, &token, error);
    if (r < 0)
        return r;
    r = kube_check_token(token, path, error);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(token);
    return 0;
}

static int read_pem(const char *path, char **ret, Error **error)
{
    _cleanup_free_ char *pem = NULL;
    int r = file_read_text(path, KUBE_CONFIG_FILE_MAX, &pem, error);
    if (r < 0)
        return r;
    r = kube_check_pem(pem, path, error);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(pem);
    return 0;
}

/* A file that is away or half written at this moment leaves what was read before. */
static void refresh_token(KubeConfig *c)
{
    _cleanup_(kube_wipep) char *token = NULL;
    if (read_token(c->token_path, &token, NULL) < 0)
        return;
    kube_wipe(&c->token);
    c->token = TAKE_PTR(token);
}

static bool refresh_ca(KubeConfig *c)
{
    char *pem = NULL;
    if (read_pem(c->ca_path, &pem, NULL) < 0)
        return false;
    bool changed = !str_eq(pem, c->ca_pem);
    free(c->ca_pem);
    c->ca_pem = pem;
    return changed;
}

bool kube_config_refresh(KubeConfig *c, int64_t now_monotonic_ms)
{
    c->token_read_ms = now_monotonic_ms;
    if (c->token_path)
        refresh_token(c);
    return c->ca_path && refresh_ca(c);
}

/* --- in-cluster --- */

static char *join(const char *dir, const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static int server_from_environment(char **ret, Error **error)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    uint64_t number;
    if (str_empty(host) || str_empty(port))
        return error_set(error, ERROR_NOT_FOUND,
                         "not in a cluster: KUBERNETES_SERVICE_HOST or _PORT is not set");
    if (str_to_u64(port, &number) < 0 || number == 0 || number > 65535)
        return error_set(error, ERROR_INVALID, "KUBERNETES_SERVICE_PORT is no port: %s", port);
    bool v6 = strchr(host, ':') != NULL;
    *ret = xasprintf("https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    return 0;
}

static char *namespace_from_file(const char *dir)
{
    _cleanup_free_ char *path = join(dir, "namespace");
    _cleanup_free_ char *ns = NULL;
    if (file_read_text(path, 1024, &ns, NULL) < 0)
        return xstrdup("default");
    ns[strcspn(ns, " \t\r\n")] = '\0';
    return str_is_dns_label(ns) ? TAKE_PTR(ns) : xstrdup("default");
}

int kube_config_load_in_cluster(const char *dir, KubeConfig **ret, Error **error)
{
    _cleanup_(kube_config_freep) KubeConfig *c = xnew(KubeConfig);
    int r = server_from_environment(&c->server, error);
    if (r < 0)
        return r;
    c->token_path = join(dir, "token");
    r = read_token(c->token_path, &c->token, error);
    if (r < 0)
        return r;
    c->ca_path = join(dir, "ca.crt");
    r = read_pem(c->ca_path, &c->ca_pem, error);
    if (r < 0)
        return r;
    c->namespace_ = namespace_from_file(dir);
    *ret = TAKE_PTR(c);
    return 0;
}

/* --- which source --- */

/* The first file of a list separated by ':' that exists, or NULL. */
static char *first_existing(const char *list)
{
    while (*list) {
        size_t len = strcspn(list, ":");
        _cleanup_free_ char *path = xstrndup(list, len);
        if (len > 0 && access(path, F_OK) == 0)
            return TAKE_PTR(path);
        list += len + (list[len] == ':');
    }
    return NULL;
}

static int load_default(const char *context, KubeConfig **ret, Error **error)
{
    const char *home = getenv("HOME");
    _cleanup_free_ char *path = home ? join(home, ".kube/config") : NULL;
    if (path && access(path, F_OK) == 0)
        return kube_config_load_file(path, context, ret, error);
    int r = error_set(error, ERROR_NOT_FOUND, "no API server is configured");
    return error_hint(error, r, "give --kubeconfig, set KUBECONFIG, or run inside a cluster");
}

int kube_config_load(const char *path, const char *context, KubeConfig **ret, Error **error)
{
    if (!str_empty(path))
        return kube_config_load_file(path, context, ret, error);
    const char *list = getenv("KUBECONFIG");
    if (!str_empty(list)) {
        _cleanup_free_ char *first = first_existing(list);
        if (!first)
            return error_set(error, ERROR_NOT_FOUND, "no file of KUBECONFIG exists: %s", list);
        return kube_config_load_file(first, context, ret, error);
    }
    if (!str_empty(getenv("KUBERNETES_SERVICE_HOST")))
        return kube_config_load_in_cluster(SERVICE_ACCOUNT_DIR, ret, error);
    return load_default(context, ret, error);
}

KubeConfig *kube_config_free(KubeConfig *c)
{
    if (!c)
        return NULL;
    kube_wipe(&c->token);
    kube_wipe(&c->client_key_pem);
    free(c->server);
    free(c->ca_pem);
    free(c->client_cert_pem);
    free(c->token_path);
    free(c->ca_path);
    free(c->tls_server_name);
    free(c->namespace_);
    free(c);
    return NULL;
}
