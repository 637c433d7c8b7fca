/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request head that the guard lets through can be read in one way only: the rules are checked
 * again here, each in its simplest form. Input: lines of a head, "METHOD TARGET VERSION" and then
 * "Name:value", separated by line feeds; a NUL ends a line as well. Listen addresses go along.
 */
#include "common/base/cleanup.h"
#include "common/base/str.h"
#include "common/net/http_server_guard.h"
#include "common/net/http_server_listen.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <strings.h>

#define HEADERS_MAX 64

static char *cut(char **at, char separator)
{
    char *word = *at, *end = strchr(word, separator);

    *at = end ? end + 1 : word + strlen(word);
    if (end)
        *end = '\0';
    return word;
}

static size_t count(const HttpHead *head, const char *name, const char **ret_value)
{
    size_t n = 0;

    for (size_t i = 0; i < head->n_headers; i++) {
        if (strcasecmp(head->headers[i].name, name) != 0)
            continue;
        *ret_value = head->headers[i].value;
        n++;
    }
    return n;
}

static void check_names(const HttpHead *head)
{
    for (size_t i = 0; i < head->n_headers; i++) {
        const HttpHeader *h = &head->headers[i];
        FUZZ_CHECK(h->name[0] != '\0' && !strpbrk(h->name, " \t:\"(),/;<=>?@[\\]{}"));
        for (const char *c = h->name; *c; c++)
            FUZZ_CHECK(*c > ' ' && *c < 0x7f);
        FUZZ_CHECK(!strpbrk(h->value, "\r\n\x7f\x01"));
    }
}

static void check_unique(const HttpHead *head)
{
    static const char *const names[] = {"content-length", "transfer-encoding", "host",
                                        "authorization",  "content-type",      "mcp-method"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = NULL;
        FUZZ_CHECK(count(head, names[i], &value) <= 1);
    }
}

static void check_framing(const HttpHead *head, const HttpVerdict *v)
{
    const char *length = NULL, *encoding = NULL, *host = NULL;
    size_t lengths = count(head, "content-length", &length);
    size_t encodings = count(head, "transfer-encoding", &encoding);
    bool modern = str_eq(head->version, "HTTP/1.1");

    FUZZ_CHECK(lengths + encodings <= 1);
    FUZZ_CHECK(v->has_length == (lengths == 1) && v->chunked == (encodings == 1));
    FUZZ_CHECK(!encoding || (modern && strcasecmp(encoding, "chunked") == 0));
    FUZZ_CHECK(!length || strtoull(length, NULL, 10) == v->content_length);
    FUZZ_CHECK(!modern || count(head, "host", &host) == 1);
}

static void check_accepted(const HttpHead *head, const HttpVerdict *v)
{
    size_t wire = 4 + 2 + strlen(head->method) + strlen(head->target) + strlen(head->version);

    for (size_t i = 0; i < head->n_headers; i++)
        wire += strlen(head->headers[i].name) + strlen(head->headers[i].value) + 4;
    FUZZ_CHECK(head->wire_bytes <= wire);
    FUZZ_CHECK(str_eq(head->target, "*") || head->target[0] == '/');
    FUZZ_CHECK(!strpbrk(head->target, " \t\r\n\x7f"));
    check_names(head);
    check_unique(head);
    check_framing(head, v);
}

static void check_listen(const char *text)
{
    char host[HTTP_LISTEN_HOST_MAX];
    uint16_t port = 0;
    _cleanup_error_ Error *error = NULL;

    if (http_listen_parse(text, host, &port, &error) < 0)
        FUZZ_CHECK(error != NULL);
    else
        FUZZ_CHECK(error == NULL && strlen(host) < sizeof(host) && strstr(text, host));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xmalloc(size + 1);
    HttpHeader headers[HEADERS_MAX];
    char *at = text;

    memcpy(text, data, size);
    text[size] = '\0';
    check_listen(text);
    char *line = cut(&at, '\n');
    HttpHead head = {.headers = headers, .wire_bytes = size > 3 ? data[size - 1] % 2 * size : 0};
    head.method = cut(&line, ' ');
    head.target = cut(&line, ' ');
    head.version = line;
    while (*at && head.n_headers < HEADERS_MAX) {
        line = cut(&at, '\n');
        const char *name = cut(&line, ':');
        headers[head.n_headers++] = (HttpHeader){name, line};
    }
    HttpVerdict v = http_guard_check(&head);
    FUZZ_CHECK((v.status == 0) == (v.text == NULL));
    FUZZ_CHECK(v.status == 0 || v.status == 400 || v.status == 505);
    if (v.status == 0)
        check_accepted(&head, &v);
    return 0;
}
