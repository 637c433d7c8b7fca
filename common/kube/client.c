/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/client.h"

#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/str.h"

#include <assert.h>
#include <string.h>

#define CREDENTIALS_REFRESH_MS 60000
#define URL_MAX_BYTES ((size_t)64 * 1024)

struct KubeClient {
    Loop *loop;
    KubeConfig *config;
    HttpClient *http;
    char *field_manager; /* percent-encoded, or NULL */
    void (*tls_changed)(const KubeConfig *config, void *userdata);
    void *userdata;
    LoopTimer refresh;
    List calls; /* by KubeCall.node */
};

struct KubeCall {
    List node;
    HttpTransfer *transfer;
    char *verb;
    char *path;
    bool ignore_object;
    KubeDoneFn on_done;
    void *userdata;
};

/* --- credentials --- */

static void refresh_credentials(KubeClient *c)
{
    if (!kube_config_refresh(c->config, clock_monotonic_ms(loop_clock(c->loop))))
        return;
    log_info("the API server's CA changed");
    http_client_set_tls(c->http, c->config->ca_pem, c->config->client_cert_pem,
                        c->config->client_key_pem);
    if (c->tls_changed)
        c->tls_changed(c->config, c->userdata);
}

static void refresh_timer(void *userdata)
{
    KubeClient *c = userdata;
    refresh_credentials(c);
    loop_timer_set(c->loop, &c->refresh, CREDENTIALS_REFRESH_MS);
}

static void credentials_refused(void *userdata)
{
    refresh_credentials(userdata);
}

static const char *bearer_token(void *userdata)
{
    const KubeClient *c = userdata;
    return c->config->token;
}

/* --- the client --- */

static char *encode_field_manager(const char *name)
{
    if (!name)
        return NULL;
    _cleanup_buf_ Buf out = BUF_INIT(1024);
    str_url_encode(&out, name, strlen(name), false);
    return buf_take(&out, NULL);
}

int kube_client_new(Loop *l, KubeConfig *config, const KubeClientOptions *options, KubeClient **ret,
                    Error **error)
{
    KubeClient *c = xnew(KubeClient);
    c->loop = l;
    c->config = config;
    c->field_manager = encode_field_manager(options->field_manager);
    c->tls_changed = options->tls_changed;
    c->userdata = options->userdata;
    c->refresh = (LoopTimer){.fn = refresh_timer, .userdata = c};
    list_init(&c->calls);
    const HttpClientOptions http = {
        .base_url = config->server,
        .user_agent = options->user_agent,
        .ca_pem = config->ca_pem,
        .client_cert_pem = config->client_cert_pem,
        .client_key_pem = config->client_key_pem,
        .tls_server_name = config->tls_server_name,
        .insecure_skip_verify = config->insecure_skip_verify,
        .bearer_token = bearer_token,
        .credentials_refused = credentials_refused,
        .userdata = c,
        .max_connections = options->max_connections,
    };
    int r = http_client_new(l, &http, &c->http, error);
    if (r < 0) {
        kube_client_free(c);
        return r;
    }
    loop_timer_set(l, &c->refresh, CREDENTIALS_REFRESH_MS);
    *ret = c;
    return 0;
}

static void call_free(KubeCall *call)
{
    list_remove(&call->node);
    free(call->verb);
    free(call->path);
    free(call);
}

KubeClient *kube_client_free(KubeClient *c)
{
    if (!c)
        return NULL;
    loop_timer_stop(c->loop, &c->refresh);
    List *n;
    while ((n = list_pop(&c->calls)))
        kube_call_cancel(LIST_ENTRY(n, KubeCall, node));
    http_client_free(c->http);
    kube_config_free(c->config);
    free(c->field_manager);
    free(c);
    return NULL;
}

Loop *kube_client_loop(KubeClient *c)
{
    return c->loop;
}

const KubeConfig *kube_client_config(const KubeClient *c)
{
    return c->config;
}

HttpClient *kube_client_http(KubeClient *c)
{
    return c->http;
}

/* --- calls --- */

typedef struct Verb {
    const char *name;
    const char *method;
    bool has_field_manager;
} Verb;

static const Verb *find_verb(const char *name)
{
    static const Verb verbs[] = {
        {"get", "GET", false},
        {"list", "GET", false},
        {"create", "POST", true},
        {"update", "PUT", true},
        {"patch", "PATCH", true},
        {"delete", "DELETE", false},
        {"deletecollection", "DELETE", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (str_eq(verbs[i].name, name))
            return &verbs[i];
    return NULL;
}

static const char *patch_content_type(KubePatch patch)
{
    static const char *const types[KUBE_PATCH_MAX] = {
        [KUBE_PATCH_NONE] = "application/json",
        [KUBE_PATCH_MERGE] = "application/merge-patch+json",
        [KUBE_PATCH_JSON] = "application/json-patch+json",
        [KUBE_PATCH_APPLY] = "application/apply-patch+yaml",
    };
    return types[patch];
}

static void add_query(Buf *url, const char *key, const char *value)
{
    buf_printf(url, "%c%s=%s", strchr(buf_str(url), '?') ? '&' : '?', key, value);
}

static int build_url(const KubeClient *c, const KubeRequest *request, const Verb *verb, Buf *url,
                     Error **error)
{
    buf_append_str(url, request->path);
    if (verb->has_field_manager && c->field_manager)
        add_query(url, "fieldManager", c->field_manager);
    if (request->patch == KUBE_PATCH_APPLY)
        add_query(url, "force", "true");
    return buf_check(url, "the request's address", error);
}

static void call_report(KubeCall *call, JsonValue *object, const Error *error)
{
    list_remove(&call->node);
    call->on_done(object, error, call->userdata);
    call_free(call);
}

static void call_answered(KubeCall *call, const HttpResponse *response)
{
    _cleanup_error_ Error *error = NULL;
    _cleanup_json_ JsonValue *object = NULL;
    if (response->status < 200 || response->status > 299)
        error = kube_status_error(call->verb, call->path, response->status, response->body,
                                  response->body_len, response->retry_after_ms);
    else if (!call->ignore_object && json_parse(response->body, response->body_len, JSON_DEPTH_CRD,
                                                JSON_PARSE_DEFAULT, &object, &error) < 0) {
        /* What came is not the API server's: its effect is unknown. */
        error->kind = ERROR_UNAVAILABLE;
        error_wrap(&error, 0, "%s %s: the answer is not JSON", call->verb, call->path);
    }
    call_report(call, object, error);
}

static void call_done(const HttpResponse *response, const Error *error, void *userdata)
{
    KubeCall *call = userdata;
    call->transfer = NULL;
    if (error)
        call_report(call, NULL, error);
    else
        call_answered(call, response);
}

static KubeCall *call_new(KubeClient *c, const KubeRequest *request)
{
    KubeCall *call = xnew(KubeCall);
    call->verb = xstrdup(request->verb);
    call->path = xstrdup(request->path);
    call->ignore_object = request->ignore_object;
    call->on_done = request->on_done;
    call->userdata = request->userdata;
    list_push(&c->calls, &call->node);
    return call;
}

int kube_send(KubeClient *c, const KubeRequest *request, KubeCall **ret, Error **error)
{
    const Verb *verb = find_verb(request->verb);
    assert(verb && request->on_done);
    _cleanup_buf_ Buf url = BUF_INIT(URL_MAX_BYTES);
    int r = build_url(c, request, verb, &url, error);
    if (r < 0)
        return r;
    KubeCall *call = call_new(c, request);
    const HttpRequest http = {
        .method = verb->method,
        .path = buf_str(&url),
        .content_type = patch_content_type(request->patch),
        .body = request->body,
        .body_len = request->body_len,
        .deadline_ms = request->deadline_ms,
        .retry = request->retry,
        .background = request->background,
        .on_done = call_done,
        .userdata = call,
    };
    r = http_client_send(c->http, &http, &call->transfer, error);
    if (r < 0) {
        call_free(call);
        return r;
    }
    if (ret)
        *ret = call;
    return 0;
}

KubeCall *kube_call_cancel(KubeCall *call)
{
    if (!call || !call->transfer) /* in its on_done already */
        return NULL;
    http_transfer_cancel(call->transfer);
    call_free(call);
    return NULL;
}
