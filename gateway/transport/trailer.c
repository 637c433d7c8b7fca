/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/trailer.h"

#include "common/base/contract.h"

#include <string.h>

#define BEGUN_LEAST 6
#define KEEP (SCRIPT_NONCE_LEN - 1) /* so many last bytes may be the start of the nonce */

void trailer_init(TrailerScan *t, const char *nonce)
{
    CONTRACT(strlen(nonce) == SCRIPT_NONCE_LEN);
    *t = (TrailerScan){.held_len = 0};
    memcpy(t->nonce, nonce, SCRIPT_NONCE_LEN + 1);
}

static void pass_on(const char *data, size_t len, TrailerDataFn fn, void *userdata)
{
    if (len > 0)
        fn(data, len, userdata);
}

static void line_add(TrailerScan *t, const char *data, size_t len)
{
    const char *end = memchr(data, '\n', len);
    size_t n = end ? (size_t)(end - data) : len;

    if (n > sizeof(t->line) - 1 - t->line_len) {
        t->broken = true;
        t->line[0] = '\0';
    }
    if (t->broken)
        return;
    memcpy(t->line + t->line_len, data, n);
    t->line_len += n;
    t->line[t->line_len] = '\0';
    t->complete = end != NULL;
}

static const char *nonce_find(const TrailerScan *t, const char *data, size_t len)
{
    return memmem(data, len, t->nonce, SCRIPT_NONCE_LEN);
}

/* Looks for a nonce that begins in what is held. Returns how much of the data was used up. */
static size_t held_feed(TrailerScan *t, const char *data, size_t len, TrailerDataFn fn,
                        void *userdata)
{
    size_t take = len < KEEP ? len : KEEP;

    memcpy(t->held + t->held_len, data, take);
    size_t all = t->held_len + take;
    const char *at = nonce_find(t, t->held, all);
    if (at) {
        size_t before = (size_t)(at - t->held), used = before + SCRIPT_NONCE_LEN - t->held_len;
        pass_on(t->held, before, fn, userdata);
        t->found = true;
        t->held_len = 0;
        return used;
    }
    if (take == len) { /* all of it is in the window now: keep its end */
        size_t keep = all < KEEP ? all : KEEP;
        pass_on(t->held, all - keep, fn, userdata);
        memmove(t->held, t->held + all - keep, keep);
        t->held_len = keep;
        return len;
    }
    pass_on(t->held, t->held_len, fn, userdata);
    t->held_len = 0;
    return 0;
}

static size_t data_feed(TrailerScan *t, const char *data, size_t len, TrailerDataFn fn,
                        void *userdata)
{
    const char *at = nonce_find(t, data, len);

    if (at) {
        pass_on(data, (size_t)(at - data), fn, userdata);
        t->found = true;
        return (size_t)(at - data) + SCRIPT_NONCE_LEN;
    }
    size_t keep = len < KEEP ? len : KEEP;
    pass_on(data, len - keep, fn, userdata);
    memcpy(t->held, data + len - keep, keep);
    t->held_len = keep;
    return len;
}

void trailer_feed(TrailerScan *t, const char *data, size_t len, TrailerDataFn fn, void *userdata)
{
    size_t used = 0;

    if (!t->found && t->held_len > 0)
        used = held_feed(t, data, len, fn, userdata);
    if (!t->found && used < len)
        used += data_feed(t, data + used, len - used, fn, userdata);
    if (t->found && !t->complete && used < len)
        line_add(t, data + used, len - used);
}

/* How many of the last bytes are the start of the nonce, where that is no accident. */
static size_t nonce_begun(const TrailerScan *t)
{
    for (size_t n = t->held_len; n >= BEGUN_LEAST; n--)
        if (memcmp(t->held + t->held_len - n, t->nonce, n) == 0)
            return n;
    return 0;
}

void trailer_flush(TrailerScan *t, TrailerDataFn fn, void *userdata)
{
    if (!t->found)
        pass_on(t->held, t->held_len - nonce_begun(t), fn, userdata);
    t->held_len = 0;
}
