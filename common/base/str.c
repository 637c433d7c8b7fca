/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"

#include <errno.h>
#include <string.h>

#define DNS_LABEL_MAX 63
#define DNS_SUBDOMAIN_MAX 253

bool str_eq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

bool str_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends_with(const char *s, const char *suffix)
{
    size_t len = strlen(s), suffix_len = strlen(suffix);

    return len >= suffix_len && strcmp(s + len - suffix_len, suffix) == 0;
}

int str_to_u64(const char *s, uint64_t *ret)
{
    uint64_t v = 0;

    if (str_empty(s))
        return -EINVAL;
    for (const char *p = s; *p; p++)
        if (*p < '0' || *p > '9')
            return -EINVAL;
    for (; *s; s++)
        if (__builtin_mul_overflow(v, 10U, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return -ERANGE;
    *ret = v;
    return 0;
}

int str_to_i64(const char *s, int64_t *ret)
{
    bool negative = s && *s == '-';
    uint64_t v, limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    int r = str_to_u64(negative ? s + 1 : s, &v);

    if (r < 0)
        return r;
    if (v > limit)
        return -ERANGE;
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

size_t str_utf8_len(const char *s, size_t len)
{
    /* Lead byte range, sequence length, range of the second byte (RFC 3629 §4). */
    static const struct {
        unsigned char first, last, len, low, high;
    } rows[] = {
        {0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
        {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
        {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
    };
    const unsigned char *p = (const unsigned char *)s;
    size_t row = 0;

    if (len == 0)
        return 0;
    while (row < ARRAY_SIZE(rows) && (p[0] < rows[row].first || p[0] > rows[row].last))
        row++;
    if (row == ARRAY_SIZE(rows) || rows[row].len > len)
        return 0;
    if (rows[row].len > 1 && (p[1] < rows[row].low || p[1] > rows[row].high))
        return 0;
    for (size_t i = 2; i < rows[row].len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return rows[row].len;
}

bool str_is_utf8(const char *s, size_t len)
{
    while (len > 0) {
        size_t n = (unsigned char)*s < 0x80 ? 1 : str_utf8_len(s, len);

        if (n == 0)
            return false;
        s += n;
        len -= n;
    }
    return true;
}

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool is_dns_label(const char *s, size_t len, size_t max)
{
    if (len == 0 || len > max || !is_lower_alnum(s[0]) || !is_lower_alnum(s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_lower_alnum(s[i]) && s[i] != '-')
            return false;
    return true;
}

bool str_is_dns_label(const char *s)
{
    return s && is_dns_label(s, strlen(s), DNS_LABEL_MAX);
}

static bool is_dns_subdomain(const char *s, size_t len)
{
    if (len == 0 || len > DNS_SUBDOMAIN_MAX)
        return false;
    for (;;) {
        const char *dot = memchr(s, '.', len);
        size_t label_len = dot ? (size_t)(dot - s) : len;

        /* Kubernetes bounds the whole name only, not its labels. */
        if (!is_dns_label(s, label_len, DNS_SUBDOMAIN_MAX))
            return false;
        if (!dot)
            return true;
        s += label_len + 1;
        len -= label_len + 1;
    }
}

bool str_is_dns_subdomain(const char *s)
{
    return s && is_dns_subdomain(s, strlen(s));
}

static bool is_name_part(const char *s)
{
    size_t len = strlen(s);

    if (len == 0 || len > DNS_LABEL_MAX || !is_alnum(s[0]) || !is_alnum(s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    return true;
}

bool str_is_label_value(const char *s)
{
    return s && (*s == '\0' || is_name_part(s));
}

bool str_is_label_key(const char *s)
{
    const char *slash = s ? strchr(s, '/') : NULL;

    if (!s)
        return false;
    if (!slash)
        return is_name_part(s);
    return is_dns_subdomain(s, (size_t)(slash - s)) && is_name_part(slash + 1);
}

uint64_t str_hash64(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return h;
}

uint32_t str_hash_fnv1a32(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint32_t h = UINT32_C(0x811c9dc5);

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT32_C(0x01000193);
    return h;
}
