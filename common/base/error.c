/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int err;
    const char *name;
    bool retryable;
} kinds[ERROR_KIND_MAX] = {
    [ERROR_INTERNAL] = {EIO, "internal", false},
    [ERROR_INVALID] = {EINVAL, "invalid", false},
    [ERROR_UNAUTHENTICATED] = {EPERM, "unauthenticated", false},
    [ERROR_DENIED] = {EACCES, "denied", false},
    [ERROR_NOT_FOUND] = {ENOENT, "not_found", false},
    [ERROR_CONFLICT] = {EBUSY, "conflict", false},
    [ERROR_EXISTS] = {EEXIST, "exists", false},
    [ERROR_GONE] = {ESTALE, "gone", false},
    [ERROR_TOO_LARGE] = {E2BIG, "too_large", false},
    [ERROR_EXHAUSTED] = {EDQUOT, "exhausted", true},
    [ERROR_UNAVAILABLE] = {EHOSTUNREACH, "unavailable", true},
    [ERROR_TIMEOUT] = {ETIMEDOUT, "timeout", true},
    [ERROR_CANCELLED] = {ECANCELED, "cancelled", false},
};

static ErrorKind known_kind(ErrorKind kind)
{
    return (unsigned)kind < ERROR_KIND_MAX ? kind : ERROR_INTERNAL;
}

/* Cuts at the ceiling without splitting a UTF-8 sequence. */
static void cut_message(char *s)
{
    size_t len = strnlen(s, ERROR_MESSAGE_MAX + 1);

    if (len <= ERROR_MESSAGE_MAX)
        return;
    len = ERROR_MESSAGE_MAX;
    while (len > 0 && ((unsigned char)s[len] & 0xC0) == 0x80)
        len--;
    s[len] = '\0';
}

static char *sanitise(char *s)
{
    cut_message(s);
    for (char *p = s; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?';
    return s;
}

static _printf_(1, 0) char *format_message(const char *fmt, va_list ap)
{
    char *s = NULL;

    if (vasprintf(&s, fmt, ap) < 0)
        s = xstrdup("(message could not be formatted)");
    return sanitise(s);
}

int(error_set)(Error **error, ErrorKind kind, const char *fmt, ...)
{
    Error *e;
    va_list ap;

    kind = known_kind(kind);
    if (!error)
        return error_errno(kind);
    e = xnew(Error);
    e->kind = kind;
    va_start(ap, fmt);
    e->message = format_message(fmt, ap); /* may read the error that is replaced */
    va_end(ap);
    (void)error_free(*error);
    *error = e;
    return error_errno(kind);
}

int(error_wrap)(Error **error, int r, const char *fmt, ...)
{
    _cleanup_free_ char *context = NULL;
    char *message;
    va_list ap;

    if (!error || !*error)
        return r;
    va_start(ap, fmt);
    context = format_message(fmt, ap);
    va_end(ap);
    message = sanitise(xasprintf("%s: %s", context, (*error)->message));
    free((*error)->message);
    (*error)->message = message;
    return r;
}

int(error_hint)(Error **error, int r, const char *fmt, ...)
{
    char *hint;
    va_list ap;

    if (!error || !*error)
        return r;
    va_start(ap, fmt);
    hint = format_message(fmt, ap);
    va_end(ap);
    free((*error)->hint);
    (*error)->hint = hint;
    return r;
}

int error_errno(ErrorKind kind)
{
    return -kinds[known_kind(kind)].err;
}

const char *error_kind_to_string(ErrorKind kind)
{
    return kinds[known_kind(kind)].name;
}

bool error_is_retryable(const Error *e)
{
    return e && kinds[known_kind(e->kind)].retryable;
}

Error *error_copy(const Error *e)
{
    Error *copy;

    if (!e)
        return NULL;
    copy = xmemdup(e, sizeof(*e));
    copy->message = xstrdup(e->message);
    copy->hint = xstrdup_null(e->hint);
    copy->reason = xstrdup_null(e->reason);
    return copy;
}

Error *error_free(Error *e)
{
    if (!e)
        return NULL;
    free(e->message);
    free(e->hint);
    free(e->reason);
    free(e);
    return NULL;
}

const char *error_message(const Error *e)
{
    return e && e->message ? e->message : "no error was recorded";
}
