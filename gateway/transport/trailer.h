/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the end of a stream of a job: a line that begins with the job's nonce. What is before it is
 * the job's own output, passed on as it arrives; what comes after it (of background processes) is
 * dropped. Pieces may be cut anywhere.
 */
#pragma once

#include "gateway/transport/script.h"

#include <stdbool.h>
#include <stddef.h>

#define TRAILER_LINE_MAX 256

typedef struct TrailerScan {
    char nonce[SCRIPT_NONCE_LEN + 1];
    char held[2 * SCRIPT_NONCE_LEN]; /* the last bytes, which may begin the nonce */
    size_t held_len;
    char line[TRAILER_LINE_MAX]; /* what follows the nonce, NUL-terminated */
    size_t line_len;
    bool found;
    bool complete; /* the whole line is there */
    bool broken;   /* it is longer than TRAILER_LINE_MAX */
} TrailerScan;

typedef void (*TrailerDataFn)(const char *data, size_t len, void *userdata);

void trailer_init(TrailerScan *t, const char *nonce);
/* fn is called with output, never with an empty piece. */
void trailer_feed(TrailerScan *t, const char *data, size_t len, TrailerDataFn fn, void *userdata);
/* The stream ended: what was held back is output, unless the nonce was found or had begun. */
void trailer_flush(TrailerScan *t, TrailerDataFn fn, void *userdata);
