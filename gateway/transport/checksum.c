/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/checksum.h"

#include "common/base/str.h"
#include "common/net/crypto.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x04C11DB7U
#define WORDS_MAX 4
#define WORD_MAX 80

static uint32_t crc_table[256];

static void crc_table_make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t row = i << 24;
        for (int bit = 0; bit < 8; bit++)
            row = row & 0x80000000U ? row << 1 ^ POLYNOMIAL : row << 1;
        crc_table[i] = row;
    }
}

static uint32_t crc_add(uint32_t crc, unsigned char byte)
{
    return crc << 8 ^ crc_table[(crc >> 24 ^ byte) & 0xFF];
}

uint32_t checksum_posix(const void *data, size_t len)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *bytes = data;
    uint32_t crc = 0;

    pthread_once(&once, crc_table_make);
    for (size_t i = 0; i < len; i++)
        crc = crc_add(crc, bytes[i]);
    for (size_t rest = len; rest; rest >>= 8)
        crc = crc_add(crc, (unsigned char)(rest & 0xFF));
    return ~crc;
}

static size_t words_split(const char *line, char words[WORDS_MAX][WORD_MAX])
{
    size_t n = 0;

    while (n < WORDS_MAX) {
        line += strspn(line, " ");
        size_t len = strcspn(line, " ");
        if (len == 0 || len >= WORD_MAX)
            break;
        memcpy(words[n], line, len);
        words[n++][len] = '\0';
        line += len;
    }
    return n;
}

static bool posix_matches(const char *crc, const char *length, const void *data, size_t len)
{
    uint64_t crc_value = 0, length_value = 0;

    return str_to_u64(crc, &crc_value) == 0 && str_to_u64(length, &length_value) == 0 &&
           length_value == len && crc_value == checksum_posix(data, len);
}

bool checksum_line_matches(const char *line, const void *data, size_t len)
{
    char words[WORDS_MAX][WORD_MAX], hex[2 * SHA256_LEN + 1];
    size_t n = words_split(line, words);
    uint64_t size = 0;

    if (n < 3 || str_to_u64(words[1], &size) < 0 || len < size)
        return false;
    if (str_eq(words[0], "cksum"))
        return n == 4 && posix_matches(words[2], words[3], data, len);
    crypto_sha256_hex(data, len, hex, sizeof(hex) - 1);
    return str_eq(words[0], "sha256sum") && str_eq(words[2], hex);
}
