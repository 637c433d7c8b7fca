/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that ask for more memory than there is: sanitizers return NULL then, as libc does. */
#pragma once

const char *__asan_default_options(void);
const char *__tsan_default_options(void);

__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}
