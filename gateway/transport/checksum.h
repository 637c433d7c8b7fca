/* SPDX-License-Identifier: Apache-2.0 */
/* What the sandbox's sum tools print: sha256sum, and cksum (POSIX) where there is no such tool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The CRC of POSIX cksum over data and its length. */
uint32_t checksum_posix(const void *data, size_t len);
/* Checks a line "sha256sum SIZE HEX …" or "cksum SIZE CRC LENGTH …" against data. SIZE is the
 * file's size before it was read: less than that is incomplete, more is a file that grew. */
bool checksum_line_matches(const char *line, const void *data, size_t len);
