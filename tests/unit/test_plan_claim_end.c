/* SPDX-License-Identifier: Apache-2.0 */
/* How claims end: deadlines, policies, idleness. */
#include "tests/unit/plan_fixture.h"

#define S(n) (FX_NOW + (n)*1000)
#define OF_CLAIM                                                                                   \
    ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"               \
    "'SandboxClaim','name':'c','uid':'cu','controller':true}]"
#define MARKED                                                                                     \
    "'sandbox':{'name':'s'},'conditions':[{'type':'Ready','status':'False','reason':"              \
    "'ClaimExpired','message':'Claim expired. Sandbox cleanup initiated.','lastTransitionTime':"   \
    "'2026-09-21T14:13:20Z','observedGeneration':1}]"
#define PAST "'shutdownTime':'2026-09-21T14:13:20Z'"
#define OWNER ",'labels':{'" LABEL_SESSION_ID "':'abc'}"

static Claim *put_claim(Fixture *fx, uint64_t rv, const char *meta, const char *lifecycle,
                        const char *status)
{
    _cleanup_free_ char *spec = xasprintf("'warmPoolRef':{'name':'p'},'lifecycle':{%s}", lifecycle);

    return obj_claim(fx_put(fx, OBJ_CLAIM, "c", "cu", rv, meta, spec, status));
}

static void put_sandbox(Fixture *fx, uint64_t rv, const char *meta)
{
    fx_put(fx, OBJ_SANDBOX, "s", "s", rv, meta, "", "");
}

static void plan(Fixture *fx)
{
    fx_plan(fx, KEY_CLAIM, "c");
}

static void test_first_the_status_says_so(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b, *c;

    put_claim(fx, 1, "", PAST ",'shutdownPolicy':'Delete'", "");
    fx->now_ms = S(0) - 1;
    fx_live(fx, OBJ_POOL, "p", NULL);
    plan(fx);
    assert_null(fx_op(fx, "claim-expire"));
    assert_int_equal(fx->plan.wake_ms, S(0));
    fx->now_ms = S(0);
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 1);
    b = fx_body(fx, "claim-status");
    c = fx_condition(b, "Ready");
    assert_str(json_str(c, "reason"), "ClaimExpired");
    assert_str(json_str(c, "message"), "Claim expired. Sandbox cleanup initiated.");
    assert_str(fx_event(fx, "ClaimExpired")->action, "Claim Expired");
    assert_str(fx_event(fx, "ClaimExpired")->message,
               "Claim expired: its shutdownTime has passed (2026-09-21T14:13:20Z)");
}

static void test_then_it_is_deleted(void **state)
{
    static const struct {
        const char *policy, *propagation;
    } cases[] = {{"Delete", "Background"}, {"DeleteForeground", "Foreground"}};
    Fixture *fx = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *lifecycle = xasprintf(PAST ",'shutdownPolicy':'%s'", cases[i].policy);
        const JsonValue *b;
        const PlanEvent *e;
        put_claim(fx, i + 1, OWNER, lifecycle, MARKED);
        plan(fx);
        assert_int_equal(fx->plan.n_ops, 1);
        b = fx_body(fx, "claim-expire");
        assert_str(json_str(b, "propagationPolicy"), cases[i].propagation);
        assert_str(json_str(b, "preconditions.uid"), "cu");
        assert_non_null(json_str(b, "preconditions.resourceVersion"));
        e = fx_event(fx, "ClaimExpired");
        assert_str(e->action, "Deleting");
        assert_non_null(strstr(e->message, "Deleting Claim (ShutdownPolicy=Delete"));
        assert_non_null(strstr(e->annotations_json, "\"" ANNOTATION_OWNER_HASH "\":\"abc\""));
        assert_non_null(strstr(e->annotations_json, "shutdownTime"));
    }
}

static void test_retain_deletes_the_adopted_sandbox(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_sandbox(fx, 1, OF_CLAIM); /* not named like the claim */
    put_claim(fx, 2, "", PAST, MARKED);
    plan(fx);
    assert_str(json_str(fx_body(fx, "claim-expire-sandbox"), "preconditions.uid"), "s");
    assert_null(fx_op(fx, "claim-status")); /* its data stays while it goes */
    assert_null(fx_op(fx, "claim-expire"));
    world_remove(fx->world, OBJ_SANDBOX, "ns", "s", "s", 3, fx->now_ms);
    plan(fx);
    b = fx_body(fx, "claim-status");
    assert_true(json_has(json_get(b, "status"), "sandbox") && !json_path(b, "status.sandbox"));
    put_claim(fx, 4, "", PAST,
              "'conditions':[{'type':'Ready','status':'False','reason':'ClaimExpired','message':"
              "'kept','lastTransitionTime':'2026-09-21T14:13:20Z','observedGeneration':1}]");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    assert_int_equal(fx->plan.wake_ms, TIME_NONE); /* no spinning */
}

static void test_retain_spares_what_is_not_its_own(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_sandbox(fx, 1, "");
    put_claim(fx, 2, "", PAST, MARKED);
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 1);
    b = fx_body(fx, "claim-status");
    assert_str(json_str(fx_condition(b, "Ready"), "message"),
               "Claim expired. sandbox \"s\" is not controlled by claim \"c\"; deletion skipped.");
    assert_true(json_has(json_get(b, "status"), "sandbox") && !json_path(b, "status.sandbox"));
}

#define FINISHED(time)                                                                             \
    "'conditions':[{'type':'Finished','status':'True','reason':'PodSucceeded',"                    \
    "'lastTransitionTime':'" time "'}]"

static void test_deadlines(void **state)
{
    static const struct {
        const char *meta, *lifecycle, *status;
        int64_t wake; /* TIME_NONE: never; 0: now */
    } cases[] = {
        {"", "", "", TIME_NONE},
        {"", "'shutdownTime':'2026-09-21T14:13:25Z'", "", S(5)},
        {"", "'shutdownTime':'9999-12-31T23:59:59Z'", "", INT64_C(253402300799000)},
        /* the time to live counts from the end of the Pod, not from creation */
        {"", "'ttlSecondsAfterFinished':20", "", TIME_NONE},
        {"", "'ttlSecondsAfterFinished':20", FINISHED("2026-09-21T14:13:15Z"), S(15)},
        {"", "'ttlSecondsAfterFinished':0", FINISHED("2026-09-21T14:13:20Z"), 0},
        {"", "'ttlSecondsAfterFinished':2147483647", FINISHED("2026-09-21T14:13:20Z"),
         S(INT64_C(2147483647))},
        {"", "'ttlSecondsAfterFinished':20,'shutdownTime':'2026-09-21T14:13:25Z'",
         FINISHED("2026-09-21T14:13:19Z"), S(5)},
        {"", "'ttlSecondsAfterFinished':20",
         "'conditions':[{'type':'Finished','status':'False','lastTransitionTime':"
         "'2026-09-21T14:13:15Z'}]",
         TIME_NONE},
        /* idle: from creation (20 s ago), or the last activity; a running command holds */
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60'}", "", "", S(40)},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'15'}", "", "", 0},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60','" ANNOTATION_FIRST_READY
         "':'2026-09-21T14:13:10.5Z'}",
         "", "", S(50) + 500},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60','" ANNOTATION_LAST_ACTIVITY
         "':'2026-09-21T14:13:18Z'}",
         "", "", S(58)},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60','" ANNOTATION_LAST_ACTIVITY
         "':'2026-09-21T14:13:18Z','" ANNOTATION_EXEC_LEASE "':'2026-09-21T14:15:20Z'}",
         "", "", S(120)},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60','" ANNOTATION_LAST_ACTIVITY
         "':'2026-09-21T14:13:18Z','" ANNOTATION_EXEC_LEASE "':'2026-09-21T14:13:30Z'}",
         "", "", S(58)},
        /* wishes are clamped */
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60','" ANNOTATION_LAST_ACTIVITY
         "':'2030-01-01T00:00:00Z'}",
         "", "", S(60)},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60','" ANNOTATION_EXEC_LEASE
         "':'2030-01-01T00:00:00Z'}",
         "", "", S(660)},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'60','" ANNOTATION_FIRST_READY
         "':'2030-01-01T00:00:00Z'}",
         "", "", S(40)},
        /* and what is no number is no time-out */
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'soon'}", "", "", TIME_NONE},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'-1'}", "", "", TIME_NONE},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'0'}", "", "", TIME_NONE},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'99999999999999999999'}", "", "",
         TIME_NONE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        void *one = NULL;
        bool expired;
        (void)fx_setup(&one);
        Fixture *fx = one;
        put_claim(fx, 1, cases[i].meta, cases[i].lifecycle, cases[i].status);
        put_sandbox(fx, 2, OF_CLAIM);
        plan(fx);
        expired = fx_op(fx, "claim-status") &&
                  str_eq(json_str(fx_condition(fx_body(fx, "claim-status"), "Ready"), "reason"),
                         "ClaimExpired");
        if (expired != (cases[i].wake == 0))
            fail_msg("case %zu: expired %d", i, expired);
        if (cases[i].wake != 0 && fx->plan.wake_ms != cases[i].wake)
            fail_msg("case %zu: wakes at %lld", i, (long long)(fx->plan.wake_ms - FX_NOW));
        (void)fx_teardown(&one);
    }
    (void)state;
}

/* Where the claim is kept, this event is all that tells the cause. */
static void test_the_event_names_the_deadline(void **state)
{
    static const struct {
        const char *meta, *lifecycle, *status, *message;
    } cases[] = {
        {"", PAST, "", "Claim expired: its shutdownTime has passed (2026-09-21T14:13:20Z)"},
        {"", "'ttlSecondsAfterFinished':4", FINISHED("2026-09-21T14:13:15Z"),
         "Claim expired: its time to live after finishing is over (2026-09-21T14:13:19Z)"},
        {",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'15'}", "", "",
         "Claim expired: nobody used it for its idle time-out (2026-09-21T14:13:15Z)"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        void *one = NULL;
        (void)fx_setup(&one);
        Fixture *fx = one;
        put_claim(fx, 1, cases[i].meta, cases[i].lifecycle, cases[i].status);
        plan(fx);
        assert_int_equal(fx->plan.n_events, 1);
        assert_str(fx->plan.events[0].reason, "ClaimExpired");
        assert_str(fx->plan.events[0].message, cases[i].message);
        (void)fx_teardown(&one);
    }
    (void)state;
}

static void test_idle_time_has_a_ceiling(void **state)
{
    Fixture *fx = *state;

    fx->config.idle_max_ms = 30 * 1000;
    put_claim(fx, 1,
              ",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'600','" ANNOTATION_LAST_ACTIVITY
              "':'2026-09-21T14:13:20Z'}",
              "", "");
    put_sandbox(fx, 2, OF_CLAIM);
    plan(fx);
    assert_int_equal(fx->plan.wake_ms, S(30));
}

#define IDLE(text) ",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'" text "'}"

static void test_a_wrong_idle_timeout_is_told(void **state)
{
    static const char *const wrong[] = {
        IDLE("soon"), IDLE("-1"),   IDLE("0"), IDLE("1.5"),
        IDLE("15m"),  IDLE(" 900"), IDLE(""),  IDLE("99999999999999999999"),
    };
    static const char x30[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    Fixture *fx = *state;
    _cleanup_free_ char *wide = xasprintf(IDLE("%s%sxxx\xc3\xa4z"), x30, x30);
    _cleanup_free_ char *cut = xasprintf(" is \"%s%sxxx\" and ", x30, x30);
    const PlanEvent *e;

    put_sandbox(fx, 1, OF_CLAIM);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        put_claim(fx, i + 2, wrong[i], "", "");
        plan(fx);
        e = fx_event(fx, "InvalidIdleTimeout");
        if (!e || !e->warning) {
            fail_msg("no warning about %s", wrong[i]);
            return;
        }
        assert_non_null(strstr(e->message, ANNOTATION_IDLE_TIMEOUT));
        assert_non_null(strstr(e->message, "seconds from 1 to 315360000, such as \"900\""));
    }
    put_claim(fx, 20, wide, "", ""); /* a long text is cut between two characters */
    plan(fx);
    e = fx_event(fx, "InvalidIdleTimeout");
    assert_true(e && strstr(e->message, cut));
    fx->config.claim_events = false;
    plan(fx);
    assert_null(fx_event(fx, "InvalidIdleTimeout"));
    fx->config.claim_events = true;
    put_claim(fx, 21, IDLE("315360000"), "", "");
    plan(fx);
    assert_null(fx_event(fx, "InvalidIdleTimeout"));
    put_claim(fx, 22, "", "", "");
    plan(fx);
    assert_null(fx_event(fx, "InvalidIdleTimeout"));
}

static void test_a_moved_deadline_takes_it_back(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 1, OF_CLAIM);
    put_claim(fx, 2, "", "'shutdownTime':'2030-01-01T00:00:00Z','shutdownPolicy':'Delete'", MARKED);
    plan(fx);
    assert_null(fx_op(fx, "claim-expire"));
    assert_str(json_str(fx_condition(fx_body(fx, "claim-status"), "Ready"), "reason"),
               "SandboxNotReady");
}

static void test_quiet_claim_events(void **state)
{
    Fixture *fx = *state;

    fx->config.claim_events = false;
    put_claim(fx, 1, "", PAST ",'shutdownPolicy':'Delete'", MARKED);
    plan(fx);
    assert_non_null(fx_op(fx, "claim-expire"));
    assert_int_equal(fx->plan.n_events, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_first_the_status_says_so),
        FX_TEST(test_then_it_is_deleted),
        FX_TEST(test_retain_deletes_the_adopted_sandbox),
        FX_TEST(test_retain_spares_what_is_not_its_own),
        FX_TEST(test_deadlines),
        FX_TEST(test_the_event_names_the_deadline),
        FX_TEST(test_idle_time_has_a_ceiling),
        FX_TEST(test_a_wrong_idle_timeout_is_told),
        FX_TEST(test_a_moved_deadline_takes_it_back),
        FX_TEST(test_quiet_claim_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
