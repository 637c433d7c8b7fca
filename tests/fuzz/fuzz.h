/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fuzz targets share. A target reads its input, breaks nothing and keeps no state; a property
 * that does not hold is a FUZZ_CHECK that fails, which aborts in every build.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_CHECK(expr)                                                                           \
    do {                                                                                           \
        if (!(expr)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #expr);        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
