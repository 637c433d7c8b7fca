/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/crypto.h"

#include "common/base/str.h"

#include <assert.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

static _noreturn_ void crypto_die(const char *what)
{
    (void)fprintf(stderr, "fatal: %s\n", what);
    abort();
}

void crypto_sha256(const void *data, size_t len, unsigned char out[SHA256_LEN])
{
    unsigned int written = 0;
    if (EVP_Digest(data, len, out, &written, EVP_sha256(), NULL) != 1 || written != SHA256_LEN)
        crypto_die("the system's OpenSSL has no SHA-256");
}

void crypto_sha256_hex(const void *data, size_t len, char *out, size_t hex_len)
{
    assert(hex_len <= (size_t)2 * SHA256_LEN);
    unsigned char digest[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    crypto_sha256(data, len, digest);
    str_hex(digest, sizeof(digest), hex);
    memcpy(out, hex, hex_len);
    out[hex_len] = '\0';
}

void crypto_random(void *out, size_t len)
{
    unsigned char *at = out;
    while (len > 0) {
        int piece = len > INT_MAX ? INT_MAX : (int)len;
        if (RAND_bytes(at, piece) != 1)
            crypto_die("the system has no randomness");
        at += piece;
        len -= (size_t)piece;
    }
}

bool crypto_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}
