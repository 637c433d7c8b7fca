/* SPDX-License-Identifier: Apache-2.0 */
/* Small text files of a configuration, secrets among them: no copy of the content is left behind.
 */
#pragma once

#include "common/base/error.h"

#include <stddef.h>

/* The whole regular file (links are followed, as mounted configuration needs it), NUL-terminated,
 * owned by the caller. ERROR_NOT_FOUND where there is none; ERROR_TOO_LARGE beyond max_bytes;
 * ERROR_INVALID where it cannot be read, is no regular file or has a NUL inside. */
int file_read_text(const char *path, size_t max_bytes, char **ret, Error **error);
