/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the sources of a configuration: what a token may be. */
#pragma once

#include "common/kube/config.h"

#include <stddef.h>

#define KUBE_CONFIG_FILE_MAX ((size_t)1024 * 1024)
#define KUBE_TOKEN_MAX ((size_t)64 * 1024)

/* Cuts white space at both ends; what is left must be printable ASCII without spaces. */
int kube_check_token(char *token, const char *where, Error **error);
/* "certificate" or "key" text must hold a PEM block. */
int kube_check_pem(const char *pem, const char *where, Error **error);
/* Zeroes the string, then frees it; leaves NULL. */
void kube_wipe(char **secret);

static inline void kube_wipep(char **secret)
{
    kube_wipe(secret);
}
