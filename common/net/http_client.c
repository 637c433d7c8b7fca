/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/http_client.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/net/crypto.h"
#include "common/net/http_client-internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define DEADLINE_DEFAULT_MS 30000
#define IDLE_DEFAULT_MS 30000
#define BODY_MAX_DEFAULT ((size_t)16 * 1024 * 1024)
#define TRIES_DEFAULT 5
#define CONNECTIONS_DEFAULT 12

/* --- trust --- */

static TlsIdentity *tls_new(const char *ca_pem, const char *cert_pem, const char *key_pem)
{
    TlsIdentity *tls = xnew(TlsIdentity);
    tls->refs = 1;
    tls->ca_pem = xstrdup_null(ca_pem);
    tls->cert_pem = xstrdup_null(cert_pem);
    tls->key_pem = xstrdup_null(key_pem);
    return tls;
}

void http_tls_unref(TlsIdentity *tls)
{
    if (!tls || --tls->refs > 0)
        return;
    if (tls->key_pem)
        explicit_bzero(tls->key_pem, strlen(tls->key_pem));
    free(tls->ca_pem);
    free(tls->cert_pem);
    free(tls->key_pem);
    free(tls);
}

void http_client_set_tls(HttpClient *c, const char *ca_pem, const char *cert_pem,
                         const char *key_pem)
{
    TlsIdentity *old = c->tls;
    c->tls = tls_new(ca_pem, cert_pem, key_pem);
    http_tls_unref(old);
}

/* --- the end of a transfer --- */

static void pump(HttpClient *c);

static void pump_fn(void *userdata)
{
    pump(userdata);
}

/* Starts what may start; inside of curl's callbacks a moment later. */
static void pump_soon(HttpClient *c)
{
    if (loop__performing(c->loop))
        loop_timer_set(c->loop, &c->pump, 0);
    else
        pump(c);
}

/* Of a transfer that is in no list and not with curl. */
static void transfer_free(HttpTransfer *t)
{
    buf_done(&t->received);
    error_free(t->data_error);
    free(t->content_type);
    free(t->method);
    free(t->path);
    free(t->request_type);
    free(t->accept);
    free(t->body);
    free(t);
}

static void transfer_unlink(HttpTransfer *t)
{
    HttpClient *c = t->client;
    if (t->state == TRANSFER_ACTIVE && !t->request.dedicated)
        c->active--;
    list_remove(&t->node);
    list_remove(&t->queued);
    c->in_flight--;
    loop_timer_stop(c->loop, &t->timer);
}

/* Reports and frees. The callback may free the client: nothing of it is touched afterwards. */
static void transfer_finish(HttpTransfer *t, const Error *error)
{
    HttpClient *c = t->client;
    transfer_unlink(t);
    http_transfer_halt(t);
    t->state = TRANSFER_DONE;
    pump_soon(c);
    const HttpResponse response = {
        .status = error ? 0 : t->status,
        .body = buf_str(&t->received),
        .body_len = t->received.len,
        .content_type = t->content_type,
        .retry_after_ms = t->retry_after_ms,
        .tries = t->tries,
        .date_ms = t->date_ms,
    };
    t->request.on_done(&response, error, t->request.userdata);
    transfer_free(t);
}

HttpTransfer *http_transfer_cancel(HttpTransfer *t)
{
    if (!t || t->state == TRANSFER_DONE || t->state == TRANSFER_DEAD)
        return NULL;
    HttpClient *c = t->client;
    transfer_unlink(t);
    if (t->state == TRANSFER_ACTIVE && loop__performing(c->loop)) {
        t->state = TRANSFER_DEAD;
        list_push(&c->dead, &t->queued);
        pump_soon(c);
        return NULL;
    }
    http_transfer_halt(t);
    transfer_free(t);
    pump_soon(c);
    return NULL;
}

static void reap(HttpTransfer *t)
{
    list_remove(&t->queued);
    http_transfer_halt(t);
    transfer_free(t);
}

/* --- the end of a try --- */

static int64_t now_ms(const HttpClient *c)
{
    return clock_monotonic_ms(loop_clock(c->loop));
}

static double random_unit(void)
{
    uint32_t bits;
    crypto_random(&bits, sizeof(bits));
    return (double)bits / (double)UINT32_MAX;
}

static void timer_arm(HttpTransfer *t)
{
    int64_t due = t->deadline_at_ms;
    if (t->state == TRANSFER_ACTIVE && t->last_byte_ms + t->request.idle_ms < due)
        due = t->last_byte_ms + t->request.idle_ms;
    if (due != INT64_MAX)
        loop_timer_set(t->client->loop, &t->timer, due - now_ms(t->client));
}

static List *queue_of(HttpTransfer *t)
{
    HttpClient *c = t->client;
    if (t->request.dedicated)
        return &c->queue_dedicated;
    return t->request.background ? &c->queue_background : &c->queue;
}

static void transfer_enqueue(HttpTransfer *t)
{
    HttpClient *c = t->client;
    t->state = TRANSFER_QUEUED;
    list_push(queue_of(t), &t->queued);
    timer_arm(t);
    pump_soon(c);
}

static bool status_is_answer(const HttpTransfer *t, const Error *error)
{
    return !error && t->status > 0;
}

/* Fresh credentials may help, once: after a 401, or a certificate that our CA did not sign. */
static bool may_refresh_credentials(const HttpTransfer *t, CURLcode code)
{
    bool refused = code == CURLE_PEER_FAILED_VERIFICATION || (code == CURLE_OK && t->status == 401);
    return refused && !t->credentials_retried && t->client->credentials_refused;
}

static int64_t retry_delay_ms(const HttpTransfer *t, const Error *error)
{
    if (t->delivered || t->data_error || t->too_large || (error && !error_is_retryable(error)))
        return -1;
    int status = status_is_answer(t, error) ? t->status : 0;
    int64_t delay = http_retry_delay_ms(t->method, t->request.retry, t->tries, t->request.max_tries,
                                        status, t->sent, t->retry_after_ms, random_unit());
    return delay >= 0 && delay < t->deadline_at_ms - now_ms(t->client) ? delay : -1;
}

/* Decides what follows a try: another one now, another one later, or the end. */
static void try_ended(HttpTransfer *t, CURLcode code, const Error *error)
{
    HttpClient *c = t->client;
    if (may_refresh_credentials(t, code)) {
        t->credentials_retried = true;
        c->credentials_refused(c->userdata);
        if (t->request.retry != HTTP_RETRY_NEVER && !t->delivered) {
            transfer_enqueue(t);
            return;
        }
    }
    int64_t delay = retry_delay_ms(t, error);
    if (delay < 0) {
        transfer_finish(t, error);
        return;
    }
    t->state = TRANSFER_WAITING;
    loop_timer_set(c->loop, &t->timer, delay);
    pump_soon(c);
}

/* Leaves curl and gives the connection slot back; what was received stays. */
static void try_stop(HttpTransfer *t)
{
    http_transfer_collect(t);
    http_transfer_halt(t);
    loop_timer_stop(t->client->loop, &t->timer);
    if (!t->request.dedicated)
        t->client->active--;
    t->state = TRANSFER_WAITING;
}

static ErrorKind code_to_kind(CURLcode code)
{
    static const struct {
        CURLcode code;
        ErrorKind kind;
    } kinds[] = {
        {CURLE_URL_MALFORMAT, ERROR_INVALID},      {CURLE_BAD_FUNCTION_ARGUMENT, ERROR_INTERNAL},
        {CURLE_OUT_OF_MEMORY, ERROR_INTERNAL},     {CURLE_SSL_CERTPROBLEM, ERROR_INVALID},
        {CURLE_SSL_CACERT_BADFILE, ERROR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (kinds[i].code == code)
            return kinds[i].kind;
    return ERROR_UNAVAILABLE;
}

static void transfer_error(const HttpTransfer *t, CURLcode code, Error **error)
{
    if (t->data_error) {
        *error = error_copy(t->data_error);
        return;
    }
    if (t->too_large) {
        error_set(error, ERROR_TOO_LARGE, "%s %s: the answer is longer than %zu bytes", t->method,
                  t->path, t->request.max_body_bytes);
        return;
    }
    const char *detail = t->curl_error[0] ? t->curl_error : curl_easy_strerror(code);
    int r = error_set(error, code_to_kind(code), "%s %s: %s", t->method, t->path, detail);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        error_hint(error, r, "the server's certificate is not signed by the configured CA");
}

static void job_ended(LoopJob *job, CURLcode code)
{
    HttpTransfer *t = CONTAINER_OF(job, HttpTransfer, job);
    if (t->state == TRANSFER_DEAD) {
        reap(t);
        return;
    }
    _cleanup_error_ Error *error = NULL;
    try_stop(t);
    if (code == CURLE_OK && !t->has_head) /* libcurl takes half a header block for an answer */
        code = CURLE_RECV_ERROR;
    if (code != CURLE_OK)
        transfer_error(t, code, &error);
    try_ended(t, code, error);
}

static void finish_late(HttpTransfer *t)
{
    _cleanup_error_ Error *error = NULL;
    error_set(&error, ERROR_TIMEOUT, "%s %s: no answer before the deadline", t->method, t->path);
    transfer_finish(t, error);
}

static void finish_idle_try(HttpTransfer *t)
{
    _cleanup_error_ Error *error = NULL;
    try_stop(t);
    error_set(&error, ERROR_UNAVAILABLE, "%s %s: no byte for %lld ms", t->method, t->path,
              (long long)t->request.idle_ms);
    try_ended(t, CURLE_OPERATION_TIMEDOUT, error);
}

static void transfer_timer(void *userdata)
{
    HttpTransfer *t = userdata;
    int64_t now = now_ms(t->client);
    if (now >= t->deadline_at_ms)
        finish_late(t);
    else if (t->state == TRANSFER_WAITING)
        transfer_enqueue(t);
    else if (t->state == TRANSFER_ACTIVE && now - t->last_byte_ms >= t->request.idle_ms)
        finish_idle_try(t);
    else
        timer_arm(t);
}

/* --- the queue --- */

static void transfer_start(HttpTransfer *t)
{
    t->state = TRANSFER_ACTIVE;
    t->tries++;
    if (!t->request.dedicated)
        t->client->active++;
    http_transfer_begin(t);
    timer_arm(t);
}

static void pump(HttpClient *c)
{
    List *n;
    while ((n = list_pop(&c->dead)))
        reap(LIST_ENTRY(n, HttpTransfer, queued));
    if (c->closing)
        return;
    while ((n = list_pop(&c->queue_dedicated)))
        transfer_start(LIST_ENTRY(n, HttpTransfer, queued));
    while (c->active < c->max_connections &&
           ((n = list_pop(&c->queue)) || (n = list_pop(&c->queue_background))))
        transfer_start(LIST_ENTRY(n, HttpTransfer, queued));
}

static void transfer_copy_request(HttpTransfer *t, const HttpRequest *request)
{
    HttpRequest *r = &t->request;
    *r = *request;
    r->method = t->method = xstrdup(request->method);
    r->path = t->path = xstrdup(request->path);
    r->content_type = t->request_type =
        xstrdup(request->content_type ? request->content_type : "application/json");
    r->accept = t->accept = xstrdup(request->accept ? request->accept : "application/json");
    r->body = t->body = request->body_len > 0 ? xmemdup(request->body, request->body_len) : NULL;
    if (r->deadline_ms == 0)
        r->deadline_ms = DEADLINE_DEFAULT_MS;
    if (r->idle_ms == 0)
        r->idle_ms = IDLE_DEFAULT_MS;
    if (r->max_body_bytes == 0)
        r->max_body_bytes = BODY_MAX_DEFAULT;
    if (r->max_tries == 0)
        r->max_tries = TRIES_DEFAULT;
}

int http_client_send(HttpClient *c, const HttpRequest *request, HttpTransfer **ret, Error **error)
{
    assert(request->on_done && request->path[0] == '/');
    if (c->in_flight >= HTTP_TRANSFERS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "%d requests are under way already",
                         HTTP_TRANSFERS_MAX);
    HttpTransfer *t = xnew(HttpTransfer);
    t->job.ended = job_ended;
    t->client = c;
    t->timer = (LoopTimer){.fn = transfer_timer, .userdata = t};
    transfer_copy_request(t, request);
    t->received = BUF_INIT(t->request.max_body_bytes);
    t->deadline_at_ms =
        t->request.deadline_ms == HTTP_NO_DEADLINE ? INT64_MAX : now_ms(c) + t->request.deadline_ms;
    list_push(&c->all, &t->node);
    c->in_flight++;
    transfer_enqueue(t);
    if (ret)
        *ret = t;
    return 0;
}

size_t http_client_in_flight(const HttpClient *c)
{
    return c->in_flight;
}

/* --- the client --- */

static void url_parts_free(char **part)
{
    curl_free(*part);
}
#define _cleanup_url_part_ _cleanup_(url_parts_free)

static void curlu_freep(CURLU **url)
{
    curl_url_cleanup(*url);
}

/* With another name for the certificate than the URL's host, curl is told to ask for that name and
 * to connect to the real host. */
static int rename_host(HttpClient *c, CURLU *url, const char *name, Error **error)
{
    _cleanup_url_part_ char *host = NULL, *port = NULL, *whole = NULL;
    if (curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        curl_url_set(url, CURLUPART_HOST, name, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_URL, &whole, 0) != CURLUE_OK)
        return error_set(error, ERROR_INVALID, "bad TLS server name \"%s\"", name);
    _cleanup_free_ char *connect_to = xasprintf("::%s:%s", host, port);
    c->connect_to = curl_slist_append(NULL, connect_to);
    c->host_header = xasprintf("Host: %s:%s", host, port);
    str_replace(&c->url_prefix, whole);
    return 0;
}

static void strip_slashes(char *s)
{
    for (size_t len = strlen(s); len > 0 && s[len - 1] == '/'; len--)
        s[len - 1] = '\0';
}

static int client_set_url(HttpClient *c, const HttpClientOptions *o, Error **error)
{
    _cleanup_(curlu_freep) CURLU *url = curl_url();
    _cleanup_url_part_ char *scheme = NULL;
    if (!url || curl_url_set(url, CURLUPART_URL, o->base_url, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
        return error_set(error, ERROR_INVALID, "not a URL: \"%s\"", o->base_url);
    bool https = str_eq(scheme, "https");
    if (!https && !str_eq(scheme, "http"))
        return error_set(error, ERROR_INVALID, "the URL \"%s\" is neither http nor https",
                         o->base_url);
    if (https && !o->ca_pem && !o->insecure_skip_verify)
        return error_set(error, ERROR_INVALID, "no CA to check the certificate of %s with",
                         o->base_url);
    str_replace(&c->url_prefix, o->base_url);
    if (https && !str_empty(o->tls_server_name)) {
        int r = rename_host(c, url, o->tls_server_name, error);
        if (r < 0)
            return r;
    }
    strip_slashes(c->url_prefix);
    return 0;
}

static void client_set_options(HttpClient *c, const HttpClientOptions *o)
{
    c->user_agent = xstrdup(o->user_agent ? o->user_agent : "k8s-agent-sandbox-mcp");
    c->tls = tls_new(o->ca_pem, o->client_cert_pem, o->client_key_pem);
    c->insecure_skip_verify = o->insecure_skip_verify;
    c->bearer_token = o->bearer_token;
    c->credentials_refused = o->credentials_refused;
    c->userdata = o->userdata;
    c->max_connections = o->max_connections > 0 ? o->max_connections : CONNECTIONS_DEFAULT;
}

int http_client_new(Loop *l, const HttpClientOptions *options, HttpClient **ret, Error **error)
{
    HttpClient *c = xnew(HttpClient);
    c->loop = l;
    c->pump = (LoopTimer){.fn = pump_fn, .userdata = c};
    list_init(&c->all);
    list_init(&c->queue);
    list_init(&c->queue_dedicated);
    list_init(&c->queue_background);
    list_init(&c->dead);
    client_set_options(c, options);
    int r = client_set_url(c, options, error);
    if (r < 0) {
        http_client_free(c);
        return r;
    }
    if (c->insecure_skip_verify)
        log_warn("certificates of the server are not checked", LOGF_STR("url", options->base_url));
    *ret = c;
    return 0;
}

HttpClient *http_client_free(HttpClient *c)
{
    if (!c)
        return NULL;
    assert(!loop__performing(c->loop));
    c->closing = true;
    List *n;
    while ((n = list_pop(&c->all)))
        http_transfer_cancel(LIST_ENTRY(n, HttpTransfer, node));
    pump(c);
    loop_timer_stop(c->loop, &c->pump);
    http_tls_unref(c->tls);
    curl_slist_free_all(c->connect_to);
    free(c->host_header);
    free(c->url_prefix);
    free(c->user_agent);
    free(c);
    return NULL;
}
