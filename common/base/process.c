/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/process.h"

#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
static const bool has_leak_checker = true;
#else
static const bool has_leak_checker = false;
#endif

void process_harden(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!has_leak_checker)
        (void)prctl(PR_SET_DUMPABLE, 0);
}
