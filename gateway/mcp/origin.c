/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/mcp/origin.h"

#include "common/base/cleanup.h"

#include <string.h>
#include <strings.h>

/* Bytes of the name in "name", "name:port" or "[v6]:port". 0 where it is none of these. */
static size_t name_len(const char *host)
{
    size_t len = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");

    if (host[0] == '[' && host[len] != ']')
        return 0;
    if (host[0] == '[')
        len++;
    if (host[len] == '\0')
        return len;
    if (host[len] != ':' || host[len + 1 + strspn(host + len + 1, "0123456789")] != '\0')
        return 0;
    return len;
}

static bool same_name(const char *host, size_t len, const char *name)
{
    return len > 0 && len == name_len(name) && strncasecmp(host, name, len) == 0;
}

static bool is_loopback_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t len = name_len(host);

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (same_name(host, len, names[i]))
            return true;
    return false;
}

bool mcp_host_allowed(const OriginRules *rules, const char *host)
{
    if (!rules->loopback && rules->n_hosts == 0)
        return true;
    if (!host)
        return false;
    if (rules->loopback && is_loopback_name(host))
        return true;
    for (size_t i = 0; i < rules->n_hosts; i++)
        if (same_name(host, name_len(host), rules->hosts[i]))
            return true;
    return false;
}

bool mcp_origin_allowed(const OriginRules *rules, const char *origin)
{
    const char *host;

    if (!origin)
        return true;
    for (size_t i = 0; i < rules->n_origins; i++)
        if (strcasecmp(origin, rules->origins[i]) == 0)
            return true;
    host = strstr(origin, "://");
    return rules->loopback && host && is_loopback_name(host + 3);
}
