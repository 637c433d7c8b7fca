/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by http_client.c (queue, deadlines, retries) and http_transfer.c (one try as a curl easy
 * handle).
 */
#pragma once

#include "common/base/list.h"
#include "common/net/http_client.h"
#include "common/net/loop-internal.h"

/* Trust and client certificate; transfers under way keep the one they started with. */
typedef struct TlsIdentity {
    unsigned refs;
    char *ca_pem;
    char *cert_pem;
    char *key_pem;
} TlsIdentity;

struct HttpClient {
    Loop *loop;
    char *url_prefix;  /* what curl is told: host replaced by tls_server_name */
    char *host_header; /* "Host: …" of the real server where it was replaced, or NULL */
    struct curl_slist *connect_to; /* likewise */
    char *user_agent;
    TlsIdentity *tls;
    bool insecure_skip_verify;
    const char *(*bearer_token)(void *userdata);
    void (*credentials_refused)(void *userdata);
    void *userdata;

    List all;              /* by HttpTransfer.node */
    List queue;            /* by HttpTransfer.queued, oldest first */
    List queue_dedicated;  /* these wait for no free connection */
    List queue_background; /* these wait for an empty queue */
    List dead;             /* cancelled inside of curl_multi_perform */
    size_t in_flight;
    long active; /* not dedicated */
    long max_connections;
    bool closing; /* nothing is started any more */
    LoopTimer pump;
};

typedef enum TransferState {
    TRANSFER_QUEUED,  /* waits for a connection */
    TRANSFER_ACTIVE,  /* is with curl */
    TRANSFER_WAITING, /* waits before the next try */
    TRANSFER_DEAD,    /* cancelled, still with curl */
    TRANSFER_DONE,    /* in its on_done */
} TransferState;

struct HttpTransfer {
    LoopJob job;
    HttpClient *client;
    List node;
    List queued; /* in a queue, or dead */
    TransferState state;
    LoopTimer timer;     /* deadline, idle limit, or the wait before the next try */
    HttpRequest request; /* its strings point to the copies below */
    char *method, *path, *request_type, *accept, *body;
    int64_t deadline_at_ms;
    unsigned tries;
    bool credentials_retried;

    CURL *easy;
    struct curl_slist *headers;
    TlsIdentity *tls;
    size_t body_sent;
    int64_t last_byte_ms;

    int status;
    bool sent;
    bool has_head;  /* the whole header block of the answer came */
    bool delivered; /* on_data got bytes of this transfer */
    bool too_large;
    Buf received;
    char *content_type;
    int64_t retry_after_ms;
    int64_t date_ms;
    Error *data_error;
    char curl_error[CURL_ERROR_SIZE];
};

/* Hands one try to curl. */
void http_transfer_begin(HttpTransfer *t);
/* Takes it away from curl, keeping what was received. Not inside of curl_multi_perform. */
void http_transfer_halt(HttpTransfer *t);
/* Copies what the handle knows about the answer; before http_transfer_halt. */
void http_transfer_collect(HttpTransfer *t);
void http_tls_unref(TlsIdentity *tls);
