/* SPDX-License-Identifier: Apache-2.0 */
/* Warm pools, templates with their policy, and orphans. */
#include "tests/unit/plan_fixture.h"

#include "common/base/clock.h"

#define T_HASH "f10c3da3"
#define MEMBER_OF(template_hash)                                                                   \
    ",'labels':{'" LABEL_WARM_POOL "':'P','" LABEL_TEMPLATE_REF "':'" template_hash                \
    "'},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"             \
    "'SandboxWarmPool','name':'p','uid':'pu','controller':true}]"
#define MEMBER MEMBER_OF(T_HASH)
#define SPEC                                                                                       \
    "'podTemplate':{'spec':{'automountServiceAccountToken':false,'dnsPolicy':'None','dnsConfig':{" \
    "'nameservers':['8.8.8.8','1.1.1.1']}}}"
#define READY "'podIPs':['1'],'conditions':[{'type':'Ready','status':'True'}]"

static Pool *put_pool(Fixture *fx, uint64_t rv, const char *spec, const char *status)
{
    _cleanup_free_ char *whole = xasprintf("'sandboxTemplateRef':{'name':'t'}%s", spec);

    return obj_pool(fx_put(fx, OBJ_POOL, "p", "pu", rv, "", whole, status));
}

static void put_template(Fixture *fx, uint64_t rv, const char *extra)
{
    _cleanup_free_ char *spec = xasprintf("'podTemplate':{'spec':{}}%s", extra);

    fx_put(fx, OBJ_TEMPLATE, "t", "tu", rv, ",'labels':{'" LABEL_TEMPLATE_REF "':'" T_HASH "'}",
           spec, "");
}

static Sandbox *put_member(Fixture *fx, const char *name, uint64_t rv, const char *created,
                           const char *status)
{
    Sandbox *s = obj_sandbox(fx_put(fx, OBJ_SANDBOX, name, name, rv, MEMBER, SPEC, status));

    if (created)
        assert_int_equal(time_parse_rfc3339(created, &s->obj.created_ms, NULL), 0);
    return s;
}

static void plan(Fixture *fx)
{
    fx_plan(fx, KEY_POOL, "p");
}

static size_t count(const Fixture *fx, const char *purpose)
{
    size_t n = 0;

    for (size_t i = 0; i < fx->plan.n_ops; i++)
        n += str_eq(fx->plan.ops[i].purpose, purpose);
    return n;
}

static void test_a_pool_is_filled(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b, *labels;

    put_pool(fx, 1, ",'replicas':3", "");
    plan(fx);
    assert_int_equal(count(fx, "pool-create"), 0); /* no template yet */
    put_template(fx, 2, "");
    put_member(fx, "one", 3, NULL, READY);
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 2);
    assert_false(str_eq(fx->plan.ops[0].name, fx->plan.ops[1].name));
    assert_true(str_starts_with(fx->plan.ops[0].name, "p-"));
    b = fx_body(fx, "pool-create");
    assert_str(json_str(b, "metadata.name"), fx->plan.ops[0].name);
    labels = json_path(b, "metadata.labels");
    assert_int_equal(json_object_len(labels), 6);
    assert_str(json_value_str(json_get(labels, LABEL_WARM_POOL)), name_hash_of("p").s);
    assert_str(json_value_str(json_get(labels, LABEL_TEMPLATE_REF)), T_HASH);
    assert_str(json_value_str(json_get(labels, LABEL_CREATED_BY)), "controller");
    assert_str(json_value_str(json_get(labels, LABEL_LAUNCH_TYPE)), "warm");
    assert_str(
        json_value_str(json_get(json_path(b, "metadata.annotations"), ANNOTATION_TEMPLATE_REF)),
        "t");
    assert_str(json_value_str(json_get(json_path(b, "spec.podTemplate.metadata.annotations"),
                                       ANNOTATION_SAFE_TO_EVICT)),
               "true");
    assert_str(json_str(json_array_at(json_path(b, "metadata.ownerReferences"), 0), "kind"),
               "SandboxWarmPool");
    assert_str(json_str(b, "spec.podTemplate.spec.dnsPolicy"), "None");
}

static void test_eviction_annotation(void **state)
{
    Fixture *fx = *state;

    put_pool(fx, 1, "", "");
    fx_put(fx, OBJ_TEMPLATE, "t", "tu", 2, "",
           "'podTemplate':{'metadata':{'annotations':{'" ANNOTATION_SAFE_TO_EVICT
           "':'false'}},'spec':{}}",
           "");
    plan(fx);
    assert_str(json_value_str(json_get(
                   json_path(fx_body(fx, "pool-create"), "spec.podTemplate.metadata.annotations"),
                   ANNOTATION_SAFE_TO_EVICT)),
               "false");
    fx->config.warm_pool_eviction = false;
    put_template(fx, 3, "");
    plan(fx);
    assert_null(
        json_get(json_path(fx_body(fx, "pool-create"), "spec.podTemplate.metadata.annotations"),
                 ANNOTATION_SAFE_TO_EVICT));
}

static void test_terminating_and_pending_members_count(void **state)
{
    Fixture *fx = *state;
    Pool *p = put_pool(fx, 1, ",'replicas':3", "");

    put_template(fx, 2, "");
    fx_put(fx, OBJ_SANDBOX, "going", "going", 3,
           ",'deletionTimestamp':'2026-09-21T14:13:00Z'" MEMBER, SPEC, "");
    put_member(fx, "here", 4, NULL, READY);
    plan(fx);
    assert_int_equal(count(fx, "pool-create"), 1);
    world_pool_pending(fx->world, p, "p-asked", true);
    plan(fx);
    assert_int_equal(count(fx, "pool-create"), 1); /* the same name settles it */
    assert_str(fx->plan.ops[0].name, "p-asked");
}

static void test_foreign_members_do_not_count(void **state)
{
    Fixture *fx = *state;

    put_pool(fx, 1, ",'replicas':1", "");
    put_template(fx, 2, "");
    fx_put(fx, OBJ_SANDBOX, "unowned", "u", 3, ",'labels':{'" LABEL_WARM_POOL "':'P'}", SPEC,
           READY);
    fx_put(fx, OBJ_SANDBOX, "other", "o", 4,
           ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"
           "'SandboxWarmPool','name':'p','uid':'old-pool','controller':true}]",
           SPEC, READY);
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 1);
    assert_non_null(fx_op(fx, "pool-create"));
}

static void test_batches(void **state)
{
    Fixture *fx = *state;

    put_pool(fx, 1, ",'replicas':1000", "");
    put_template(fx, 2, "");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 300);
}

static void test_shrinking_spares_the_best(void **state)
{
    Fixture *fx = *state;
    Sandbox *busy;

    put_pool(fx, 1, ",'replicas':2", "");
    put_template(fx, 2, "");
    put_member(fx, "old", 3, "2026-09-21T14:00:00Z", READY);
    put_member(fx, "new", 4, "2026-09-21T14:10:00Z", READY);
    put_member(fx, "unready", 5, "2026-09-21T14:12:00Z", "");
    busy = put_member(fx, "taken", 6, "2026-09-21T14:12:00Z", "");
    world_reserve(fx->world, busy, "claim");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 2);
    assert_str(fx->plan.ops[0].name, "unready");
    assert_str(fx->plan.ops[1].name, "new");
    const JsonValue *b = fx_body(fx, "pool-shrink");
    assert_str(json_str(b, "preconditions.uid"), "unready");
    assert_str(json_str(b, "preconditions.resourceVersion"), "5"); /* nobody took it meanwhile */
}

static void test_roll_out(void **state)
{
    Fixture *fx = *state;

    put_template(fx, 1, "");
    put_pool(fx, 2, ",'replicas':2", "");
    put_member(fx, "fresh", 3, NULL, READY);
    fx_put(fx, OBJ_SANDBOX, "stale", "stale", 4, MEMBER, "'podTemplate':{'spec':{'x':1}}", READY);
    plan(fx);
    assert_null(fx_op(fx, "pool-rollout")); /* OnReplenish keeps it */
    put_pool(fx, 5, ",'replicas':2,'updateStrategy':{'type':'Recreate'}", "");
    plan(fx);
    assert_int_equal(count(fx, "pool-rollout"), 1);
    assert_str(fx_op(fx, "pool-rollout")->name, "stale");
    /* another template's member is stale although the spec is the same */
    fx_put(fx, OBJ_SANDBOX, "stale", "stale", 6, MEMBER_OF("00000000"), SPEC, READY);
    plan(fx);
    assert_str(fx_op(fx, "pool-rollout")->name, "stale");
    /* without a template nothing is judged */
    world_remove(fx->world, OBJ_TEMPLATE, "ns", "t", "tu", 7, fx->now_ms);
    plan(fx);
    assert_null(fx_op(fx, "pool-rollout"));
}

static void test_stuck_members(void **state)
{
    Fixture *fx = *state;

    put_template(fx, 1, "");
    put_pool(fx, 2, ",'replicas':1", "");
    put_member(fx, "m", 3, "2026-09-21T14:10:00Z", "");
    plan(fx);
    assert_null(fx_op(fx, "pool-stuck"));
    assert_int_equal(fx->plan.wake_ms, FX_NOW + 100 * 1000 + 1);
    fx->now_ms += 100 * 1000 + 1;
    plan(fx);
    assert_non_null(fx_op(fx, "pool-stuck"));
    fx_put(fx, OBJ_POD, "m", "mp", 4, "", "",
           "'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable'}]");
    plan(fx);
    assert_null(fx_op(fx, "pool-stuck"));
    assert_non_null(strstr(fx_event(fx, "WarmPoolNotProgressing")->message,
                           "1/1 sandboxes are unschedulable past the 300s"));
}

static void test_status(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;
    Pool *p;

    put_template(fx, 1, "");
    put_pool(fx, 2, ",'replicas':2", "");
    put_member(fx, "a", 3, NULL, READY);
    put_member(fx, "b", 4, NULL, "");
    plan(fx);
    b = fx_body(fx, "pool-status"); /* the generation was never looked at */
    assert_int_equal(json_int(b, "status.replicas", -1), 2);
    assert_int_equal(json_int(b, "status.readyReplicas", -1), 1);
    assert_int_equal(json_int(b, "status.observedGeneration", -1), 1);
    assert_str(json_str(b, "metadata.resourceVersion"), "2");
    p = put_pool(fx, 5, ",'replicas':2",
                 "'replicas':2,'readyReplicas':2,'observedGeneration':1,'selector':'x'");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0); /* waits for b */
    assert_int_equal(fx->plan.memo.status_due_ms, FX_NOW + 3000);
    p->status_due_ms = FX_NOW + 3000;
    fx->now_ms += 3000;
    plan(fx);
    assert_non_null(fx_op(fx, "pool-status"));
    fx->now_ms -= 3000;
    put_member(fx, "b", 6, NULL, READY);
    plan(fx);
    b = fx_body(fx, "pool-status"); /* settled: at once */
    assert_int_equal(json_int(b, "status.readyReplicas", -1), 2);
}

static void test_zero_is_written(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_template(fx, 1, "");
    put_pool(fx, 2, ",'replicas':0", "'replicas':3,'readyReplicas':3");
    plan(fx);
    b = fx_body(fx, "pool-status");
    assert_int_equal(json_int(b, "status.replicas", -1), 0);
    assert_int_equal(json_int(b, "status.readyReplicas", -1), 0);
}

static void test_refused_creations_wait(void **state)
{
    Fixture *fx = *state;
    Pool *p;

    put_template(fx, 1, "");
    p = put_pool(fx, 2, "", "");
    world_set_trouble(fx->world, &p->obj, "exceeded quota", NULL, FX_NOW + 4000);
    plan(fx);
    assert_null(fx_op(fx, "pool-create"));
    assert_non_null(strstr(fx_event(fx, "WarmPoolNotProgressing")->message, "exceeded quota"));
    fx->now_ms += 4000;
    plan(fx);
    assert_non_null(fx_op(fx, "pool-create"));
}

/* As after the executor has sent it. */
static void remember_warning(Fixture *fx)
{
    world_pool(fx->world, "ns", "p")->warning = fx->plan.memo.warning;
}

static void test_missing_template_is_told_once(void **state)
{
    Fixture *fx = *state;

    put_pool(fx, 1, "", "");
    put_member(fx, "kept", 2, NULL, READY);
    plan(fx);
    assert_int_equal(fx->plan.need.type, NEED_GET); /* the watch may be behind */
    assert_int_equal(fx->plan.need.kind, OBJ_TEMPLATE);
    assert_int_equal(fx->plan.n_events, 0);
    fx_live(fx, OBJ_TEMPLATE, "t", NULL);
    plan(fx);
    assert_true(fx_event(fx, "TemplateNotFound")->warning);
    assert_str(fx_event(fx, "TemplateNotFound")->name, "p");
    assert_true(str_starts_with(fx_event(fx, "TemplateNotFound")->message,
                                "SandboxTemplate \"t\" not found: "));
    remember_warning(fx);
    fx->n_live = 0;
    plan(fx);
    assert_int_equal(fx->plan.need.type, NEED_NONE);
    assert_null(fx_event(fx, "TemplateNotFound"));
    assert_non_null(fx_op(fx, "pool-status")); /* all else goes on */
    put_template(fx, 3, "");
    plan(fx);
    assert_int_equal(fx->plan.memo.warning, 0);
    assert_int_equal(fx->plan.n_events, 0);
    remember_warning(fx);
    world_remove(fx->world, OBJ_TEMPLATE, "ns", "t", "tu", 4, fx->now_ms); /* while one lives */
    fx_live(fx, OBJ_TEMPLATE, "t", NULL);
    plan(fx);
    assert_non_null(fx_event(fx, "TemplateNotFound"));
}

static void test_unsupported_template_makes_nothing(void **state)
{
    Fixture *fx = *state;

    put_pool(fx, 1, "", "");
    put_template(fx, 2, ",'service':true");
    plan(fx);
    assert_null(fx_op(fx, "pool-create"));
    assert_non_null(strstr(fx_event(fx, "WarmPoolNotProgressing")->message, "spec.service of"));
    remember_warning(fx);
    plan(fx);
    assert_null(fx_event(fx, "WarmPoolNotProgressing"));
    put_template(fx, 3, ",'volumeClaimTemplates':[{'spec':{}}]");
    plan(fx);
    assert_null(fx_op(fx, "pool-create"));
}

static void plan_template(Fixture *fx)
{
    fx_plan(fx, KEY_TEMPLATE, "t");
}

#define POLICY_OWNER(uid)                                                                          \
    ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"               \
    "'SandboxTemplate','name':'t','uid':'" uid "','controller':true}]"

static void put_policy(Fixture *fx, uint64_t rv, const char *meta, const char *spec)
{
    fx_put(fx, OBJ_POLICY, "t-network-policy", "np", rv, meta, spec, "");
}

static void test_template_gets_label_and_policy(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    fx_put(fx, OBJ_TEMPLATE, "t", "tu", 1, "", "'podTemplate':{'spec':{}}", "");
    plan_template(fx);
    b = fx_body(fx, "template-label");
    assert_str(json_value_str(json_get(json_path(b, "metadata.labels"), LABEL_TEMPLATE_REF)),
               T_HASH);
    b = fx_body(fx, "policy-create");
    assert_str(json_str(b, "metadata.name"), "t-network-policy");
    assert_str(json_str(json_array_at(json_path(b, "metadata.ownerReferences"), 0), "uid"), "tu");
    assert_int_equal(json_array_len(json_path(b, "spec.policyTypes")), 2);
}

static void test_policy_is_repaired_or_left(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_template(fx, 1, ",'networkPolicy':{'egress':[{'ports':[{'port':443}]}]}");
    put_policy(fx, 2, POLICY_OWNER("tu"),
               "'podSelector':{'matchLabels':{'" LABEL_TEMPLATE_REF "':'" T_HASH
               "'}},'policyTypes':['Ingress','Egress'],'egress':[{'ports':[{'protocol':'TCP',"
               "'port':443}]}]");
    plan_template(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    put_policy(fx, 3, POLICY_OWNER("tu"), "'podSelector':{}");
    plan_template(fx);
    b = fx_body(fx, "policy-repair");
    assert_int_equal(fx_op(fx, "policy-repair")->verb, PLAN_PATCH_JSON);
    assert_str(json_str(json_array_at(b, 0), "value"), "np");
    assert_str(json_str(json_array_at(b, 1), "path"), "/spec");
    put_policy(fx, 4, POLICY_OWNER("another"), "'podSelector':{}");
    plan_template(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    assert_true(fx->plan.events[0].warning);
    put_template(fx, 5, ",'networkPolicyManagement':'Unmanaged'");
    plan_template(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    put_policy(fx, 6, POLICY_OWNER("tu"), "'podSelector':{}");
    plan_template(fx);
    assert_str(json_str(fx_body(fx, "policy-unmanage"), "preconditions.uid"), "np");
}

#define MADE                                                                                       \
    ",'managedFields':[{'manager':'sandbox-controller','fieldsV1':{'f:spec':{'f:podTemplate':{"    \
    "'f:spec':{}},'f:containers':{}}}}]"

static void live_list(Fixture *fx, ObjKind kind, PlanLiveItem *items, size_t n)
{
    static char ns[] = "ns";

    fx->live[fx->n_live++] = (PlanLive){
        .type = NEED_LIST, .kind = kind, .ns = ns, .found = true, .items = items, .n_items = n};
}

static void test_orphans_of_claims(void **state)
{
    static char name[] = "c", uid[] = "alive";
    PlanLiveItem claims[] = {{name, uid}};
    Fixture *fx = *state;
    const JsonValue *b;

    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_int_equal(fx->plan.need.type, NEED_NONE); /* no suspects, no list */
    fx_put(fx, OBJ_SANDBOX, "lost", "lost", 1, ",'labels':{'" LABEL_CLAIM_UID "':'dead'}" MADE, "",
           "");
    fx_put(fx, OBJ_SANDBOX, "living", "living", 2, ",'labels':{'" LABEL_CLAIM_UID "':'alive'}" MADE,
           "", "");
    fx_put(fx, OBJ_SANDBOX, "users", "users", 3, ",'labels':{'" LABEL_CLAIM_UID "':'dead'}", "",
           "");
    fx_put(fx, OBJ_SANDBOX, "referred", "referred", 4,
           ",'labels':{'" LABEL_CLAIM_UID "':'dead'},'ownerReferences':[{'apiVersion':'v1','kind':"
           "'ConfigMap','name':'x','uid':'y'}]" MADE,
           "", "");
    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_int_equal(fx->plan.need.type, NEED_LIST);
    assert_int_equal(fx->plan.need.kind, OBJ_CLAIM);
    live_list(fx, OBJ_CLAIM, claims, 1);
    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_int_equal(fx->plan.n_ops, 1);
    assert_str(fx_op(fx, "orphan")->name, "lost");
    b = fx_body(fx, "orphan");
    assert_str(json_str(b, "preconditions.uid"), "lost");
    assert_str(json_str(b, "preconditions.resourceVersion"), "1");
    assert_int_equal(fx_event(fx, "OrphanCollected")->op, 1);
    assert_str(fx_event(fx, "OrphanFound")->name, "users");
    assert_int_equal(fx_event(fx, "OrphanFound")->op, 0);
    fx->config.delete_unmarked = true;
    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_int_equal(fx->plan.n_ops, 2);
}

static void test_nothing_is_collected_while_blind(void **state)
{
    Fixture *fx = *state;

    fx_put(fx, OBJ_SANDBOX, "lost", "lost", 1, ",'labels':{'" LABEL_CLAIM_UID "':'dead'}" MADE, "",
           "");
    live_list(fx, OBJ_CLAIM, NULL, 0);
    fx->synced = false;
    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_int_equal(fx->plan.n_ops, 0);
    fx->synced = true;
    fx->config.collect_orphans = false;
    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_int_equal(fx->plan.n_ops, 0);
    fx->config.collect_orphans = true;
    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_int_equal(fx->plan.n_ops, 1);
}

static void test_orphans_of_pools_and_sandboxes(void **state)
{
    static char p[] = "p", pu[] = "pu", s[] = "s", su[] = "su";
    PlanLiveItem pools[] = {{p, pu}}, sandboxes[] = {{s, su}};
    Fixture *fx = *state;
    _cleanup_free_ char *living =
        xasprintf(",'labels':{'" LABEL_WARM_POOL "':'%s'}" MADE, name_hash_of("p").s);
    _cleanup_free_ char *pod_of_living =
        xasprintf(",'labels':{'" LABEL_TEMPLATE_REF "':'T','" LABEL_NAME_HASH "':'%s'}" MADE,
                  name_hash_of("s").s);

    fx_put(fx, OBJ_SANDBOX, "kept", "k", 1, living, "", "");
    fx_put(fx, OBJ_SANDBOX, "lost", "l", 2, ",'labels':{'" LABEL_WARM_POOL "':'00000000'}" MADE, "",
           "");
    live_list(fx, OBJ_POOL, pools, 1);
    fx_plan(fx, KEY_ORPHANS_OF_POOLS, "");
    assert_int_equal(fx->plan.n_ops, 1);
    assert_str(fx_op(fx, "orphan")->name, "lost");

    fx_put(fx, OBJ_POD, "kept", "kp", 3, pod_of_living, "", "");
    fx_put(fx, OBJ_POD, "lost", "lp", 4,
           ",'labels':{'" LABEL_TEMPLATE_REF "':'T','" LABEL_NAME_HASH "':'00000000'}" MADE, "",
           "");
    /* a bare Sandbox's Pod may be waiting to be adopted */
    fx_put(fx, OBJ_POD, "bare", "bp", 5, ",'labels':{'" LABEL_NAME_HASH "':'00000000'}" MADE, "",
           "");
    live_list(fx, OBJ_SANDBOX, sandboxes, 1);
    fx_plan(fx, KEY_ORPHANS_OF_SANDBOXES, "");
    assert_int_equal(fx->plan.n_ops, 1);
    assert_str(fx_op(fx, "orphan")->name, "lost");
    assert_int_equal(fx_op(fx, "orphan")->kind, OBJ_POD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_a_pool_is_filled),
        FX_TEST(test_eviction_annotation),
        FX_TEST(test_terminating_and_pending_members_count),
        FX_TEST(test_foreign_members_do_not_count),
        FX_TEST(test_batches),
        FX_TEST(test_shrinking_spares_the_best),
        FX_TEST(test_roll_out),
        FX_TEST(test_stuck_members),
        FX_TEST(test_status),
        FX_TEST(test_zero_is_written),
        FX_TEST(test_refused_creations_wait),
        FX_TEST(test_missing_template_is_told_once),
        FX_TEST(test_unsupported_template_makes_nothing),
        FX_TEST(test_template_gets_label_and_policy),
        FX_TEST(test_policy_is_repaired_or_left),
        FX_TEST(test_orphans_of_claims),
        FX_TEST(test_nothing_is_collected_while_blind),
        FX_TEST(test_orphans_of_pools_and_sandboxes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
