/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/http_server_guard.h"

#include "tests/unit/cmocka_all.h"

#include "common/base/str.h"

#include <string.h>

#define HEADERS_MAX 6

typedef struct Case {
    const char *what;
    const char *method, *target, *version; /* NULL: POST /mcp HTTP/1.1 */
    HttpHeader headers[HEADERS_MAX];       /* NULL name: the end; Host is added unless no_host */
    bool no_host;
    int status;
} Case;

static HttpVerdict check(const Case *c, size_t wire_bytes)
{
    HttpHeader headers[HEADERS_MAX + 1];
    size_t n = 0;

    if (!c->no_host)
        headers[n++] = (HttpHeader){"Host", "gateway:8080"};
    for (size_t i = 0; i < HEADERS_MAX && c->headers[i].name; i++)
        headers[n++] = c->headers[i];
    const HttpHead head = {
        .method = c->method ? c->method : "POST",
        .target = c->target ? c->target : "/mcp",
        .version = c->version ? c->version : "HTTP/1.1",
        .headers = headers,
        .n_headers = n,
        .wire_bytes = wire_bytes,
    };
    return http_guard_check(&head);
}

static const Case cases[] = {
    {.what = "plain"},
    {.what = "a body", .headers = {{"Content-Length", "12"}, {"Content-Type", "application/json"}}},
    {.what = "chunked", .headers = {{"Transfer-Encoding", "Chunked"}}},
    {.what = "HTTP/1.0 without Host", .version = "HTTP/1.0", .no_host = true},
    {.what = "the same list header twice", .headers = {{"Accept", "a/b"}, {"accept", "c/d"}}},
    {.what = "IPv6 Host", .no_host = true, .headers = {{"Host", "[::1]:8080"}}},
    {.what = "an empty Host", .no_host = true, .headers = {{"Host", ""}}},
    {.what = "OPTIONS *", .method = "OPTIONS", .target = "*"},
    {.what = "bytes above 127 and tabs in a value", .headers = {{"X-Name", "M\xc3\xbcller\t1"}}},
    {.what = "a query", .target = "/mcp?a=%00&b"},

    {.what = "HTTP/1.2", .version = "HTTP/1.2", .status = 505},
    {.what = "lower case version", .version = "http/1.1", .status = 505},
    {.what = "no version", .version = "", .status = 505},
    {.what = "no Host", .no_host = true, .status = 400},
    {.what = "two equal Hosts", .headers = {{"host", "gateway:8080"}}, .status = 400},
    {.what = "Host with a path", .no_host = true, .headers = {{"Host", "a/b"}}, .status = 400},
    {.what = "Host with a user", .no_host = true, .headers = {{"Host", "u@a"}}, .status = 400},
    {.what = "two lengths",
     .headers = {{"Content-Length", "1"}, {"content-length", "2"}},
     .status = 400},
    {.what = "two equal lengths",
     .headers = {{"Content-Length", "1"}, {"Content-Length", "1"}},
     .status = 400},
    {.what = "length and chunked",
     .headers = {{"Transfer-Encoding", "chunked"}, {"Content-Length", "1"}},
     .status = 400},
    {.what = "a list of lengths", .headers = {{"Content-Length", "1, 1"}}, .status = 400},
    {.what = "a signed length", .headers = {{"Content-Length", "+1"}}, .status = 400},
    {.what = "a negative length", .headers = {{"Content-Length", "-1"}}, .status = 400},
    {.what = "a hex length", .headers = {{"Content-Length", "0x1"}}, .status = 400},
    {.what = "an empty length", .headers = {{"Content-Length", ""}}, .status = 400},
    {.what = "a length with a space behind", .headers = {{"Content-Length", "1 "}}, .status = 400},
    {.what = "a length beyond 64 bits",
     .headers = {{"Content-Length", "18446744073709551617"}},
     .status = 400},
    {.what = "two encodings",
     .headers = {{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}},
     .status = 400},
    {.what = "gzip, chunked", .headers = {{"Transfer-Encoding", "gzip, chunked"}}, .status = 400},
    {.what = "identity", .headers = {{"Transfer-Encoding", "identity"}}, .status = 400},
    {.what = "xchunked", .headers = {{"Transfer-Encoding", "xchunked"}}, .status = 400},
    {.what = "chunked in 1.0",
     .version = "HTTP/1.0",
     .headers = {{"Transfer-Encoding", "chunked"}},
     .status = 400},
    {.what = "two Authorizations",
     .headers = {{"Authorization", "a"}, {"AUTHORIZATION", "b"}},
     .status = 400},
    {.what = "two types",
     .headers = {{"Content-Type", "a/b"}, {"Content-Type", "a/b"}},
     .status = 400},
    {.what = "two Origins",
     .headers = {{"Origin", "http://a"}, {"Origin", "http://b"}},
     .status = 400},
    {.what = "two of Mcp-", .headers = {{"Mcp-Method", "a"}, {"mcp-method", "b"}}, .status = 400},
    {.what = "space before the colon", .headers = {{"Content-Length ", "1"}}, .status = 400},
    {.what = "an empty name", .headers = {{"", "1"}}, .status = 400},
    {.what = "a control byte in a name", .headers = {{"X-\x01", "1"}}, .status = 400},
    {.what = "a byte above 127 in a name", .headers = {{"X-\xc3\xbc", "1"}}, .status = 400},
    {.what = "a carriage return in a value", .headers = {{"X-A", "1\rX-B: 2"}}, .status = 400},
    {.what = "DEL in a value", .headers = {{"X-A", "1\x7f"}}, .status = 400},
    {.what = "a method that is no token", .method = "PO(ST", .status = 400},
    {.what = "a long method", .method = "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", .status = 400},
    {.what = "an absolute target", .target = "http://other/mcp", .status = 400},
    {.what = "an empty target", .target = "", .status = 400},
    {.what = "a space in the target", .target = "/mcp /x", .status = 400},
    {.what = "a byte above 127 in the target", .target = "/\xc3\xbc", .status = 400},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        HttpVerdict v = check(&cases[i], 0);
        if (v.status != cases[i].status)
            fail_msg("%s: got %d (%s), not %d", cases[i].what, v.status, v.text ? v.text : "",
                     cases[i].status);
        assert_true((v.status != 0) == (v.text != NULL));
    }
}

static void test_framing_is_reported(void **state)
{
    (void)state;
    HttpVerdict v =
        check(&(Case){.headers = {{"Content-Length", "00042"}, {"Expect", "100-Continue"}}}, 0);
    assert_true(v.has_length && !v.chunked && v.expects_continue);
    assert_int_equal(v.content_length, 42);
    v = check(&(Case){.headers = {{"Transfer-Encoding", "chunked"}}}, 0);
    assert_true(v.chunked && !v.has_length && !v.expects_continue);
}

/* "POST /mcp HTTP/1.1\r\nHost: gateway:8080\r\nX: 1\r\n\r\n" */
static void test_hidden_bytes(void **state)
{
    (void)state;
    const Case c = {.headers = {{"X", "1"}}};
    size_t exact = strlen("POST /mcp HTTP/1.1\r\nHost: gateway:8080\r\nX: 1\r\n\r\n");
    assert_int_equal(check(&c, exact).status, 0);
    assert_int_equal(check(&c, exact - 3).status, 0); /* no space, bare line feeds */
    assert_int_equal(check(&c, exact + 1).status, 400);
}

static void test_token(void **state)
{
    (void)state;
    assert_true(http_is_token("!#$%&'*+-.^_`|~09azAZ"));
    for (const char *c = "\"(),/:;<=>?@[\\]{} \t\r\n\x7f\x80\xff"; *c; c++)
        assert_false(http_is_token((char[]){'a', *c, 0}));
    assert_false(http_is_token(""));
    assert_false(http_is_token(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_framing_is_reported),
        cmocka_unit_test(test_hidden_bytes),
        cmocka_unit_test(test_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
