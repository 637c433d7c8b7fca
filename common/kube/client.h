/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the API server on a Loop. An answer that is not 2xx becomes an Error: kind by status
 * and Status.reason, message from the Status object (sanitised, bounded), http_status and reason
 * kept; a 403 names verb and resource. Field manager is set on every write.
 */
#pragma once

#include "common/json/json.h"
#include "common/kube/config.h"
#include "common/net/http_client.h"

typedef struct KubeClient KubeClient;
typedef struct KubeCall KubeCall;

typedef struct KubeClientOptions {
    const char *user_agent;
    const char *field_manager; /* "sandbox-controller" */
    long max_connections;
    /* The CA file changed and was read again: whoever has connections of its own to the server
     * renews their trust. May be NULL. */
    void (*tls_changed)(const KubeConfig *config, void *userdata);
    void *userdata;
} KubeClientOptions;

/* Takes the config over. */
int kube_client_new(Loop *l, KubeConfig *config, const KubeClientOptions *options, KubeClient **ret,
                    Error **error);
KubeClient *kube_client_free(KubeClient *c);
Loop *kube_client_loop(KubeClient *c);
const KubeConfig *kube_client_config(const KubeClient *c);
HttpClient *kube_client_http(KubeClient *c);

typedef enum KubePatch {
    KUBE_PATCH_NONE,
    KUBE_PATCH_MERGE,
    KUBE_PATCH_JSON,
    KUBE_PATCH_APPLY,
    KUBE_PATCH_MAX
} KubePatch;

/* object is the parsed 2xx answer (borrowed; NULL on error or where keep_object is false). error is
 * borrowed, NULL on success. Called exactly once unless cancelled. */
typedef void (*KubeDoneFn)(JsonValue *object, const Error *error, void *userdata);

typedef struct KubeRequest {
    const char *verb; /* "get", "list", "create", "update", "patch", "delete": the method */
    const char *path; /* from kube_path(), may carry a query */
    KubePatch patch;
    const char *body; /* JSON text */
    size_t body_len;
    bool ignore_object;  /* do not parse the answer */
    int64_t deadline_ms; /* 0 = 30,000 */
    HttpRetry retry;
    bool background; /* behind everything else that waits for a connection */
    KubeDoneFn on_done;
    void *userdata;
} KubeRequest;

int kube_send(KubeClient *c, const KubeRequest *request, KubeCall **ret, Error **error);
KubeCall *kube_call_cancel(KubeCall *call); /* no callback afterwards; returns NULL */

/* A kind of object as the API names it. */
typedef struct KubeResource {
    const char *group; /* "" for core */
    const char *version;
    const char *plural;
    const char *kind;
} KubeResource;
/* "/apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/SUBRESOURCE"; ns, name, subresource may be NULL.
 * Parts are percent-encoded; an empty one, "." and ".." end the process (callers validate names
 * first). Appends to out. */
void kube_path(Buf *out, const KubeResource *r, const char *ns, const char *name,
               const char *subresource);
char *kube_path_dup(const KubeResource *r, const char *ns, const char *name,
                    const char *subresource) _warn_unused_;
/* Status JSON (or any text) and HTTP status → Error. verb and path give the 403 its words. */
Error *kube_status_error(const char *verb, const char *path, int http_status, const char *body,
                         size_t len, int64_t retry_after_ms) _warn_unused_;
/* DeleteOptions text with preconditions; uid/resource_version/propagation may be NULL. */
void kube_delete_options(Buf *out, const char *uid, const char *resource_version,
                         const char *propagation);
