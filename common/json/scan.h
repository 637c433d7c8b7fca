/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside common/json only: checks a text against RFC 8259 before json-c builds the tree, and notes
 * what json-c would lose (see json.h).
 */
#pragma once

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct JsonScan {
    size_t n_members; /* members of all objects, duplicates included */
    size_t *wide;     /* ends (offsets) of integers beyond int64_t, ascending */
    size_t n_wide;
} JsonScan;

/* On failure nothing is left to free. */
int json_scan(const char *text, size_t len, int max_depth, JsonScan *ret, Error **error);
/* True for the digits of an integer (a '-' in front is allowed) beyond int64_t. */
bool json_is_wide_integer(const char *s, size_t len);
void json_scan_done(JsonScan *s);
