/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts an input into pieces for the streams: the first byte is a seed for the lengths, so that the
 * same bytes can be fed whole and in pieces and must give the same result.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline size_t next_piece(uint32_t *random, size_t left)
{
    size_t n;

    *random = *random * 1664525 + 1013904223;
    n = 1 + (*random >> 24) % 17;
    return n < left ? n : left;
}
