/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API server is and who we are there: a kubeconfig file (certificates inline or by path,
 * token, tokenFile, tls-server-name, insecure-skip-tls-verify, namespace; YAML or JSON; at most
 * 1 MiB; exec and auth-provider plugins are refused with a clear error) or the in-cluster service
 * account. Token and CA files are read again when they change.
 */
#pragma once

#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct KubeConfig {
    char *server; /* "https://host:port" */
    char *ca_pem;
    char *client_cert_pem;
    char *client_key_pem;
    char *token;
    char *token_path; /* re-read by kube_config_refresh */
    char *ca_path;
    char *tls_server_name;
    char *namespace_; /* of the context or the service account; "default" otherwise */
    bool insecure_skip_verify;
    int64_t token_read_ms; /* monotonic */
} KubeConfig;

/* path NULL: $KUBECONFIG (first entry of a list that exists), else in-cluster, else ~/.kube/config.
 * context NULL: current-context. */
int kube_config_load(const char *path, const char *context, KubeConfig **ret, Error **error);
int kube_config_load_file(const char *path, const char *context, KubeConfig **ret, Error **error);
/* dir: normally /var/run/secrets/kubernetes.io/serviceaccount; host and port from the environment.
 */
int kube_config_load_in_cluster(const char *dir, KubeConfig **ret, Error **error);
/* Re-reads token_path and ca_path; true where the CA changed. Called every 60 s and after a 401. */
bool kube_config_refresh(KubeConfig *c, int64_t now_monotonic_ms);
KubeConfig *kube_config_free(KubeConfig *c); /* wipes secrets */
static inline void kube_config_freep(KubeConfig **c)
{
    *c = kube_config_free(*c);
}
