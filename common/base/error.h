/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One error object for everything that can fail: a kind (what the caller may do about it), a
 * sentence, the HTTP status where one was involved, and a next step for the person or model that
 * reads it. Functions take `Error **error` last, return a negative errno and set *error on failure
 * only; passing NULL drops the details. On the way up error_wrap() prefixes context. Library code
 * does not log; the top of a call chain reports an error once.
 *
 * An Error belongs to one thread at a time. Messages are cut at ERROR_MESSAGE_MAX bytes and must
 * never hold secrets; what comes from outside is sanitised by the formatter (control bytes become
 * '?').
 */
#pragma once

#include "common/base/cleanup.h"

#include <stdbool.h>

#define ERROR_MESSAGE_MAX 2048

typedef enum ErrorKind {
    ERROR_INTERNAL,        /* a bug or an impossible state */
    ERROR_INVALID,         /* the input is wrong; repeating it cannot help */
    ERROR_UNAUTHENTICATED, /* who is asking is unknown */
    ERROR_DENIED,          /* known, but not allowed */
    ERROR_NOT_FOUND,
    ERROR_CONFLICT,    /* a precondition failed: read again and decide anew */
    ERROR_EXISTS,      /* create: the name is taken */
    ERROR_GONE,        /* resource version too old: list again */
    ERROR_TOO_LARGE,   /* a ceiling was reached */
    ERROR_EXHAUSTED,   /* quota, rate or concurrency limit: retry later */
    ERROR_UNAVAILABLE, /* the other side is away or broken: retry may help */
    ERROR_TIMEOUT,     /* a deadline passed; the effect is unknown */
    ERROR_CANCELLED,   /* the caller went away or asked to stop */
    ERROR_KIND_MAX,
} ErrorKind;

typedef struct Error {
    ErrorKind kind;
    int http_status;    /* 0 where no HTTP answer was involved */
    int retry_after_ms; /* 0 where the other side did not say */
    char *message;      /* never NULL */
    char *hint;         /* next step; NULL where there is none */
    char *reason;       /* machine word of the other side (Kubernetes Status.reason); may be NULL */
} Error;

/* Sets *error (when error is not NULL; an error already there is freed) and returns the kind's
 * negative errno: `return error_set(error, ERROR_INVALID, "…")`. */
int error_set(Error **error, ErrorKind kind, const char *fmt, ...) _printf_(3, 4);
/* Prefixes "context: " to the message of *error, if there is one. Returns r unchanged. */
int error_wrap(Error **error, int r, const char *fmt, ...) _printf_(3, 4);
/* Replaces the hint of *error, if there is one. Returns r unchanged. */
int error_hint(Error **error, int r, const char *fmt, ...) _printf_(3, 4);
/* Negative errno for a kind, and the stable lower-case name ("not_found"). */
int error_errno(ErrorKind kind);
const char *error_kind_to_string(ErrorKind kind);
/* True where the same request may succeed later without a change. */
bool error_is_retryable(const Error *e);
Error *error_copy(const Error *e) _warn_unused_;
Error *error_free(Error *e); /* NULL is fine; returns NULL */
/* Message of e, or a fixed sentence for NULL: never NULL. */
const char *error_message(const Error *e);

/* What a compiler cannot see through a call, so that it knows that an out-parameter is not read
 * after a failure: error_set() gives a negative number, the others give back what they got. */
#define error_set(...)                                                                             \
    ({                                                                                             \
        int _negative = (error_set)(__VA_ARGS__);                                                  \
        if (_negative >= 0)                                                                        \
            __builtin_unreachable();                                                               \
        _negative;                                                                                 \
    })
#define error_wrap(error, r, ...) ERROR_SAME(error_wrap, _wrapped, error, r, __VA_ARGS__)
#define error_hint(error, r, ...) ERROR_SAME(error_hint, _hinted, error, r, __VA_ARGS__)
#define ERROR_SAME(fn, var, error, r, ...)                                                         \
    ({                                                                                             \
        int var = (r);                                                                             \
        (void)(fn)(error, var, __VA_ARGS__);                                                       \
        var;                                                                                       \
    })

static inline void error_freep(Error **e)
{
    *e = error_free(*e);
}
#define _cleanup_error_ _cleanup_(error_freep)
