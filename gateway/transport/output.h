/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the head and the tail of a stream within a ceiling and counts the rest: three quarters
 * head, one quarter tail, between them a line that says how much is left out. What fits is kept
 * whole. Memory follows what arrives, up to the ceiling.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct OutputKeeper {
    size_t max; /* bytes of the result, the line between included; at least OUTPUT_MAX_LEAST */
    char *head;
    size_t head_len, head_cap;
    char *tail; /* a ring of max / 4 bytes, once the head is full */
    size_t tail_start, tail_len;
    uint64_t total;
} OutputKeeper;

#define OUTPUT_MAX_LEAST 1024
#define OUTPUT_KEEPER_INIT(ceiling_bytes) ((OutputKeeper){.max = (ceiling_bytes)})

void output_add(OutputKeeper *o, const char *data, size_t len);
/* The result, owned by the caller, NUL-terminated beyond its length. Cuts lie between UTF-8
 * characters where the text is UTF-8. Empties the keeper. */
char *output_take(OutputKeeper *o, size_t *ret_len, bool *ret_truncated);
void output_done(OutputKeeper *o);
