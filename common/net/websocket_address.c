/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "common/net/websocket-internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

void ws_url_done(WsUrl *u)
{
    free(TAKE_PTR(u->host));
    free(TAKE_PTR(u->prefix));
}

/* Takes "host", "host:port" or "[v6]:port" apart. */
static int authority_split(const char *s, size_t len, WsUrl *u)
{
    const char *end = s + len, *port = NULL;
    uint64_t value = u->tls ? 443 : 80;

    if (len > 0 && s[0] == '[') {
        const char *bracket = memchr(s, ']', len);
        if (!bracket)
            return -EINVAL;
        u->host = xstrndup(s + 1, (size_t)(bracket - s - 1));
        port = bracket + 1;
        if (port < end && *port != ':')
            return -EINVAL;
    } else {
        const char *colon = memchr(s, ':', len);
        port = colon ? colon : end;
        u->host = xstrndup(s, (size_t)(port - s));
    }
    if (port < end) {
        _cleanup_free_ char *digits = xstrndup(port + 1, (size_t)(end - port - 1));
        if (str_to_u64(digits, &value) < 0)
            return -EINVAL;
    }
    if (value == 0 || value > 65535 || str_empty(u->host) || strlen(u->host) > WS_HOST_MAX)
        return -EINVAL;
    u->port = (int)value;
    return 0;
}

int ws_url_parse(const char *url, WsUrl *ret, Error **error)
{
    WsUrl u = {.tls = str_starts_with(url, "https://")};
    const char *rest = NULL;

    if (u.tls)
        rest = url + strlen("https://");
    else if (str_starts_with(url, "http://"))
        rest = url + strlen("http://");
    const char *slash = rest ? strchr(rest, '/') : NULL;
    size_t len = slash ? (size_t)(slash - rest) : (rest ? strlen(rest) : 0);

    if (!rest || authority_split(rest, len, &u) < 0) {
        ws_url_done(&u);
        return error_set(error, ERROR_INVALID, "server address '%.200s' is not http(s)://host:port",
                         url);
    }
    size_t prefix_len = slash ? strlen(slash) : 0;
    while (prefix_len > 0 && slash[prefix_len - 1] == '/')
        prefix_len--;
    u.prefix = xstrndup(slash ? slash : "", prefix_len);
    *ret = u;
    return 0;
}

char *ws_url_authority(const WsUrl *u)
{
    bool v6 = strchr(u->host, ':') != NULL;
    return xasprintf("%s%s%s:%d", v6 ? "[" : "", u->host, v6 ? "]" : "", u->port);
}

bool ws_is_numeric(const char *host)
{
    struct in6_addr a;
    return inet_pton(AF_INET, host, &a) == 1 || inet_pton(AF_INET6, host, &a) == 1;
}

int ws_resolve(const char *host, WsAddresses *ret, Error **error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    WsAddresses found = {.len = 0};

    /* A number needs no resolver, and AI_ADDRCONFIG would refuse one on a host without a net. */
    if (ws_is_numeric(host) && strlen(host) < sizeof(found.text[0])) {
        memcpy(found.text[0], host, strlen(host) + 1);
        found.len = 1;
        *ret = found;
        return 0;
    }
    int r = getaddrinfo(host, NULL, &hints, &list);
    if (r != 0)
        return error_set(error, ERROR_UNAVAILABLE, "cannot resolve '%s': %s", host,
                         gai_strerror(r));
    for (struct addrinfo *a = list; a && found.len < WS_ADDRESSES_MAX; a = a->ai_next)
        if (getnameinfo(a->ai_addr, a->ai_addrlen, found.text[found.len], sizeof(found.text[0]),
                        NULL, 0, NI_NUMERICHOST) == 0)
            found.len++;
    freeaddrinfo(list);
    if (found.len == 0)
        return error_set(error, ERROR_UNAVAILABLE, "'%s' has no usable address", host);
    *ret = found;
    return 0;
}
