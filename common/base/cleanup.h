/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership in plain sight: every owned local is declared with _cleanup_ and initialised where it
 * is declared; moving it out is spelled TAKE_PTR or TAKE_FD.
 *
 * Small allocations never fail: the x*() family ends the process with one log line when memory is
 * gone. Both daemons keep all state in the API server, so a restart is always safe. Whatever grows
 * with outside input lives in a Buf, which has a ceiling and reports an error instead.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _warn_unused_ __attribute__((warn_unused_result))
#define _unused_ __attribute__((unused))
#define _noreturn_ __attribute__((noreturn))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Returns the pointer and leaves NULL behind: the caller of the function owns it now. */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        typeof(p) *_pp = &(p);                                                                     \
        typeof(p) _taken = *_pp;                                                                   \
        *_pp = NULL;                                                                               \
        _taken;                                                                                    \
    })

#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int *_pfd = &(fd);                                                                         \
        int _taken = *_pfd;                                                                        \
        *_pfd = -1;                                                                                \
        _taken;                                                                                    \
    })

/* Declares type##_freep for _cleanup_(fn##p), where fn takes a pointer, accepts NULL. */
#define DEFINE_CLEANUP(type, fn)                                                                   \
    static inline void fn##p(type *p)                                                              \
    {                                                                                              \
        if (*p)                                                                                    \
            fn(*p);                                                                                \
    }                                                                                              \
    struct _cleanup_semicolon_

static inline void freep(void *p)
{
    free(*(void **)p);
}

static inline void closep(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)

/* Allocate or end the process. Sizes are for small, bounded objects; xcalloc and xreallocarray
 * check the multiplication. xstrndup copies at most n bytes and always terminates. */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xcalloc(size_t count, size_t size)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xreallocarray(void *p, size_t count, size_t size) __attribute__((warn_unused_result));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull, warn_unused_result));
/* xstrdup that maps NULL to NULL. */
char *xstrdup_null(const char *s) _warn_unused_;
char *xstrndup(const char *s, size_t n)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
char *xasprintf(const char *fmt, ...) _printf_(1, 2) _warn_unused_;
void *xmemdup(const void *p, size_t n) _warn_unused_;
/* Frees *p, then stores a copy of s (NULL stays NULL). */
void str_replace(char **p, const char *s);

#define xnew(type) ((type *)xcalloc(1, sizeof(type)))
