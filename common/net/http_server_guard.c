/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/http_server_guard.h"

#include "common/base/cleanup.h"
#include "common/base/str.h"

#include <string.h>
#include <strings.h>

#define METHOD_MAX 32
/* More digits than any body that could be accepted; keeps the number far from overflow. */
#define LENGTH_DIGITS_MAX 15

/* Headers of which a second one is an attack or a mistake. A trailing '-' marks a prefix. */
static const char *const single_headers[] = {
    "authorization", "content-encoding", "content-length",    "content-type", "expect",
    "host",          "origin",           "transfer-encoding", "mcp-",
};

typedef struct Guard {
    const HttpHead *head;
    const char *host;
    const char *length;
    const char *encoding;
    const char *expect;
} Guard;

static bool byte_is_token(unsigned char c)
{
    if (c <= ' ' || c >= 0x7f)
        return false;
    return !strchr("\"(),/:;<=>?@[\\]{}", c);
}

bool http_is_token(const char *s)
{
    if (str_empty(s))
        return false;
    for (; *s; s++)
        if (!byte_is_token((unsigned char)*s))
            return false;
    return true;
}

static bool value_is_clean(const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool target_is_clean(const char *s)
{
    if (str_eq(s, "*"))
        return true;
    if (str_empty(s) || *s != '/')
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f)
            return false;
    return true;
}

static bool host_is_clean(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]%~") ==
           strlen(s);
}

static bool name_is_single(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(single_headers); i++) {
        const char *single = single_headers[i];
        size_t len = strlen(single);
        if (single[len - 1] == '-' ? strncasecmp(name, single, len) == 0
                                   : strcasecmp(name, single) == 0)
            return true;
    }
    return false;
}

static bool has_earlier(const HttpHead *head, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcasecmp(head->headers[i].name, head->headers[index].name) == 0)
            return true;
    return false;
}

static void note(Guard *g, const HttpHeader *h)
{
    if (strcasecmp(h->name, "host") == 0)
        g->host = h->value;
    else if (strcasecmp(h->name, "content-length") == 0)
        g->length = h->value;
    else if (strcasecmp(h->name, "transfer-encoding") == 0)
        g->encoding = h->value;
    else if (strcasecmp(h->name, "expect") == 0)
        g->expect = h->value;
}

static const char *check_headers(Guard *g)
{
    for (size_t i = 0; i < g->head->n_headers; i++) {
        const HttpHeader *h = &g->head->headers[i];
        if (!http_is_token(h->name))
            return "a header name is not a token";
        if (!value_is_clean(h->value))
            return "a header value has control bytes";
        if (name_is_single(h->name) && has_earlier(g->head, i))
            return "a header that must be unique is repeated";
        note(g, h);
    }
    return NULL;
}

/* What the lines we were given can have taken on the wire at most. More means bytes that the parser
 * swallowed: folded lines, NUL bytes, padding. */
static const char *check_hidden(Guard *g)
{
    const HttpHead *head = g->head;
    size_t most = strlen(head->method) + strlen(head->target) + strlen(head->version) + 4 + 2;
    for (size_t i = 0; i < head->n_headers; i++)
        most += strlen(head->headers[i].name) + strlen(head->headers[i].value) + 4;
    return head->wire_bytes > most ? "folded lines, padding or hidden bytes in the head" : NULL;
}

static bool version_is_1_1(const HttpHead *head)
{
    return str_eq(head->version, "HTTP/1.1");
}

static const char *check_line(Guard *g)
{
    if (!http_is_token(g->head->method) || strlen(g->head->method) > METHOD_MAX)
        return "the method is not a token";
    if (!target_is_clean(g->head->target))
        return "the request target is not a path";
    return NULL;
}

static const char *check_host(Guard *g)
{
    if (!g->host)
        return version_is_1_1(g->head) ? "the Host header is missing" : NULL;
    return host_is_clean(g->host) ? NULL : "the Host header is malformed";
}

static const char *check_framing(Guard *g)
{
    if (g->encoding && g->length)
        return "Content-Length and Transfer-Encoding together";
    if (g->encoding && !version_is_1_1(g->head))
        return "Transfer-Encoding in HTTP/1.0";
    if (g->encoding && strcasecmp(g->encoding, "chunked") != 0)
        return "Transfer-Encoding other than chunked";
    if (g->length && (str_empty(g->length) || strlen(g->length) > LENGTH_DIGITS_MAX ||
                      strspn(g->length, "0123456789") != strlen(g->length)))
        return "Content-Length is not a number";
    return NULL;
}

static const struct {
    const char *(*check)(Guard *g);
} checks[] = {{check_line}, {check_hidden}, {check_headers}, {check_host}, {check_framing}};

HttpVerdict http_guard_check(const HttpHead *head)
{
    Guard g = {.head = head};
    HttpVerdict v = {0};

    if (!version_is_1_1(head) && !str_eq(head->version, "HTTP/1.0"))
        return (HttpVerdict){.status = 505, .text = "only HTTP/1.1 and HTTP/1.0 are spoken here"};
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        v.text = checks[i].check(&g);
        if (v.text)
            return (HttpVerdict){.status = 400, .text = v.text};
    }
    v.has_length = g.length != NULL;
    if (g.length)
        (void)str_to_u64(g.length, &v.content_length);
    v.chunked = g.encoding != NULL;
    v.expects_continue = g.expect && strcasecmp(g.expect, "100-continue") == 0;
    return v;
}
