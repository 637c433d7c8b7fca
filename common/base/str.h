/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and small parsers used everywhere. Nothing here allocates unless its comment says so. */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_eq(const char *a, const char *b);  /* NULL equals only NULL */
static inline bool str_empty(const char *s) /* NULL or "" */
{
    return !s || !*s;
}
bool str_starts_with(const char *s, const char *prefix);
bool str_ends_with(const char *s, const char *suffix);
/* Whole-string decimal parsers: no sign for u64, no spaces, no overflow. -EINVAL / -ERANGE. */
int str_to_u64(const char *s, uint64_t *ret);
int str_to_i64(const char *s, int64_t *ret);
/* Length in bytes of the valid UTF-8 sequence (RFC 3629: no surrogates, no overlong forms) that s
 * starts with; 0 where there is none. */
size_t str_utf8_len(const char *s, size_t len);
/* True for valid UTF-8 throughout. */
bool str_is_utf8(const char *s, size_t len);
/* RFC 1123 label / subdomain rules as Kubernetes applies them to names (63 / 253 bytes). */
bool str_is_dns_label(const char *s);
bool str_is_dns_subdomain(const char *s);
/* Label value rule: empty or ≤ 63 of [A-Za-z0-9._-], alphanumeric at both ends. */
bool str_is_label_value(const char *s);
/* Qualified name: optional DNS-subdomain prefix and '/', then a name of ≤ 63 of [A-Za-z0-9._-]. */
bool str_is_label_key(const char *s);
/* Lower-case hex of len bytes into out, which holds 2*len+1. */
void str_hex(const void *data, size_t len, char *out);
/* Percent-encodes everything but unreserved characters (RFC 3986 §2.3); '/' too unless kept. */
int str_url_encode(Buf *out, const char *s, size_t len, bool keep_slash);
/* Base64 of RFC 4648 §4. Decode is strict (alphabet, padding, no stray bits); line breaks are
 * refused. Where it fails, nothing is appended. */
int str_base64_encode(Buf *out, const void *data, size_t len);
int str_base64_decode(Buf *out, const char *s, size_t len, Error **error);
/* FNV-1a, the hash behind Hashmap; and the 32-bit variant that upstream uses for name hashes. */
uint64_t str_hash64(const char *s);
uint32_t str_hash_fnv1a32(const void *data, size_t len);
