/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/net/http_client-internal.h"

#include <stdio.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS 10000L
#define KEEPALIVE_IDLE_S 30L
#define KEEPALIVE_INTERVAL_S 10L
#define RETRY_AFTER_MAX_S 86400

/* libcurl fails here without memory only: the same policy as for all small allocations. */
static _noreturn_ void curl_die(void)
{
    log_error("out of memory in libcurl");
    abort();
}

#define EASY_SET(easy, option, value)                                                              \
    do {                                                                                           \
        if (curl_easy_setopt(easy, option, value) != CURLE_OK)                                     \
            curl_die();                                                                            \
    } while (0)

/* --- callbacks of libcurl --- */

static int receive_stream(HttpTransfer *t, const char *data, size_t len)
{
    t->delivered = true;
    int r = t->request.on_data(data, len, t->request.userdata, &t->data_error);
    if (r < 0 && !t->data_error && t->state != TRANSFER_DEAD)
        error_set(&t->data_error, ERROR_INTERNAL, "the reader of the answer gave up");
    return r;
}

/* Beyond the ceiling a 2xx body is an error; of a refusal the status says enough. */
static int receive_collected(HttpTransfer *t, const char *data, size_t len)
{
    if (buf_append(&t->received, data, len) >= 0)
        return 0;
    t->too_large = t->status < 300;
    return t->too_large ? -1 : 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *userdata)
{
    HttpTransfer *t = userdata;
    size_t len = size * count;
    long status = 0;
    if (t->state == TRANSFER_DEAD)
        return len ? 0 : 1;
    t->last_byte_ms = loop_now_ms(t->client->loop);
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    t->status = (int)status;
    bool stream = t->request.on_data && status >= 200 && status < 300;
    int r = stream ? receive_stream(t, data, len) : receive_collected(t, data, len);
    return r < 0 ? len + 1 : len; /* any other count is an error to libcurl */
}

/* An interim answer (1xx) has a header block as well. */
static void head_ends(HttpTransfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return;
    t->has_head = true;
    if (t->request.on_status)
        t->request.on_status((int)status, t->request.userdata);
}

static size_t on_header(char *data, size_t size, size_t count, void *userdata)
{
    HttpTransfer *t = userdata;
    size_t len = size * count;
    bool block_ends = len > 0 && (data[0] == '\r' || data[0] == '\n');
    if (t->state == TRANSFER_DEAD)
        return 0;
    t->last_byte_ms = loop_now_ms(t->client->loop);
    if (block_ends)
        head_ends(t);
    return len;
}

static size_t on_read(char *out, size_t size, size_t count, void *userdata)
{
    HttpTransfer *t = userdata;
    size_t len = size * count;
    size_t left = t->request.body_len - t->body_sent;
    if (len > left)
        len = left;
    memcpy(out, t->body + t->body_sent, len);
    t->body_sent += len;
    t->last_byte_ms = loop_now_ms(t->client->loop);
    return len;
}

static bool is_repeatable(const HttpTransfer *t)
{
    return t->request.retry != HTTP_RETRY_NEVER && !str_eq(t->request.method, "POST");
}

/* libcurl sends a request again by itself when a kept connection dies unanswered, and rewinds the
 * body for that. Refusing to rewind is what keeps a create from being repeated. */
static int on_seek(void *userdata, curl_off_t offset, int origin)
{
    HttpTransfer *t = userdata;
    if (!is_repeatable(t) || origin != SEEK_SET || offset < 0 ||
        (size_t)offset > t->request.body_len)
        return CURL_SEEKFUNC_FAIL;
    t->body_sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* --- the easy handle --- */

static void add_header(HttpTransfer *t, const char *name, const char *value)
{
    if (!value)
        return;
    _cleanup_free_ char *line = xasprintf("%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (!longer)
        curl_die();
    t->headers = longer;
    explicit_bzero(line, strlen(line));
}

static void add_plain_header(HttpTransfer *t, const char *line)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (!longer)
        curl_die();
    t->headers = longer;
}

static void set_headers(HttpTransfer *t)
{
    HttpClient *c = t->client;
    const char *token = c->bearer_token ? c->bearer_token(c->userdata) : NULL;
    add_header(t, "Accept", t->request.accept);
    if (t->request.body_len > 0)
        add_header(t, "Content-Type", t->request.content_type);
    if (!str_empty(token)) {
        _cleanup_free_ char *value = xasprintf("Bearer %s", token);
        add_header(t, "Authorization", value);
        explicit_bzero(value, strlen(value));
    }
    add_plain_header(t, "Expect:"); /* no 100-continue */
    if (c->host_header)
        add_plain_header(t, c->host_header);
    EASY_SET(t->easy, CURLOPT_HTTPHEADER, t->headers);
    EASY_SET(t->easy, CURLOPT_USERAGENT, c->user_agent);
}

static void set_method(HttpTransfer *t)
{
    if (t->request.body_len > 0) {
        EASY_SET(t->easy, CURLOPT_UPLOAD, 1L);
        EASY_SET(t->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->request.body_len);
        EASY_SET(t->easy, CURLOPT_READFUNCTION, on_read);
        EASY_SET(t->easy, CURLOPT_READDATA, t);
        EASY_SET(t->easy, CURLOPT_SEEKFUNCTION, on_seek);
        EASY_SET(t->easy, CURLOPT_SEEKDATA, t);
    } else if (str_eq(t->request.method, "HEAD")) {
        EASY_SET(t->easy, CURLOPT_NOBODY, 1L);
    } else if (str_eq(t->request.method, "POST")) {
        EASY_SET(t->easy, CURLOPT_POSTFIELDS, "");
        EASY_SET(t->easy, CURLOPT_POSTFIELDSIZE, 0L);
    }
    EASY_SET(t->easy, CURLOPT_CUSTOMREQUEST, t->request.method);
}

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
    if (!pem)
        return;
    struct curl_blob blob = {
        .data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
    EASY_SET(easy, option, &blob);
}

static void set_tls(HttpTransfer *t)
{
    const HttpClient *c = t->client;
    set_blob(t->easy, CURLOPT_CAINFO_BLOB, t->tls->ca_pem);
    set_blob(t->easy, CURLOPT_SSLCERT_BLOB, t->tls->cert_pem);
    set_blob(t->easy, CURLOPT_SSLKEY_BLOB, t->tls->key_pem);
    /* Debian's libcurl would trust the system's CA directory beside the given CA. */
    EASY_SET(t->easy, CURLOPT_CAPATH, NULL);
    EASY_SET(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    EASY_SET(t->easy, CURLOPT_SSL_VERIFYPEER, c->insecure_skip_verify ? 0L : 1L);
    EASY_SET(t->easy, CURLOPT_SSL_VERIFYHOST, c->insecure_skip_verify ? 0L : 2L);
    if (c->connect_to)
        EASY_SET(t->easy, CURLOPT_CONNECT_TO, c->connect_to);
}

static void set_connection(HttpTransfer *t)
{
    EASY_SET(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    EASY_SET(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    EASY_SET(t->easy, CURLOPT_NOPROXY, "*");
    EASY_SET(t->easy, CURLOPT_NOSIGNAL, 1L);
    EASY_SET(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
    EASY_SET(t->easy, CURLOPT_PATH_AS_IS, 1L);
    EASY_SET(t->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    EASY_SET(t->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    EASY_SET(t->easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    EASY_SET(t->easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    /* Without a body there is no rewind to refuse: see on_seek. */
    if (t->request.dedicated || (!is_repeatable(t) && t->request.body_len == 0))
        EASY_SET(t->easy, CURLOPT_FRESH_CONNECT, 1L);
    if (t->request.dedicated)
        EASY_SET(t->easy, CURLOPT_FORBID_REUSE, 1L);
}

static void set_callbacks(HttpTransfer *t)
{
    LoopJob *job = &t->job;
    EASY_SET(t->easy, CURLOPT_PRIVATE, job);
    EASY_SET(t->easy, CURLOPT_ERRORBUFFER, t->curl_error);
    EASY_SET(t->easy, CURLOPT_WRITEFUNCTION, on_body);
    EASY_SET(t->easy, CURLOPT_WRITEDATA, t);
    EASY_SET(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    EASY_SET(t->easy, CURLOPT_HEADERDATA, t);
}

static void forget_answer(HttpTransfer *t)
{
    t->body_sent = 0;
    t->status = 0;
    t->sent = t->too_large = t->has_head = false;
    buf_clear(&t->received);
    str_replace(&t->content_type, NULL);
    t->retry_after_ms = t->date_ms = 0;
    t->data_error = error_free(t->data_error);
    t->curl_error[0] = '\0';
}

void http_transfer_begin(HttpTransfer *t)
{
    HttpClient *c = t->client;
    forget_answer(t);
    t->easy = curl_easy_init();
    if (!t->easy)
        curl_die();
    t->tls = c->tls;
    t->tls->refs++;
    t->last_byte_ms = clock_monotonic_ms(loop_clock(c->loop));
    _cleanup_free_ char *url = xasprintf("%s%s", c->url_prefix, t->request.path);
    EASY_SET(t->easy, CURLOPT_URL, url);
    set_connection(t);
    set_tls(t);
    set_headers(t);
    set_method(t);
    set_callbacks(t);
    if (curl_multi_add_handle(loop__multi(c->loop), t->easy) != CURLM_OK)
        curl_die();
}

static void free_headers(HttpTransfer *t)
{
    for (struct curl_slist *h = t->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

void http_transfer_halt(HttpTransfer *t)
{
    if (!t->easy)
        return;
    curl_multi_remove_handle(loop__multi(t->client->loop), t->easy);
    curl_easy_cleanup(t->easy);
    t->easy = NULL;
    free_headers(t);
    http_tls_unref(t->tls);
    t->tls = NULL;
}

static int64_t date_header_ms(CURL *easy)
{
    struct curl_header *h = NULL;
    if (curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return 0;
    time_t at = curl_getdate(h->value, NULL);
    return at < 0 ? 0 : (int64_t)at * 1000;
}

void http_transfer_collect(HttpTransfer *t)
{
    long status = 0;
    long request_size = 0;
    curl_off_t retry_after = 0;
    const char *content_type = NULL;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &request_size);
    curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after);
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &content_type);
    t->status = (int)status;
    t->sent = request_size > 0;
    if (retry_after > RETRY_AFTER_MAX_S)
        retry_after = RETRY_AFTER_MAX_S;
    t->retry_after_ms = retry_after > 0 ? (int64_t)retry_after * 1000 : 0;
    str_replace(&t->content_type, content_type);
    t->date_ms = date_header_ms(t->easy);
}
