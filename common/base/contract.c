/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/contract.h"

#include <stdio.h>

void contract_failed(const char *expr, const char *file, int line)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "fatal: %s:%d: contract violated: %s\n", file, line, expr);

    if (n > 0)
        (void)!write(STDERR_FILENO, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
    abort();
}
