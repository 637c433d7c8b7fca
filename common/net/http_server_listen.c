/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/http_server_listen.h"

#include "common/base/log.h"
#include "common/base/str.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define BACKLOG 1024 /* connections that wait to be accepted; the kernel cuts at somaxconn */

int http_listen_parse(const char *address, char *host, uint16_t *ret_port, Error **error)
{
    const char *colon = address ? strrchr(address, ':') : NULL;
    uint64_t port = 0;

    if (!colon || str_to_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
        return error_set(error, ERROR_INVALID, "\"%s\" is not HOST:PORT or :PORT",
                         address ? address : "");
    const char *start = address, *end = colon;
    if (*start == '[' && end > start && end[-1] == ']') {
        start++;
        end--;
    } else if (memchr(start, ':', (size_t)(end - start))) {
        return error_set(error, ERROR_INVALID, "\"%s\": write an IPv6 address in brackets",
                         address);
    }
    if ((size_t)(end - start) >= HTTP_LISTEN_HOST_MAX)
        return error_set(error, ERROR_INVALID, "the host of the listen address is too long");
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    *ret_port = (uint16_t)port;
    return 0;
}

static int socket_open(const struct sockaddr *sa, socklen_t len, bool dual, int *ret_fd)
{
    const int on = 1, v6only = dual ? 0 : 1;
    _cleanup_close_ int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        return -errno;
    if (sa->sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only) < 0)
        return -errno;
    if (bind(fd, sa, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int listen_all(uint16_t port, int *ret_fd)
{
    const struct sockaddr_in6 any6 = {
        .sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons(port)};
    const struct sockaddr_in any4 = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY), .sin_port = htons(port)};

    int r = socket_open((const struct sockaddr *)&any6, sizeof any6, true, ret_fd);
    if (r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
        return r;
    log_info("no IPv6 on this machine, listening on IPv4 alone", LOGF_INT("port", port));
    return socket_open((const struct sockaddr *)&any4, sizeof any4, false, ret_fd);
}

static int listen_host(const char *host, uint16_t port, int *ret_fd, Error **error)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[8];

    (void)snprintf(service, sizeof service, "%u", port);
    int r = getaddrinfo(host, service, &hints, &found);
    if (r != 0)
        return error_set(error, ERROR_INVALID, "cannot resolve %s: %s", host, gai_strerror(r));
    r = socket_open(found->ai_addr, found->ai_addrlen, false, ret_fd);
    freeaddrinfo(found);
    return r;
}

static int socket_port(int fd, uint16_t *ret_port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    } sa;
    socklen_t len = sizeof sa;

    memset(&sa, 0, sizeof sa);
    if (getsockname(fd, &sa.any, &len) < 0)
        return -errno;
    *ret_port = ntohs(sa.any.sa_family == AF_INET6 ? sa.in6.sin6_port : sa.in4.sin_port);
    return 0;
}

int http_listen(const char *address, int *ret_fd, uint16_t *ret_port, Error **error)
{
    char host[HTTP_LISTEN_HOST_MAX] = "";
    _cleanup_close_ int fd = -1;
    uint16_t port = 0;

    int r = http_listen_parse(address, host, &port, error);
    if (r < 0)
        return r;
    _cleanup_error_ Error *inner = NULL;
    r = *host ? listen_host(host, port, &fd, &inner) : listen_all(port, &fd);
    if (r >= 0)
        r = socket_port(fd, ret_port);
    if (r < 0)
        return error_set(error, r == -EADDRINUSE ? ERROR_EXISTS : ERROR_UNAVAILABLE,
                         "cannot listen on %s: %s", address,
                         inner ? error_message(inner) : strerror(-r));
    *ret_fd = TAKE_FD(fd);
    return 0;
}
