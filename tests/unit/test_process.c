/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/cleanup.h"
#include "common/base/process.h"
#include "tests/unit/cmocka_all.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static void test_harden(_unused_ void **state)
{
    struct rlimit core = {1, 1};

    process_harden();
    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    assert_int_equal(core.rlim_cur, 0);
    assert_int_equal(core.rlim_max, 0);
    assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_harden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
