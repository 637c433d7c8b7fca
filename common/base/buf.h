/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer with a ceiling given where it is made. Appending beyond the ceiling (or
 * without memory) appends nothing, sets the sticky `failed` flag and makes every later append a
 * no-op: a builder checks once, at the end, with buf_check(). The content is always followed by a
 * NUL that is not counted, so buf_str() is a C string where the content has no NUL itself.
 */
#pragma once

#include "common/base/cleanup.h"
#include "common/base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max; /* ceiling on len, in bytes */
    bool failed;
} Buf;

#define BUF_INIT(ceiling_bytes) ((Buf){.max = (ceiling_bytes)})

/* All appenders return 0 or a negative errno, so an immediate check is possible as well. */
int buf_append(Buf *b, const void *data, size_t len);
int buf_append_str(Buf *b, const char *s);
int buf_append_char(Buf *b, char c);
int buf_printf(Buf *b, const char *fmt, ...) _printf_(2, 3);
int buf_vprintf(Buf *b, const char *fmt, va_list ap) _printf_(2, 0);
/* Makes room for len more bytes; where there is none: sets failed, returns a negative errno. */
int buf_reserve(Buf *b, size_t len);
/* 0, or -E2BIG with an ERROR_TOO_LARGE that names `what` and the ceiling. */
int buf_check(const Buf *b, const char *what, Error **error);
/* Drops the first n bytes (all of them where n ≥ len). */
void buf_consume(Buf *b, size_t n);
/* Empties for reuse and clears `failed`; keeps the memory. */
void buf_clear(Buf *b);
/* Frees the memory; the ceiling stays, the buffer is usable again. */
void buf_done(Buf *b);
/* As buf_done, zeroing the bytes first: for secrets. */
void buf_wipe(Buf *b);
/* Never NULL. Valid until the next change. */
const char *buf_str(const Buf *b);
/* Hands the memory (NUL-terminated) to the caller and leaves the buffer empty; never NULL. */
char *buf_take(Buf *b, size_t *ret_len) _warn_unused_;

#define _cleanup_buf_ _cleanup_(buf_done)
