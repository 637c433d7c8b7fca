/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUF_FIRST_CAP 64

static int buf_fail(Buf *b, int r)
{
    b->failed = true;
    return r;
}

/* Doubling from BUF_FIRST_CAP, never beyond the ceiling and its NUL; 0 where need is too large. */
static size_t next_cap(const Buf *b, size_t need)
{
    size_t limit = b->max < SIZE_MAX ? b->max + 1 : SIZE_MAX;
    size_t cap = b->cap ? b->cap : BUF_FIRST_CAP;

    while (cap < need && cap <= limit / 2)
        cap *= 2;
    if (cap < need || cap > limit)
        cap = limit;
    return cap;
}

int buf_reserve(Buf *b, size_t len)
{
    size_t need, cap;
    char *data;

    if (b->failed)
        return -E2BIG;
    if (b->len > b->max || len > b->max - b->len || b->len + len == SIZE_MAX)
        return buf_fail(b, -E2BIG);
    need = b->len + len + 1;
    if (need <= b->cap)
        return 0;
    cap = next_cap(b, need);
    data = realloc(b->data, cap);
    if (!data)
        return buf_fail(b, -ENOMEM);
    data[b->len] = '\0';
    b->data = data;
    b->cap = cap;
    return 0;
}

int buf_append(Buf *b, const void *data, size_t len)
{
    int r = buf_reserve(b, len);

    if (r < 0)
        return r;
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

int buf_append_str(Buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_append_char(Buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_printf(Buf *b, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return r;
}

int buf_vprintf(Buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n, r;

    if (b->failed)
        return -E2BIG;
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return buf_fail(b, -EINVAL);
    r = buf_reserve(b, (size_t)n);
    if (r < 0)
        return r;
    (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return 0;
}

int buf_check(const Buf *b, const char *what, Error **error)
{
    if (!b->failed)
        return 0;
    return error_set(error, ERROR_TOO_LARGE, "%s is larger than %zu bytes", what, b->max);
}

void buf_consume(Buf *b, size_t n)
{
    if (n > b->len)
        n = b->len;
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

void buf_clear(Buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

static void buf_forget(Buf *b)
{
    *b = BUF_INIT(b->max);
}

void buf_done(Buf *b)
{
    free(b->data);
    buf_forget(b);
}

void buf_wipe(Buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    buf_done(b);
}

const char *buf_str(const Buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(Buf *b, size_t *ret_len)
{
    char *data = b->data ? b->data : xstrdup("");

    if (ret_len)
        *ret_len = b->len;
    buf_forget(b);
    return data;
}
