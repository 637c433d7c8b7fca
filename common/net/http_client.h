/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 client on a Loop (libcurl multi). One HttpClient is one server identity: base URL,
 * trust, client certificate, bearer token. Everything runs on the loop's thread. Proxies of the
 * environment are ignored, redirects are not followed, only http and https are spoken, the system's
 * CAs are not trusted beside the given one.
 *
 * A transfer has a deadline over all its tries, an idle limit (a dead peer is noticed) and a byte
 * ceiling. Retries happen here, by verb and answer, as HttpRetry says; a create is never repeated
 * blindly: POST is retried only where the server answered 429 (it did nothing) or the connection
 * was refused before a byte was sent.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct HttpClient HttpClient;
typedef struct HttpTransfer HttpTransfer;

typedef struct HttpClientOptions {
    const char *base_url;        /* "https://10.0.0.1:6443", no trailing slash */
    const char *user_agent;      /* "sandbox-controller/0.1.0" */
    const char *ca_pem;          /* PEM text; NULL: plain http only, or insecure */
    const char *client_cert_pem; /* with client_key_pem, or NULL */
    const char *client_key_pem;
    const char *tls_server_name; /* SNI and name check, or NULL for the URL's host */
    bool insecure_skip_verify;   /* a kubeconfig may ask for it; warned about once */
    /* Called before each try; returns a borrowed token or NULL. */
    const char *(*bearer_token)(void *userdata);
    /* Called once per transfer on a 401 or a certificate the CA did not sign: re-read token and CA.
     * May be NULL. */
    void (*credentials_refused)(void *userdata);
    void *userdata;
    long max_connections; /* default 12; watches are not counted */
} HttpClientOptions;

typedef enum HttpRetry {
    /* Default. GET, HEAD, PUT, PATCH and DELETE (writes carry preconditions) again after 429, 500,
     * 502, 503, 504 and a lost connection; POST as above. Retry-After is kept; a wait that would
     * pass the deadline ends the transfer with what came. After a 401, or a certificate the CA did
     * not sign: credentials_refused, then once more at once. */
    HTTP_RETRY_SAFE,
    HTTP_RETRY_NEVER, /* exactly one try */
} HttpRetry;

typedef struct HttpResponse {
    int status;       /* 0: no answer */
    const char *body; /* borrowed, NUL-terminated; empty for streamed transfers */
    size_t body_len;
    const char *content_type; /* or NULL */
    int64_t retry_after_ms;   /* 0 where absent */
    unsigned tries;
    int64_t date_ms; /* server's Date header, 0 where absent */
} HttpResponse;

/* error is NULL when an HTTP answer arrived, whatever its status; both are borrowed. Called exactly
 * once, unless the transfer is cancelled first; then never. */
typedef void (*HttpDoneFn)(const HttpResponse *response, const Error *error, void *userdata);
/* A piece of a streamed body of a 2xx answer (other statuses are collected for done). A negative
 * return ends the transfer; done then gets the error left in *error. */
typedef int (*HttpDataFn)(const char *data, size_t len, void *userdata, Error **error);

/* The header block of the final answer is complete; same rules as for on_data. */
typedef void (*HttpStatusFn)(int status, void *userdata);

typedef struct HttpRequest {
    const char *method;       /* "GET", … */
    const char *path;         /* with query, starting with '/' */
    const char *content_type; /* for a body */
    const char *accept;       /* default application/json */
    const char *body;
    size_t body_len;
    int64_t deadline_ms;   /* over all tries, 0 = 30,000; HTTP_NO_DEADLINE for watches */
    int64_t idle_ms;       /* no byte for this long ends the try as UNAVAILABLE; 0 = 30,000 */
    size_t max_body_bytes; /* ceiling for a collected body, 0 = 16 MiB */
    HttpRetry retry;
    unsigned max_tries;     /* 0 = 5 */
    bool dedicated;         /* own connection (watches, bulk lists) */
    bool background;        /* starts only when nothing else waits for a connection (events) */
    HttpStatusFn on_status; /* may be NULL */
    HttpDataFn on_data;     /* streamed body, or NULL to collect */
    HttpDoneFn on_done;
    void *userdata;
} HttpRequest;
#define HTTP_NO_DEADLINE INT64_MAX

int http_client_new(Loop *l, const HttpClientOptions *options, HttpClient **ret, Error **error);
/* Cancels what is under way (no callbacks). May run in an on_done, not in an on_data. */
HttpClient *http_client_free(HttpClient *c);
/* Replaces CA and client certificate for transfers that start from now on. */
void http_client_set_tls(HttpClient *c, const char *ca_pem, const char *cert_pem,
                         const char *key_pem);
/* Copies everything it needs. Never calls back before it returns. At most HTTP_TRANSFERS_MAX under
 * way: beyond that ERROR_EXHAUSTED. *ret is valid until done was called or it is cancelled. */
#define HTTP_TRANSFERS_MAX 20000
int http_client_send(HttpClient *c, const HttpRequest *request, HttpTransfer **ret, Error **error);
HttpTransfer *http_transfer_cancel(HttpTransfer *t); /* NULL is fine; returns NULL */
size_t http_client_in_flight(const HttpClient *c);

/* Pure: whether and after how many ms the try number `tries` (1-based) that ended with `status` (0
 * = connection lost; sent = some of the request may have reached the server) may be repeated; -1 =
 * no. jitter is 0..1. Exported for tests. */
int64_t http_retry_delay_ms(const char *method, HttpRetry retry, unsigned tries, unsigned max_tries,
                            int status, bool sent, int64_t retry_after_ms, double jitter);
