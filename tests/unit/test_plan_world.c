/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/plan_fixture.h"

#include "controller/candidates.h"

#define MEMBER_META(pool_uid)                                                                      \
    ",'labels':{'agents.x-k8s.io/warm-pool-sandbox':'x','agents.x-k8s.io/"                         \
    "sandbox-template-ref-hash'"                                                                   \
    ":'y'},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"          \
    "'SandboxWarmPool','name':'p','uid':'" pool_uid "','controller':true}]"
#define READY_ON(node)                                                                             \
    "'podIPs':['10.0.0.1'],'nodeName':'" node "','conditions':[{'type':'Ready','status':'True'}]"

static Obj *put_claim(Fixture *fx, const char *uid, uint64_t rv)
{
    return fx_put(fx, OBJ_CLAIM, "c", uid, rv, "", "'warmPoolRef':{'name':'p'}", "");
}

static void test_older_versions_change_nothing(void **state)
{
    Fixture *fx = *state;

    put_claim(fx, "u1", 10);
    put_claim(fx, "u1", 9);
    assert_int_equal(world_claim(fx->world, "ns", "c")->obj.rv, 10);
    put_claim(fx, "u0", 5); /* a namesake of the past */
    assert_str(world_claim(fx->world, "ns", "c")->obj.uid, "u1");
    put_claim(fx, "u2", 11);
    assert_str(world_claim(fx->world, "ns", "c")->obj.uid, "u2");
}

static void test_deletion_of_a_namesake_is_ignored(void **state)
{
    Fixture *fx = *state;

    put_claim(fx, "u2", 11);
    world_remove(fx->world, OBJ_CLAIM, "ns", "c", "u1", 12, fx->now_ms);
    assert_non_null(world_claim(fx->world, "ns", "c"));
    world_remove(fx->world, OBJ_CLAIM, "ns", "c", "u2", 12, fx->now_ms);
    assert_null(world_claim(fx->world, "ns", "c"));
}

static void test_gone_is_not_brought_back_by_late_events(void **state)
{
    Fixture *fx = *state;

    put_claim(fx, "u1", 10);
    world_mark_gone(fx->world, OBJ_CLAIM, "ns", "c", "other", fx->now_ms);
    assert_non_null(world_claim(fx->world, "ns", "c"));
    world_mark_gone(fx->world, OBJ_CLAIM, "ns", "c", "u1", fx->now_ms);
    assert_null(world_claim(fx->world, "ns", "c"));
    put_claim(fx, "u1", 12);
    assert_null(world_claim(fx->world, "ns", "c"));
    put_claim(fx, "u2", 13); /* but a new one with the name counts */
    assert_non_null(world_claim(fx->world, "ns", "c"));
}

static void test_relist_drops_what_it_does_not_mention(void **state)
{
    Fixture *fx = *state;
    unsigned epoch;

    fx_put(fx, OBJ_CLAIM, "kept", "k", 3, "", "", "");
    fx_put(fx, OBJ_CLAIM, "vanished", "v", 4, "", "", "");
    epoch = world_relist_begin(fx->world, OBJ_CLAIM);
    fx_put(fx, OBJ_CLAIM, "kept", "k", 3, "", "", "");
    fx_put(fx, OBJ_CLAIM, "written-since", "w", 25, "", "", "");
    /* made by our own write after the list was taken */
    world_relist_end(fx->world, OBJ_CLAIM, NULL, epoch, 20, fx->now_ms);
    assert_non_null(world_claim(fx->world, "ns", "kept"));
    assert_null(world_claim(fx->world, "ns", "vanished"));
    assert_non_null(world_claim(fx->world, "ns", "written-since"));
    epoch = world_relist_begin(fx->world, OBJ_CLAIM);
    world_relist_end(fx->world, OBJ_CLAIM, "elsewhere", epoch, 100, fx->now_ms);
    assert_non_null(world_claim(fx->world, "ns", "kept"));
}

static void test_children_follow_the_controller(void **state)
{
    Fixture *fx = *state;
    WorldIter it;

    fx_put(fx, OBJ_SANDBOX, "s", "u1", 1, MEMBER_META("pool-uid"), "", "");
    it = world_children(fx->world, "pool-uid");
    assert_non_null(world_next(&it));
    assert_null(world_next(&it));
    fx_put(fx, OBJ_SANDBOX, "s", "u1", 2, "", "", "");
    it = world_children(fx->world, "pool-uid");
    assert_null(world_next(&it));
}

static void test_pick_spreads_over_nodes_then_takes_the_oldest(void **state)
{
    Fixture *fx = *state;

    fx_put(fx, OBJ_SANDBOX, "a1", "a1", 1, MEMBER_META("pu"), "", READY_ON("n1"));
    fx_put(fx, OBJ_SANDBOX, "b1", "b1", 2, MEMBER_META("pu"), "", READY_ON("n2"));
    fx_put(fx, OBJ_SANDBOX, "b2", "b2", 3, MEMBER_META("pu"), "", READY_ON("n2"));
    assert_int_equal(world_ready_count(fx->world, "pu"), 3);
    assert_str(world_pick_ready(fx->world, "pu", NULL, NULL)->obj.name, "b1");
    world_reserve(fx->world, world_sandbox(fx->world, "ns", "b1"), "claim");
    assert_str(world_pick_ready(fx->world, "pu", NULL, NULL)->obj.name, "a1");
    world_reserve(fx->world, world_sandbox(fx->world, "ns", "b1"), NULL);
    /* it went to the end of its node's queue */
    assert_str(world_pick_ready(fx->world, "pu", NULL, NULL)->obj.name, "b2");
}

static void test_a_member_keeps_its_place_through_updates(void **state)
{
    Fixture *fx = *state;

    fx_put(fx, OBJ_SANDBOX, "a", "a", 1, MEMBER_META("pu"), "", READY_ON("n"));
    fx_put(fx, OBJ_SANDBOX, "b", "b", 2, MEMBER_META("pu"), "", READY_ON("n"));
    fx_put(fx, OBJ_SANDBOX, "a", "a", 3, MEMBER_META("pu"), "'service':false", READY_ON("n"));
    assert_str(world_pick_ready(fx->world, "pu", NULL, NULL)->obj.name, "a");
}

static void test_what_cannot_be_handed_out(void **state)
{
    static const struct {
        const char *name, *meta, *spec, *status;
    } cases[] = {
        {"other-pool", MEMBER_META("other"), "", READY_ON("n")},
        {"unready", MEMBER_META("pu"), "", "'podIPs':['1'],'conditions':[]"},
        {"no-address", MEMBER_META("pu"), "", "'conditions':[{'type':'Ready','status':'True'}]"},
        {"deleting", ",'deletionTimestamp':'2026-09-21T14:13:00Z'" MEMBER_META("pu"), "",
         READY_ON("n")},
        {"suspended", MEMBER_META("pu"), "'operatingMode':'Suspended'", READY_ON("n")},
        {"unlabelled",
         ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"
         "'SandboxWarmPool','name':'p','uid':'pu','controller':true}]",
         "", READY_ON("n")},
        {"other-group",
         ",'labels':{'agents.x-k8s.io/warm-pool-sandbox':'x','agents.x-k8s.io/"
         "sandbox-template-ref-hash':'y'},'ownerReferences':[{'apiVersion':'evil.io/v1','kind':"
         "'SandboxWarmPool','name':'p','uid':'pu','controller':true}]",
         "", READY_ON("n")},
        {"not-controller",
         ",'labels':{'agents.x-k8s.io/warm-pool-sandbox':'x','agents.x-k8s.io/"
         "sandbox-template-ref-hash':'y'},'ownerReferences':[{'apiVersion':"
         "'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxWarmPool','name':'p','uid':'pu'}]",
         "", READY_ON("n")},
    };
    Fixture *fx = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fx_put(fx, OBJ_SANDBOX, cases[i].name, cases[i].name, i + 1, cases[i].meta, cases[i].spec,
               cases[i].status);
        if (world_pick_ready(fx->world, "pu", NULL, NULL))
            fail_msg("%s was picked", cases[i].name);
    }
    fx_put(fx, OBJ_SANDBOX, "in-flight", "i", 50, MEMBER_META("pu"), "", READY_ON("n"));
    assert_non_null(world_pick_ready(fx->world, "pu", NULL, NULL));
    world_inflight(fx->world, &world_sandbox(fx->world, "ns", "in-flight")->obj, +1);
    assert_null(world_pick_ready(fx->world, "pu", NULL, NULL));
}

static void test_older_api_version_of_an_owner_counts(void **state)
{
    Fixture *fx = *state;

    fx_put(fx, OBJ_SANDBOX, "s", "s", 1,
           ",'labels':{'agents.x-k8s.io/warm-pool-sandbox':'x','agents.x-k8s.io/"
           "sandbox-template-ref-hash':'y'},'ownerReferences':[{'apiVersion':"
           "'extensions.agents.x-k8s.io/v1alpha1','kind':'SandboxWarmPool','name':'p','uid':'pu',"
           "'controller':true}]",
           "", READY_ON("n"));
    assert_non_null(world_pick_ready(fx->world, "pu", NULL, NULL));
}

static void test_memo_survives_a_new_version_and_not_a_namesake(void **state)
{
    Fixture *fx = *state;
    Claim *c = obj_claim(put_claim(fx, "u1", 1));

    world_set_trouble(fx->world, &c->obj, "quota", NULL, FX_NOW + 5);
    world_set_attempt(fx->world, c, "s", fx->now_ms);
    world_set_waiting(fx->world, c, true);
    fx->now_ms += 1000;
    c = obj_claim(put_claim(fx, "u1", 2));
    assert_str(c->obj.trouble->message, "quota");
    assert_str(c->attempt, "s");
    assert_int_equal(c->first_seen_ms, FX_NOW);
    assert_ptr_equal(world_first_waiter(fx->world, "ns", "p"), c);
    c = obj_claim(put_claim(fx, "u2", 3));
    assert_null(c->obj.trouble);
    assert_null(c->attempt);
    assert_int_equal(c->first_seen_ms, FX_NOW + 1000);
    assert_null(world_first_waiter(fx->world, "ns", "p"));
}

static void test_activity_is_clamped_when_it_is_first_seen(void **state)
{
    static const char meta[] = ",'annotations':{'k8s-agent-sandbox-mcp/idle-timeout-seconds':'60',"
                               "'k8s-agent-sandbox-mcp/last-activity':'2030-01-01T00:00:00Z',"
                               "'k8s-agent-sandbox-mcp/exec-lease':'2030-01-01T00:00:00Z'}";
    Fixture *fx = *state;
    const Claim *c = obj_claim(fx_put(fx, OBJ_CLAIM, "c", "u", 1, meta, "", ""));

    assert_int_equal(c->activity_ms, FX_NOW);
    assert_int_equal(c->lease_ms, FX_NOW + 660 * 1000);
    fx->now_ms += 50000;
    c = obj_claim(fx_put(fx, OBJ_CLAIM, "c", "u", 2, meta, "", ""));
    assert_int_equal(c->activity_ms, FX_NOW);
    assert_int_equal(c->lease_ms, FX_NOW + 660 * 1000);
}

static unsigned changes;
static void count_change(_unused_ const Obj *before, _unused_ const Obj *after,
                         _unused_ void *userdata)
{
    changes++;
}

static void test_the_observer_hears_news_only(void **state)
{
    Fixture *fx = *state;

    changes = 0;
    world_set_observer(fx->world, count_change, NULL);
    put_claim(fx, "u1", 5);
    put_claim(fx, "u1", 5);
    put_claim(fx, "u1", 4);
    assert_int_equal(changes, 1);
    world_mark_gone(fx->world, OBJ_CLAIM, "ns", "c", "u1", fx->now_ms);
    world_remove(fx->world, OBJ_CLAIM, "ns", "c", "u1", 6, fx->now_ms);
    assert_int_equal(changes, 2);
    world_set_observer(fx->world, NULL, NULL);
}

static void test_many_objects_come_and_go(void **state)
{
    Fixture *fx = *state;
    size_t strings = interner_size(world_interner(fx->world));

    for (int i = 0; i < 3000; i++) {
        _cleanup_free_ char *name = xasprintf("s%d", i);
        fx_put(fx, OBJ_SANDBOX, name, name, (uint64_t)i + 1, MEMBER_META("pu"), "",
               i % 2 ? READY_ON("n") : "");
    }
    assert_int_equal(world_count(fx->world, OBJ_SANDBOX), 3000);
    assert_int_equal(world_ready_count(fx->world, "pu"), 1500);
    for (int i = 0; i < 3000; i++) {
        _cleanup_free_ char *name = xasprintf("s%d", i);
        world_remove(fx->world, OBJ_SANDBOX, "ns", name, NULL, 100000, fx->now_ms);
        assert_null(world_sandbox(fx->world, "ns", name));
    }
    assert_int_equal(world_count(fx->world, OBJ_SANDBOX), 0);
    assert_int_equal(interner_size(world_interner(fx->world)), strings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_older_versions_change_nothing),
        FX_TEST(test_deletion_of_a_namesake_is_ignored),
        FX_TEST(test_gone_is_not_brought_back_by_late_events),
        FX_TEST(test_relist_drops_what_it_does_not_mention),
        FX_TEST(test_children_follow_the_controller),
        FX_TEST(test_pick_spreads_over_nodes_then_takes_the_oldest),
        FX_TEST(test_a_member_keeps_its_place_through_updates),
        FX_TEST(test_what_cannot_be_handed_out),
        FX_TEST(test_older_api_version_of_an_owner_counts),
        FX_TEST(test_memo_survives_a_new_version_and_not_a_namesake),
        FX_TEST(test_activity_is_clamped_when_it_is_first_seen),
        FX_TEST(test_the_observer_hears_news_only),
        FX_TEST(test_many_objects_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
