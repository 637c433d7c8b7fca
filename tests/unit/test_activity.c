/* SPDX-License-Identifier: Apache-2.0 */
/* When a use of a sandbox is written down. */
#include "gateway/sandbox/activity.h"
#include "tests/unit/cmocka_all.h"

#define NOW 1000000000
#define S 1000

static void test_without_idle_timeout_never(_unused_ void **state)
{
    ClaimModel claim = {0};

    assert_false(activity_plan(&claim, NOW, NOW + 60 * S).write);
    assert_false(activity_plan(&claim, NOW, 0).write);
}

static void test_first_use(_unused_ void **state)
{
    ClaimModel claim = {.idle_timeout_s = 600};
    ActivityPlan plan = activity_plan(&claim, NOW, NOW + 60 * S);

    assert_true(plan.write);
    assert_int_equal(plan.last_activity_ms, NOW);
    assert_int_equal(plan.exec_lease_ms, NOW + 120 * S);
    plan = activity_plan(&claim, NOW, 0);
    assert_true(plan.write);
    assert_int_equal(plan.exec_lease_ms, 0);
}

/* 100 commands in 30 seconds, each with the default time-out: one patch. */
static void test_busy_half_minute_is_one_patch(_unused_ void **state)
{
    ClaimModel claim = {.idle_timeout_s = 60};
    int writes = 0;

    for (int i = 0; i < 100; i++) {
        int64_t start = NOW + i * 300;
        ActivityPlan plan = activity_plan(&claim, start, start + 60 * S);

        if (plan.write) {
            writes++;
            claim.last_activity_ms = plan.last_activity_ms;
            claim.exec_lease_ms = plan.exec_lease_ms;
        }
        assert_true(claim.exec_lease_ms >= start + 60 * S); /* held to the command's end */
        writes += activity_plan(&claim, start + 100, 0).write;
    }
    assert_int_equal(writes, 1);
}

static void test_period(_unused_ void **state)
{
    ClaimModel claim = {.idle_timeout_s = 60, .last_activity_ms = NOW};
    ClaimModel slow = {.idle_timeout_s = 3600, .last_activity_ms = NOW};

    assert_false(activity_plan(&claim, NOW + 60 * S - 1, 0).write);
    assert_true(activity_plan(&claim, NOW + 60 * S, 0).write);
    assert_false(activity_plan(&slow, NOW + 900 * S - 1, 0).write);
    assert_true(activity_plan(&slow, NOW + 900 * S, 0).write);
}

static void test_longer_command_extends_the_hold(_unused_ void **state)
{
    ClaimModel claim = {
        .idle_timeout_s = 600, .last_activity_ms = NOW, .exec_lease_ms = NOW + 120 * S};
    ActivityPlan plan;

    assert_false(activity_plan(&claim, NOW + S, NOW + 120 * S).write);
    plan = activity_plan(&claim, NOW + S, NOW + 121 * S);
    assert_true(plan.write);
    assert_int_equal(plan.exec_lease_ms, NOW + 181 * S);
}

static void test_hold_is_bounded(_unused_ void **state)
{
    ClaimModel claim = {.idle_timeout_s = 600};
    ActivityPlan plan = activity_plan(&claim, NOW, NOW + 10000 * S);

    assert_int_equal(plan.exec_lease_ms, NOW + ACTIVITY_LEASE_MAX_MS);
}

static void test_hold_is_never_shortened(_unused_ void **state)
{
    ClaimModel claim = {.idle_timeout_s = 60, .exec_lease_ms = NOW + 600 * S};
    ActivityPlan plan = activity_plan(&claim, NOW, NOW + 10 * S);

    assert_true(plan.write); /* for the activity */
    assert_int_equal(plan.exec_lease_ms, NOW + 600 * S);
}

static void test_stamp_from_the_future_does_not_silence(_unused_ void **state)
{
    ClaimModel claim = {.idle_timeout_s = 60, .last_activity_ms = NOW + 86400 * S};

    assert_true(activity_plan(&claim, NOW, 0).write);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_idle_timeout_never),
        cmocka_unit_test(test_first_use),
        cmocka_unit_test(test_busy_half_minute_is_one_patch),
        cmocka_unit_test(test_period),
        cmocka_unit_test(test_longer_command_extends_the_hold),
        cmocka_unit_test(test_hold_is_bounded),
        cmocka_unit_test(test_hold_is_never_shortened),
        cmocka_unit_test(test_stamp_from_the_future_does_not_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
