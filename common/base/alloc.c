/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/cleanup.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static _noreturn_ void die_out_of_memory(void)
{
    static const char line[] = "fatal: out of memory\n";

    (void)!write(STDERR_FILENO, line, sizeof(line) - 1);
    _exit(EXIT_FAILURE);
}

static void *check(void *p)
{
    if (!p)
        die_out_of_memory();
    return p;
}

void *xmalloc(size_t size)
{
    return check(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    return check(calloc(count, size));
}

void *xreallocarray(void *p, size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    return check(reallocarray(p, count, size));
}

char *xstrdup(const char *s)
{
    return check(strdup(s));
}

char *xstrdup_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = xmalloc(len + 1);

    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        die_out_of_memory();
    return s;
}

void *xmemdup(const void *p, size_t n)
{
    void *copy = xmalloc(n);

    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}

void str_replace(char **p, const char *s)
{
    char *copy = xstrdup_null(s); /* before the free: s may point into *p */

    free(*p);
    *p = copy;
}
