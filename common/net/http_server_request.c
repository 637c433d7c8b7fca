/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting a request, refusing it where its head or its size is wrong, finding its handler. */
#include "common/base/str.h"
#include "common/net/http_server-internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ALLOW_MAX 128
#define DISCARD_SMALL_MAX (64 * 1024)
#define STRANGERS_SHARE 8

HttpServerRequest *http_request_ref(HttpServerRequest *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void http_request_unref(HttpServerRequest *r)
{
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    http_request_drop_body(r);
    http_stream_free(r);
    free(r->target);
    free(r->text);
    free(r->headers);
    http_server_unref(r->server);
    free(r);
}

/* The request line is there: the one moment at which the target is seen as it came. */
void *http_request_on_target(void *server, const char *target, struct MHD_Connection *connection)
{
    HttpServer *s = server;
    HttpServerRequest *r = xnew(HttpServerRequest);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    r->refs = 1;
    r->server = http_server_ref(s);
    r->connection = connection;
    r->link = info->socket_context;
    r->began_ms = http_now_ms();
    r->target = xstrdup_null(target);
    r->body = BUF_INIT(s->options.max_body_bytes);
    http_connection_wait(r->link, (int64_t)s->options.receive_timeout_s * 1000);
    return r;
}

typedef struct Sizes {
    size_t count;
    size_t bytes;
} Sizes;

static enum MHD_Result header_size(void *userdata, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    Sizes *sizes = userdata;

    (void)kind;
    sizes->count++;
    sizes->bytes += strlen(name) + 1 + (value ? strlen(value) : 0) + 1;
    return MHD_YES;
}

typedef struct Copy {
    HttpServerRequest *request;
    char *next;
} Copy;

static const char *copy_text(Copy *copy, const char *s)
{
    size_t len = strlen(s) + 1;
    const char *to = memcpy(copy->next, s, len);

    copy->next += len;
    return to;
}

static enum MHD_Result header_copy(void *userdata, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    Copy *copy = userdata;
    HttpHeader *h = &copy->request->headers[copy->request->n_headers++];

    (void)kind;
    h->name = copy_text(copy, name);
    h->value = copy_text(copy, value ? value : "");
    return MHD_YES;
}

static void copy_head(HttpServerRequest *r, const char *url, const char *method)
{
    Sizes sizes = {0};

    (void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, header_size, &sizes);
    r->text = xmalloc(sizes.bytes + strlen(url) + 1 + strlen(method) + 1);
    r->headers = xcalloc(sizes.count + 1, sizeof *r->headers);
    Copy copy = {.request = r, .next = r->text};
    (void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, header_copy, &copy);
    r->method = copy_text(&copy, method);
    r->path = copy_text(&copy, url);
}

static void format_peer4(char *out, const void *address, in_port_t port)
{
    char text[INET_ADDRSTRLEN] = "";

    (void)inet_ntop(AF_INET, address, text, sizeof text);
    (void)snprintf(out, HTTP_PEER_MAX, "%s:%u", text, ntohs(port));
}

static void format_peer6(char *out, const struct sockaddr_in6 *sa)
{
    char text[INET6_ADDRSTRLEN] = "";

    if (IN6_IS_ADDR_V4MAPPED(&sa->sin6_addr)) {
        format_peer4(out, &sa->sin6_addr.s6_addr[12], sa->sin6_port);
        return;
    }
    (void)inet_ntop(AF_INET6, &sa->sin6_addr, text, sizeof text);
    (void)snprintf(out, HTTP_PEER_MAX, "[%s]:%u", text, ntohs(sa->sin6_port));
}

static void copy_peer(HttpServerRequest *r)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *sa = info ? info->client_addr : NULL;

    if (sa && sa->sa_family == AF_INET6)
        format_peer6(r->peer, (const struct sockaddr_in6 *)(const void *)sa);
    else if (sa && sa->sa_family == AF_INET)
        format_peer4(r->peer, &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
                     ((const struct sockaddr_in *)(const void *)sa)->sin_port);
}

static void refuse(HttpServerRequest *r, int status, const char *text)
{
    r->refused_status = status;
    r->refused_text = text;
    http_request_drop_body(r);
}

static bool route_matches(const HttpRoute *route, const char *path)
{
    return str_eq(route->path, path);
}

static bool method_matches(const HttpRoute *route, const char *method)
{
    if (!route->method || str_eq(route->method, method))
        return true;
    return str_eq(route->method, "GET") && str_eq(method, "HEAD");
}

static void find_route(HttpServerRequest *r)
{
    const HttpServerOptions *o = &r->server->options;
    bool path_known = false;

    for (size_t i = 0; i < o->n_routes; i++) {
        if (!route_matches(&o->routes[i], r->path))
            continue;
        path_known = true;
        if (method_matches(&o->routes[i], r->method)) {
            r->route = &o->routes[i];
            return;
        }
    }
    if (path_known)
        refuse(r, 405, "this method is not allowed here");
    else
        refuse(r, 404, "there is nothing at this path");
}

/* 0: not needed. Strict releases (http_server.c) refuse by themselves what could be hidden. */
static size_t head_wire_bytes(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return info && MHD_VERSION < HTTP_STRICT_LIBRARY ? info->header_size : 0;
}

static HttpVerdict check_head(HttpServerRequest *r, const char *version)
{
    const HttpHead head = {
        .method = r->method,
        .target = r->target ? r->target : "",
        .version = version,
        .headers = r->headers,
        .n_headers = r->n_headers,
        .wire_bytes = head_wire_bytes(r->connection),
    };
    return http_guard_check(&head);
}

/* An oversized body is read to its end so that the answer can be, but only that far. */
static size_t discard_max(const HttpServer *s)
{
    return 4 * s->options.max_body_bytes + 1024 * 1024UL;
}

/* Queues the answer now, before the body; libmicrohttpd closes the connection after it. */
static enum MHD_Result refuse_now(HttpServerRequest *r, int status, const char *text)
{
    http_reply_error(r, status, text, NULL, true);
    return http_reply_queue(r);
}

static enum MHD_Result request_begin(HttpServerRequest *r, const char *url, const char *method,
                                     const char *version)
{
    const HttpServer *s = r->server;

    r->begun = true;
    atomic_fetch_add(&r->server->pending, 1);
    copy_head(r, url, method);
    copy_peer(r);
    HttpVerdict v = check_head(r, version);
    if (v.status)
        return refuse_now(r, v.status, v.text);
    bool large = v.has_length && v.content_length > s->options.max_body_bytes;
    if (large && (v.expects_continue || v.content_length > discard_max(s)))
        return refuse_now(r, 413, "the body is too large");
    if (large)
        refuse(r, 413, "the body is too large");
    else
        find_route(r);
    if (!r->route || !s->options.on_head)
        return MHD_YES;
    r->stranger = s->options.on_head(r, s->options.userdata) == HTTP_HEAD_STRANGER;
    if (!r->response)
        return MHD_YES;
    /* A small body is read past, so that the connection can go on; for others that is too dear. */
    if (v.expects_continue || !v.has_length || v.content_length > DISCARD_SMALL_MAX)
        return http_reply_queue(r);
    return MHD_YES;
}

/* The memory that the body takes is counted, before more of it comes. */
static bool body_count(HttpServerRequest *r)
{
    HttpServer *s = r->server;
    size_t more = r->body.cap - r->counted_bytes;

    if (more == 0)
        return true;
    r->counted_bytes += more;
    if (r->stranger && atomic_fetch_add(&s->strangers_bytes, more) + more >
                           s->options.max_bodies_bytes / STRANGERS_SHARE) {
        atomic_fetch_add(&s->bodies_bytes, more);
        return false;
    }
    return atomic_fetch_add(&s->bodies_bytes, more) + more <= s->options.max_bodies_bytes;
}

static enum MHD_Result request_collect(HttpServerRequest *r, const char *data, size_t size)
{
    http_connection_extend(r->link, http_transfer_ms(r->server, size));
    if (r->refused_status || r->response) {
        r->discarded_bytes += size;
        return r->discarded_bytes > discard_max(r->server) ? MHD_NO : MHD_YES;
    }
    if (buf_append(&r->body, data, size) < 0)
        refuse(r, 413, "the body is too large");
    else if (!body_count(r))
        refuse(r, 429, "too many requests are under way");
    return MHD_YES;
}

/* "GET, HEAD, POST": the methods of the routes at this path. */
static void format_allow(const HttpServerRequest *r, char *out)
{
    const HttpServerOptions *o = &r->server->options;
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < o->n_routes && len < ALLOW_MAX; i++) {
        if (!route_matches(&o->routes[i], r->path))
            continue;
        const char *method = o->routes[i].method;
        int n = snprintf(out + len, ALLOW_MAX - len, "%s%s", len ? ", " : "",
                         str_eq(method, "GET") ? "GET, HEAD" : method);
        len += n > 0 ? (size_t)n : 0;
    }
}

static void reply_refused(HttpServerRequest *r)
{
    char allow[ALLOW_MAX] = "";

    if (r->refused_status == 405)
        format_allow(r, allow);
    http_reply_error(r, r->refused_status, r->refused_text, *allow ? allow : NULL, false);
}

static void request_handle(HttpServerRequest *r)
{
    if (r->response)
        return;
    if (r->refused_status) {
        reply_refused(r);
        return;
    }
    http_connection_wait(r->link, 0);
    r->route->handler(r, r->server->options.userdata);
    if (!r->deferred && !r->response)
        http_reply_error(r, 500, "the request was not answered", NULL, false);
}

/* All of it is here: the first time, or again after a resume. */
static enum MHD_Result request_complete(HttpServerRequest *r)
{
    if (!r->handled) {
        r->handled = true;
        http_connection_set_reading(r->link, false);
        request_handle(r);
        if (r->deferred)
            return MHD_YES;
    }
    return http_reply_queue(r);
}

enum MHD_Result http_request_on_data(void *server, struct MHD_Connection *connection,
                                     const char *url, const char *method, const char *version,
                                     const char *data, size_t *size, void **request)
{
    HttpServerRequest *r = *request;

    (void)server;
    (void)connection;
    assert(r);
    if (!r->begun)
        return request_begin(r, url, method, version);
    if (*size == 0)
        return request_complete(r);
    enum MHD_Result ret = request_collect(r, data, *size);
    *size = 0;
    return ret;
}

static void request_report(HttpServerRequest *r, enum MHD_RequestTerminationCode code)
{
    const HttpServerOptions *o = &r->server->options;
    bool sent = r->status && code == MHD_REQUEST_TERMINATED_COMPLETED_OK;

    atomic_fetch_sub(&r->server->pending, 1);
    if (o->on_complete)
        o->on_complete(r->method, r->path, sent ? r->status : HTTP_STATUS_PEER_GONE,
                       http_now_ms() - r->began_ms, o->userdata);
}

void http_request_on_completed(void *server, struct MHD_Connection *connection, void **request,
                               enum MHD_RequestTerminationCode code)
{
    HttpServer *s = server;
    HttpServerRequest *r = TAKE_PTR(*request);

    (void)connection;
    if (!r)
        return;
    http_connection_set_reading(r->link, true);
    http_connection_wait(r->link, 1000 * ((int64_t)s->options.keepalive_timeout_s +
                                          (int64_t)s->options.receive_timeout_s));
    if (r->begun)
        request_report(r, code);
    http_stream_on_completed(r);
    if (r->response)
        MHD_destroy_response(TAKE_PTR(r->response));
    atomic_fetch_sub(&s->answers_bytes, r->response_bytes);
    http_request_unref(r);
}

const char *http_request_method(const HttpServerRequest *r)
{
    return r->method;
}

const char *http_request_path(const HttpServerRequest *r)
{
    return r->path;
}

const char *http_request_header(const HttpServerRequest *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcasecmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

const char *http_request_body(const HttpServerRequest *r, size_t *ret_len)
{
    *ret_len = r->body.len;
    return buf_str(&r->body);
}

void http_request_drop_body(HttpServerRequest *r)
{
    buf_done(&r->body);
    atomic_fetch_sub(&r->server->bodies_bytes, r->counted_bytes);
    if (r->stranger)
        atomic_fetch_sub(&r->server->strangers_bytes, r->counted_bytes);
    r->counted_bytes = 0;
}

size_t http_request_answers_bytes(const HttpServerRequest *r)
{
    return atomic_load(&r->server->answers_bytes);
}

const char *http_request_peer(const HttpServerRequest *r)
{
    return r->peer;
}
