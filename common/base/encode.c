/* SPDX-License-Identifier: Apache-2.0 */
/* The text encodings of str.h: hex, percent, base64. */
#include "common/base/str.h"

#include <string.h>

static const char base64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void str_hex(const void *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * len] = '\0';
}

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int str_url_encode(Buf *out, const char *s, size_t len, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    int r = 0;

    for (size_t i = 0; i < len && r >= 0; i++) {
        unsigned char c = (unsigned char)s[i];
        const char escaped[] = {'%', digits[c >> 4], digits[c & 15]};

        if (is_unreserved(s[i]) || (keep_slash && s[i] == '/'))
            r = buf_append_char(out, s[i]);
        else
            r = buf_append(out, escaped, sizeof(escaped));
    }
    return r;
}

int str_base64_encode(Buf *out, const void *data, size_t len)
{
    const unsigned char *p = data;
    int r = 0;

    for (size_t i = 0; i < len && r >= 0; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        unsigned b1 = n > 1 ? p[i + 1] : 0, b2 = n > 2 ? p[i + 2] : 0;
        unsigned v = (unsigned)p[i] << 16 | b1 << 8 | b2;
        const char quad[] = {
            base64_alphabet[v >> 18],
            base64_alphabet[v >> 12 & 63],
            n > 1 ? base64_alphabet[v >> 6 & 63] : '=',
            n > 2 ? base64_alphabet[v & 63] : '=',
        };

        r = buf_append(out, quad, sizeof(quad));
    }
    return r;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static size_t base64_padding(const char *s, size_t len)
{
    if (len == 0 || s[len - 1] != '=')
        return 0;
    return s[len - 2] == '=' ? 2 : 1;
}

/* Decodes one group of four; pad of its characters are '='. Returns false for a foreign character
 * or bits that padding says are not there. */
static bool base64_group(const char *s, size_t pad, unsigned char out[3])
{
    unsigned v = 0;

    for (size_t i = 0; i < 4; i++) {
        int d = i >= 4 - pad ? 0 : base64_digit(s[i]);

        if (d < 0)
            return false;
        v = v << 6 | (unsigned)d;
    }
    out[0] = (unsigned char)(v >> 16);
    out[1] = (unsigned char)(v >> 8);
    out[2] = (unsigned char)v;
    return (v & ((1U << (8 * pad)) - 1)) == 0;
}

int str_base64_decode(Buf *out, const char *s, size_t len, Error **error)
{
    size_t pad = base64_padding(s, len % 4 == 0 ? len : 0);
    size_t before = out->len;

    if (len % 4 != 0)
        return error_set(error, ERROR_INVALID, "base64 of %zu bytes is not a multiple of 4", len);
    if (buf_reserve(out, len / 4 * 3 - pad) < 0)
        return buf_check(out, "decoded base64", error);
    for (size_t i = 0; i < len; i += 4) {
        size_t group_pad = i + 4 == len ? pad : 0;
        unsigned char bytes[3];

        if (!base64_group(s + i, group_pad, bytes)) {
            out->data[out->len = before] = '\0';
            return error_set(error, ERROR_INVALID, "base64 is broken at byte %zu", i);
        }
        (void)buf_append(out, bytes, 3 - group_pad);
    }
    return 0;
}
