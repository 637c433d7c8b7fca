/* SPDX-License-Identifier: Apache-2.0 */
/* What loses its owner before our eyes follows it soon, though the garbage collector may be slow.
 */
#include "tests/unit/plan_fixture.h"

#define OF_CLAIM                                                                                   \
    "{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxClaim','name':'c',"         \
    "'uid':'cu','controller':true}"
#define OF_SANDBOX                                                                                 \
    "{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':'s','uid':'su',"              \
    "'controller':true}"
#define OWNED(refs) ",'ownerReferences':[" refs "]"
#define DELAY 2000 /* what the garbage collector is given */
#define TRACKED ",'labels':{'" LABEL_NAME_HASH "':'x'}"

static void put_claim(Fixture *fx)
{
    fx_put(fx, OBJ_CLAIM, "c", "cu", 1, "", "'warmPoolRef':{'name':'p'}", "");
}

static Obj *put_sandbox(Fixture *fx, uint64_t rv, const char *meta)
{
    return fx_put(fx, OBJ_SANDBOX, "s", "su", rv, meta, "", "");
}

static void claim_goes(Fixture *fx)
{
    world_remove(fx->world, OBJ_CLAIM, "ns", "c", "cu", 100, fx->now_ms);
}

/* The sandbox in version 7, seen to lose its claim. */
static void bereave(Fixture *fx)
{
    put_claim(fx);
    put_sandbox(fx, 7, OWNED(OF_CLAIM));
    claim_goes(fx);
}

static void assert_waits(Fixture *fx)
{
    fx_plan(fx, KEY_SANDBOX, "s");
    assert_int_equal(fx->plan.n_ops, 0);
    assert_int_equal(fx->plan.wake_ms, FX_NOW + DELAY);
}

static void assert_followed(Fixture *fx, ObjKind kind, const char *uid, const char *rv)
{
    fx_plan(fx, KEY_SANDBOX, "s");
    const JsonValue *body = fx_body(fx, "owner-gone");
    assert_int_equal(fx->plan.n_ops, 1);
    assert_int_equal(fx->plan.n_events, 0);
    assert_int_equal(fx->plan.ops[0].verb, PLAN_DELETE);
    assert_int_equal(fx->plan.ops[0].kind, kind);
    assert_str(json_str(body, "preconditions.uid"), uid);
    assert_str(json_str(body, "preconditions.resourceVersion"), rv);
}

static void assert_left(Fixture *fx)
{
    fx_plan(fx, KEY_SANDBOX, "s");
    assert_null(fx_op(fx, "owner-gone"));
}

static void test_sandbox_follows_its_claim(void **state)
{
    Fixture *fx = *state;

    put_claim(fx);
    put_sandbox(fx, 7, OWNED(OF_CLAIM));
    assert_left(fx);
    claim_goes(fx);
    assert_waits(fx);
    fx->now_ms += DELAY;
    assert_followed(fx, OBJ_SANDBOX, "su", "7");
    put_sandbox(fx, 8, OWNED(OF_CLAIM)); /* a status that was on its way */
    assert_followed(fx, OBJ_SANDBOX, "su", "8");
}

static void test_pod_follows_its_sandbox(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 2, "");
    fx_put(fx, OBJ_POD, "s", "pu", 3, OWNED(OF_SANDBOX) TRACKED, "", "");
    world_mark_gone(fx->world, OBJ_SANDBOX, "ns", "s", "su", fx->now_ms);
    assert_waits(fx);
    fx->now_ms += DELAY;
    assert_followed(fx, OBJ_POD, "pu", "3");
}

/* The garbage collector has had its turn. */
static void test_a_chain_waits_once(void **state)
{
    Fixture *fx = *state;

    put_claim(fx);
    put_sandbox(fx, 7, OWNED(OF_CLAIM));
    fx_put(fx, OBJ_POD, "s", "pu", 8, OWNED(OF_SANDBOX) TRACKED, "", "");
    claim_goes(fx);
    fx->now_ms += DELAY;
    assert_followed(fx, OBJ_SANDBOX, "su", "7");
    world_mark_gone(fx->world, OBJ_SANDBOX, "ns", "s", "su", fx->now_ms);
    assert_followed(fx, OBJ_POD, "pu", "8");
}

/* Nobody waits longer because the clock was put back. */
static void test_a_clock_put_back(void **state)
{
    Fixture *fx = *state;

    bereave(fx);
    fx->now_ms -= 60000;
    assert_followed(fx, OBJ_SANDBOX, "su", "7");
}

/* Before the new Sandbox may have the name of its Pod. */
static void test_pod_of_a_namesake_goes_first(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 2, "");
    fx_put(fx, OBJ_POD, "s", "pu", 3, OWNED(OF_SANDBOX) TRACKED, "", "");
    fx_put(fx, OBJ_SANDBOX, "s", "su2", 9, "", "", "");
    assert_waits(fx);
    fx->now_ms += DELAY;
    assert_followed(fx, OBJ_POD, "pu", "3");
}

/* A Pod that somebody does not let go keeps no Sandbox beyond its time. */
static void test_the_end_of_a_namesake_comes_first(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 2, "");
    fx_put(fx, OBJ_POD, "s", "pu", 3, OWNED(OF_SANDBOX) TRACKED, "", "");
    fx_put(fx, OBJ_SANDBOX, "s", "su2", 9, "", "'shutdownTime':'2026-09-21T14:13:00Z'", "");
    fx->now_ms += DELAY;
    fx_plan(fx, KEY_SANDBOX, "s");
    assert_non_null(fx_op(fx, "sandbox-status"));
    assert_null(fx_op(fx, "owner-gone"));
}

static void test_a_list_without_the_owner_counts(void **state)
{
    Fixture *fx = *state;

    put_claim(fx);
    put_sandbox(fx, 7, OWNED(OF_CLAIM));
    unsigned epoch = world_relist_begin(fx->world, OBJ_CLAIM);
    world_relist_end(fx->world, OBJ_CLAIM, NULL, epoch, 50, fx->now_ms);
    fx->now_ms += DELAY;
    assert_followed(fx, OBJ_SANDBOX, "su", "7");
}

/* An owner that was never seen may be one that is not seen yet. */
static void test_an_unknown_owner_is_not_gone(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 7, OWNED(OF_CLAIM));
    assert_left(fx);
    claim_goes(fx);
    assert_left(fx);
}

static void test_another_owner_keeps_it(void **state)
{
    Fixture *fx = *state;

    put_claim(fx);
    put_sandbox(fx, 7,
                OWNED(OF_CLAIM ",{'apiVersion':'v1','kind':'ConfigMap','name':'m','uid':'mu'}"));
    claim_goes(fx);
    fx->now_ms += DELAY;
    assert_left(fx);
}

/* --cascade=orphan: the reference goes first, whichever of both is heard of first. */
static void test_without_the_reference_it_stays(void **state)
{
    Fixture *fx = *state;

    bereave(fx);
    put_sandbox(fx, 8, "");
    fx->now_ms += DELAY;
    assert_left(fx);
}

static void test_a_new_owner_keeps_it(void **state)
{
    Fixture *fx = *state;

    bereave(fx);
    put_sandbox(fx, 8,
                OWNED("{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxClaim',"
                      "'name':'d','uid':'du','controller':true}"));
    fx->now_ms += DELAY;
    assert_left(fx);
}

static void test_an_owner_elsewhere_is_none(void **state)
{
    Fixture *fx = *state;
    _cleanup_json_ JsonValue *doc =
        fx_json("{'metadata':{'namespace':'other','name':'c','uid':'cu','resourceVersion':'1'},"
                "'spec':{'warmPoolRef':{'name':'p'}}}");
    Obj *view = NULL;

    assert_int_equal(obj_parse(world_interner(fx->world), OBJ_CLAIM, doc, fx->now_ms, &view, NULL),
                     0);
    (void)world_apply(fx->world, view, fx->now_ms);
    put_sandbox(fx, 7, OWNED(OF_CLAIM));
    world_remove(fx->world, OBJ_CLAIM, "other", "c", "cu", 100, fx->now_ms);
    fx->now_ms += DELAY;
    assert_left(fx);
}

/* Pods are watched by a label: one that leaves the World may only have lost that. */
static void test_a_pod_that_is_not_seen_any_more_may_live(void **state)
{
    Fixture *fx = *state;

    fx_put(fx, OBJ_POD, "agent", "au", 1, TRACKED, "", "");
    put_sandbox(fx, 7,
                OWNED("{'apiVersion':'v1','kind':'Pod','name':'agent','uid':'au',"
                      "'controller':true}"));
    world_remove(fx->world, OBJ_POD, "ns", "agent", "au", 8, fx->now_ms);
    fx->now_ms += DELAY;
    assert_left(fx);
}

static void test_what_is_going_or_written_to_is_waited_for(void **state)
{
    Fixture *fx = *state;
    Obj *s;

    put_claim(fx);
    s = put_sandbox(fx, 7, OWNED(OF_CLAIM));
    claim_goes(fx);
    fx->now_ms += DELAY;
    world_inflight(fx->world, s, +1);
    assert_left(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    assert_int_equal(fx->plan.wake_ms, fx->now_ms + DELAY);
    world_inflight(fx->world, s, -1);
    assert_followed(fx, OBJ_SANDBOX, "su", "7");
    put_sandbox(fx, 8, ",'deletionTimestamp':'2026-09-21T14:13:00Z'" OWNED(OF_CLAIM));
    assert_left(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_sandbox_follows_its_claim),
        FX_TEST(test_pod_follows_its_sandbox),
        FX_TEST(test_a_chain_waits_once),
        FX_TEST(test_a_clock_put_back),
        FX_TEST(test_pod_of_a_namesake_goes_first),
        FX_TEST(test_the_end_of_a_namesake_comes_first),
        FX_TEST(test_a_list_without_the_owner_counts),
        FX_TEST(test_an_unknown_owner_is_not_gone),
        FX_TEST(test_another_owner_keeps_it),
        FX_TEST(test_without_the_reference_it_stays),
        FX_TEST(test_a_new_owner_keeps_it),
        FX_TEST(test_an_owner_elsewhere_is_none),
        FX_TEST(test_a_pod_that_is_not_seen_any_more_may_live),
        FX_TEST(test_what_is_going_or_written_to_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
