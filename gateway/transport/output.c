/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/output.h"

#include "common/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GAP_LINE_MAX 64

static size_t head_max(const OutputKeeper *o)
{
    return o->max - o->max / 4;
}

static size_t tail_max(const OutputKeeper *o)
{
    return o->max / 4;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns how much of the data the head took. */
static size_t head_add(OutputKeeper *o, const char *data, size_t len)
{
    size_t n = min_size(len, head_max(o) - o->head_len);

    if (n == 0)
        return 0;
    if (o->head_len + n > o->head_cap) {
        size_t want = o->head_cap ? o->head_cap * 2 : 256;
        o->head_cap = min_size(want > o->head_len + n ? want : o->head_len + n, head_max(o));
        o->head = xreallocarray(o->head, o->head_cap, 1);
    }
    memcpy(o->head + o->head_len, data, n);
    o->head_len += n;
    return n;
}

static void tail_add(OutputKeeper *o, const char *data, size_t len)
{
    size_t size = tail_max(o);

    if (!o->tail)
        o->tail = xmalloc(size);
    if (len > size) {
        data += len - size;
        len = size;
    }
    size_t end = (o->tail_start + o->tail_len) % size;
    size_t first = min_size(len, size - end);
    memcpy(o->tail + end, data, first);
    memcpy(o->tail, data + first, len - first);
    size_t dropped = o->tail_len + len > size ? o->tail_len + len - size : 0;
    o->tail_start = (o->tail_start + dropped) % size;
    o->tail_len += len - dropped;
}

void output_add(OutputKeeper *o, const char *data, size_t len)
{
    o->total += len;
    size_t n = head_add(o, data, len);
    if (n < len)
        tail_add(o, data + n, len - n);
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Bytes at the end that begin a character which is cut off. */
static size_t cut_at_end(const char *data, size_t len)
{
    size_t n = 0;

    while (n < 3 && n < len && is_continuation(data[len - 1 - n]))
        n++;
    if (n == len)
        return 0;
    unsigned char lead = (unsigned char)data[len - 1 - n];
    size_t needs = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    return n + 1 < needs ? n + 1 : 0;
}

/* Bytes at the start that end a character which is cut off. */
static size_t cut_at_start(const char *data, size_t len)
{
    size_t n = 0;

    while (n < 3 && n < len && is_continuation(data[n]))
        n++;
    return n < len && is_continuation(data[n]) ? 0 : n;
}

static char *tail_linear(const OutputKeeper *o)
{
    char *out = xmalloc(o->tail_len + 1);
    size_t first = min_size(o->tail_len, tail_max(o) - o->tail_start);

    if (o->tail_len > 0) {
        memcpy(out, o->tail + o->tail_start, first);
        memcpy(out + first, o->tail, o->tail_len - first);
    }
    out[o->tail_len] = '\0';
    return out;
}

static char *join(const char *a, size_t a_len, const char *between, size_t between_len,
                  const char *b, size_t b_len)
{
    char *out = xmalloc(a_len + between_len + b_len + 1);

    if (a_len > 0)
        memcpy(out, a, a_len);
    memcpy(out + a_len, between, between_len);
    memcpy(out + a_len + between_len, b, b_len);
    out[a_len + between_len + b_len] = '\0';
    return out;
}

char *output_take(OutputKeeper *o, size_t *ret_len, bool *ret_truncated)
{
    _cleanup_free_ char *tail = tail_linear(o);
    size_t head_len = o->head_len, skip = 0;
    char gap[GAP_LINE_MAX] = "";
    int gap_len = 0;

    *ret_truncated = o->total > o->max;
    if (*ret_truncated) {
        head_len -= cut_at_end(o->head, head_len);
        skip = GAP_LINE_MAX + cut_at_start(tail + GAP_LINE_MAX, o->tail_len - GAP_LINE_MAX);
        gap_len = snprintf(gap, sizeof(gap), "\n[... %" PRIu64 " bytes left out ...]\n",
                           o->total - head_len - (o->tail_len - skip));
    }
    char *out = join(o->head, head_len, gap, (size_t)gap_len, tail + skip, o->tail_len - skip);
    *ret_len = head_len + (size_t)gap_len + o->tail_len - skip;
    output_done(o);
    return out;
}

void output_done(OutputKeeper *o)
{
    free(o->head);
    free(o->tail);
    *o = OUTPUT_KEEPER_INIT(o->max);
}
