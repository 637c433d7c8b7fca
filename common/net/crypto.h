/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes and randomness (OpenSSL). Thread-safe. */
#pragma once

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define SHA256_LEN 32
void crypto_sha256(const void *data, size_t len, unsigned char out[SHA256_LEN]);
/* First hex_len hex digits (≤ 64) of SHA-256 over data, NUL-terminated: out holds hex_len + 1. */
void crypto_sha256_hex(const void *data, size_t len, char *out, size_t hex_len);
/* Cryptographically strong; ends the process where the system has none. */
void crypto_random(void *out, size_t len);
bool crypto_equal(const void *a, const void *b, size_t len); /* constant time */
