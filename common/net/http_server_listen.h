/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets from the text of a flag. "HOST:PORT" with HOST an address ("127.0.0.1",
 * "[::1]"), a name, or empty for all addresses, IPv4 and IPv6 on one socket (IPv4 alone on a
 * machine without IPv6, which is logged). Blocks on name resolution: for start-up.
 */
#pragma once

#include "common/base/error.h"

#include <stdint.h>

#define HTTP_LISTEN_HOST_MAX 256

/* *ret_fd belongs to the caller (non-blocking, close-on-exec), *ret_port is the real port. */
int http_listen(const char *address, int *ret_fd, uint16_t *ret_port, Error **error);
/* Splits the text without touching the network: host[HTTP_LISTEN_HOST_MAX] without brackets. */
int http_listen_parse(const char *address, char *host, uint16_t *ret_port, Error **error);
