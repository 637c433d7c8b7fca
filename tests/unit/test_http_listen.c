/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/http_server_listen.h"

#include "tests/unit/cmocka_all.h"

#include "common/base/str.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static const struct {
    const char *address;
    const char *host; /* NULL: refused */
    uint16_t port;
} cases[] = {
    {"127.0.0.1:8080", "127.0.0.1", 8080},
    {":0", "", 0},
    {":65535", "", 65535},
    {"[::1]:80", "::1", 80},
    {"[::]:80", "::", 80},
    {"localhost:1", "localhost", 1},
    {NULL, NULL, 0},
    {"", NULL, 0},
    {"8080", NULL, 0},
    {"host", NULL, 0},
    {"host:", NULL, 0},
    {"host:65536", NULL, 0},
    {"host:-1", NULL, 0},
    {"host: 1", NULL, 0},
    {"host:http", NULL, 0},
    {"::1:80", NULL, 0},
    {"[::1:80", NULL, 0},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char host[HTTP_LISTEN_HOST_MAX] = "";
        uint16_t port = 0;
        _cleanup_error_ Error *error = NULL;
        int r = http_listen_parse(cases[i].address, host, &port, &error);
        if ((r == 0) != (cases[i].host != NULL))
            fail_msg("%s: %s", cases[i].address ? cases[i].address : "NULL", error_message(error));
        if (r < 0) {
            assert_int_equal(error->kind, ERROR_INVALID);
            continue;
        }
        assert_string_equal(host, cases[i].host);
        assert_int_equal(port, cases[i].port);
    }
    char longest[400];
    memset(longest, 'a', sizeof longest);
    memcpy(longest + sizeof longest - 4, ":80", 4);
    char host[HTTP_LISTEN_HOST_MAX];
    uint16_t port;
    assert_true(http_listen_parse(longest, host, &port, NULL) < 0);
}

static void test_listen(void **state)
{
    (void)state;
    _cleanup_close_ int fd = -1;
    uint16_t port = 0;
    struct sockaddr_storage sa;
    socklen_t len = sizeof sa;
    assert_int_equal(http_listen("localhost:0", &fd, &port, NULL), 0);
    assert_true(port > 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    assert_true(sa.ss_family == AF_INET || sa.ss_family == AF_INET6);
}

static void test_errors_name_the_address(void **state)
{
    (void)state;
    int fd = -1;
    uint16_t port = 0;
    for (size_t i = 0; i < 2; i++) {
        const char *address = i ? "no-such-host.invalid:80" : "192.0.2.1:80"; /* not ours */
        _cleanup_error_ Error *error = NULL;
        assert_true(http_listen(address, &fd, &port, &error) < 0);
        assert_int_equal(fd, -1);
        assert_int_equal(error->kind, ERROR_UNAVAILABLE);
        assert_non_null(strstr(error->message, address));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_errors_name_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
