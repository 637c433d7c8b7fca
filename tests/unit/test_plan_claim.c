/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/plan_fixture.h"

#define MEMBER                                                                                     \
    ",'labels':{'" LABEL_WARM_POOL "':'P','" LABEL_TEMPLATE_REF "':'" T_HASH                       \
    "','" LABEL_TEMPLATE_HASH "':'h','" LABEL_POD_TEMPLATE_HASH "':'h','" LABEL_CREATED_BY         \
    "':'controller','" LABEL_LAUNCH_TYPE "':'warm'},'ownerReferences':[{'apiVersion':"             \
    "'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxWarmPool','name':'p','uid':'pu',"         \
    "'controller':true}]"
#define OF_CLAIM                                                                                   \
    ",'labels':{'" LABEL_CLAIM_UID "':'cu','" LABEL_LAUNCH_TYPE "':'warm','" LABEL_TEMPLATE_REF    \
    "':'" T_HASH "'},'managedFields':[{'manager':'sandbox-controller','fieldsV1':{'f:spec':{"      \
    "'f:podTemplate':{'f:spec':{}}}}}],'ownerReferences':[{'apiVersion':"                          \
    "'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxClaim','name':'c','uid':'cu',"            \
    "'controller':true}]"
#define T_HASH "f10c3da3"
#define TEMPLATE_SPEC                                                                              \
    "'podTemplate':{'metadata':{'labels':{'team':'a'}},'spec':{'containers':[{'name':'x'}]}}"
#define CLAIMED_TEMPLATE                                                                           \
    "'podTemplate':{'metadata':{'labels':{'team':'a','" LABEL_CLAIM_UID                            \
    "':'cu','" LABEL_TEMPLATE_REF "':'" T_HASH "'}}}"
#define READY_STATUS                                                                               \
    "'podIPs':['10.0.0.1'],'nodeName':'n','conditions':[{'type':'Ready','status':'True','reason':" \
    "'DependenciesReady','message':'Pod is Ready','lastTransitionTime':'2026-09-21T10:00:00Z',"    \
    "'observedGeneration':1}]"
#define POD_OF(uid)                                                                                \
    ",'ownerReferences':[{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':'s',"     \
    "'uid':'" uid "','controller':true}]"
#define POD_READY                                                                                  \
    "'phase':'Running','podIPs':[{'ip':'10.0.0.1'}],'conditions':[{'type':'Ready','status':'True'" \
    "}]"

static Claim *put_claim(Fixture *fx, uint64_t rv, const char *meta, const char *spec,
                        const char *status)
{
    _cleanup_free_ char *whole = xasprintf("'warmPoolRef':{'name':'p'}%s", spec);

    return obj_claim(fx_put(fx, OBJ_CLAIM, "c", "cu", rv, meta, whole, status));
}

static void put_pool(Fixture *fx)
{
    fx_put(fx, OBJ_POOL, "p", "pu", 1, "", "'sandboxTemplateRef':{'name':'t'}", "");
}

static void put_scene(Fixture *fx)
{
    put_pool(fx);
    fx_put(fx, OBJ_TEMPLATE, "t", "tu", 2, "", TEMPLATE_SPEC, "");
}

static Sandbox *put_member(Fixture *fx, const char *name, uint64_t rv, const char *status)
{
    return obj_sandbox(fx_put(fx, OBJ_SANDBOX, name, name, rv, MEMBER,
                              "'podTemplate':{'metadata':{'labels':{'team':'a','" LABEL_WARM_POOL
                              "':'P'},'annotations':{'" ANNOTATION_SAFE_TO_EVICT "':'true'}}}",
                              status));
}

static void put_ready_member(Fixture *fx, const char *name, uint64_t rv)
{
    _cleanup_free_ char *meta =
        xasprintf(",'ownerReferences':[{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox',"
                  "'name':'%s','uid':'%s','controller':true}]",
                  name, name);

    put_member(fx, name, rv, READY_STATUS);
    fx_put(fx, OBJ_POD, name, name, rv + 1, meta, "", POD_READY);
}

static void plan(Fixture *fx)
{
    fx_plan(fx, KEY_CLAIM, "c");
}

static void assert_ready(const JsonValue *body, const char *status, const char *reason,
                         const char *message)
{
    const JsonValue *c = fx_condition(body, "Ready");

    assert_str(json_str(c, "status"), status);
    assert_str(json_str(c, "reason"), reason);
    assert_str(json_str(c, "message"), message);
    assert_int_equal(json_int(c, "observedGeneration", 0), 1);
}

static void test_constants(_unused_ void **state)
{
    assert_str(name_hash_of("t").s, T_HASH);
}

static void test_missing_pool_and_template(void **state)
{
    Fixture *fx = *state;

    put_claim(fx, 1, "", "", "");
    plan(fx);
    assert_int_equal(fx->plan.need.type, NEED_GET); /* a watch may lag */
    assert_int_equal(fx->plan.need.kind, OBJ_POOL);
    fx_live(fx, OBJ_POOL, "p", NULL);
    plan(fx);
    assert_ready(fx_body(fx, "claim-status"), "False", "WarmPoolNotFound",
                 "SandboxWarmPool \"p\" not found");
    assert_int_equal(fx->plan.wake_ms, FX_NOW + 60000);
    put_pool(fx);
    plan(fx);
    assert_int_equal(fx->plan.need.kind, OBJ_TEMPLATE);
    fx_live(fx, OBJ_TEMPLATE, "t", NULL);
    plan(fx);
    assert_ready(fx_body(fx, "claim-status"), "False", "TemplateNotFound",
                 "SandboxTemplate \"t\" not found");
}

static void test_transfer(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b, *labels, *ref;

    put_scene(fx);
    put_ready_member(fx, "s", 3);
    put_claim(fx, 10, ",'labels':{'" LABEL_CREATED_BY "':'go-client'}", "", "");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 2); /* both at once, then the status */
    b = fx_body(fx, "transfer");
    assert_str(json_str(b, "metadata.uid"), "s");
    assert_str(json_str(b, "metadata.resourceVersion"), "3");
    assert_str(fx_op(fx, "transfer")->reserve_for, "cu");
    ref = json_array_at(json_path(b, "metadata.ownerReferences"), 0);
    assert_int_equal(json_array_len(json_path(b, "metadata.ownerReferences")), 1);
    assert_str(json_str(ref, "apiVersion"), "extensions.agents.x-k8s.io/v1beta1");
    assert_str(json_str(ref, "kind"), "SandboxClaim");
    assert_str(json_str(ref, "uid"), "cu");
    labels = json_path(b, "metadata.labels");
    static const char *const removed[] = {LABEL_WARM_POOL, LABEL_TEMPLATE_HASH,
                                          LABEL_POD_TEMPLATE_HASH};
    for (size_t i = 0; i < ARRAY_SIZE(removed); i++)
        assert_true(json_has(labels, removed[i]) && !json_get(labels, removed[i]));
    assert_str(json_value_str(json_get(labels, LABEL_CLAIM_UID)), "cu");
    assert_str(json_value_str(json_get(labels, LABEL_CREATED_BY)), "go-client");
    labels = json_path(b, "spec.podTemplate.metadata.labels");
    assert_true(json_has(labels, LABEL_WARM_POOL) && !json_get(labels, LABEL_WARM_POOL));
    assert_str(json_value_str(json_get(labels, LABEL_CLAIM_UID)), "cu");
    assert_str(json_value_str(json_get(labels, LABEL_TEMPLATE_REF)), T_HASH);
    assert_true(
        json_has(json_path(b, "spec.podTemplate.metadata.annotations"), ANNOTATION_SAFE_TO_EVICT));
    b = json_path(fx_body(fx, "claim-annotations"), "metadata.annotations");
    assert_str(json_value_str(json_get(b, ANNOTATION_SANDBOX_NAME)), "s");
    assert_str(json_value_str(json_get(b, ANNOTATION_FIRST_OBSERVED)),
               "2026-09-21T14:13:20.001000Z");
    assert_non_null(json_get(b, ANNOTATION_FIRST_READY));
    assert_str(fx_event(fx, "SandboxAdopted")->message, "Adopted warm pool Sandbox \"s\"");
}

static void test_bound_claim_forwards_its_sandbox(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "s", "s", 3, OF_CLAIM, CLAIMED_TEMPLATE, READY_STATUS);
    put_claim(fx, 10, "", "", "");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 1); /* annotations would spoil the resourceVersion */
    b = fx_body(fx, "claim-status");
    assert_ready(b, "True", "DependenciesReady", "Pod is Ready");
    assert_str(json_str(fx_condition(b, "Ready"), "lastTransitionTime"), "2026-09-21T10:00:00Z");
    assert_str(json_str(b, "metadata.resourceVersion"), "10");
    assert_str(json_str(b, "status.sandbox.name"), "s");
    assert_str(json_value_str(json_array_at(json_path(b, "status.sandbox.podIPs"), 0)), "10.0.0.1");
}

#define BOUND_STATUS                                                                               \
    "'sandbox':{'name':'s','podIPs':['10.0.0.1']},'conditions':[{'type':'Ready','status':'True',"  \
    "'reason':'DependenciesReady','message':'Pod is Ready','lastTransitionTime':"                  \
    "'2026-09-21T10:00:00Z','observedGeneration':1}]"
#define ANNOTATED                                                                                  \
    ",'annotations':{'" ANNOTATION_SANDBOX_NAME "':'s','" ANNOTATION_FIRST_OBSERVED                \
    "':'x','" ANNOTATION_FIRST_READY "':'x'}"

static void test_annotations_follow_the_status(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "s", "s", 3, OF_CLAIM, CLAIMED_TEMPLATE, READY_STATUS);
    put_claim(fx, 10, "", "", BOUND_STATUS);
    plan(fx);
    b = json_path(fx_body(fx, "claim-annotations"), "metadata.annotations");
    assert_str(json_value_str(json_get(b, ANNOTATION_SANDBOX_NAME)), "s");
    /* it was Ready before anybody looked */
    assert_str(json_value_str(json_get(b, ANNOTATION_FIRST_READY)), "unknown");
    put_claim(fx, 11, ANNOTATED, "", BOUND_STATUS);
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
}

static void test_first_ready_is_dated_when_seen(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "s", "s", 3, OF_CLAIM, CLAIMED_TEMPLATE, READY_STATUS);
    put_claim(fx, 10, "", "", "");
    fx->now_ms = FX_NOW + 1234;
    put_claim(fx, 11, "", "", BOUND_STATUS);
    plan(fx);
    b = json_path(fx_body(fx, "claim-annotations"), "metadata.annotations");
    assert_str(json_value_str(json_get(b, ANNOTATION_FIRST_READY)), "2026-09-21T14:13:21.234000Z");
}

static void test_no_observability(void **state)
{
    Fixture *fx = *state;

    fx->config.observability_annotations = false;
    fx->config.claim_events = false;
    put_scene(fx);
    put_ready_member(fx, "s", 3);
    put_claim(fx, 10, "", "", "");
    plan(fx);
    assert_int_equal(
        json_object_len(json_path(fx_body(fx, "claim-annotations"), "metadata.annotations")), 1);
    assert_int_equal(fx->plan.n_events, 0);
}

static void test_committed_assignment_is_completed(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    put_ready_member(fx, "better", 3);
    put_member(fx, "assigned", 6, ""); /* not even an address */
    put_claim(fx, 10, ",'annotations':{'" ANNOTATION_SANDBOX_NAME "':'assigned'}", "", "");
    plan(fx);
    assert_str(fx_op(fx, "transfer")->name, "assigned");
    /* the old form, a label, is honoured and turned into the annotation */
    put_claim(fx, 11, ",'labels':{'" LABEL_SANDBOX_NAME "':'assigned'}", "", "");
    plan(fx);
    assert_str(fx_op(fx, "transfer")->name, "assigned");
    const JsonValue *b = fx_body(fx, "claim-annotations");
    assert_true(json_has(json_path(b, "metadata.labels"), LABEL_SANDBOX_NAME));
    assert_str(
        json_value_str(json_get(json_path(b, "metadata.annotations"), ANNOTATION_SANDBOX_NAME)),
        "assigned");
}

static void test_busy_assignment_is_waited_for(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    put_ready_member(fx, "other", 3);
    world_inflight(fx->world, &put_member(fx, "assigned", 6, "")->obj, +1);
    put_claim(fx, 10, ",'annotations':{'" ANNOTATION_SANDBOX_NAME "':'assigned'}", "", "");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    assert_true(fx->plan.memo.keep_attempt);
    assert_int_equal(fx->plan.wake_ms, FX_NOW + 200);
}

static void test_dead_assignment_is_replaced(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_scene(fx);
    put_ready_member(fx, "s", 3);
    put_claim(fx, 10, ",'annotations':{'" ANNOTATION_SANDBOX_NAME "':'dead'}", "", "");
    plan(fx);
    assert_int_equal(fx->plan.need.type, NEED_GET); /* is it? */
    assert_str(fx->plan.need.name, "dead");
    fx_live(fx, OBJ_SANDBOX, "dead", NULL);
    plan(fx);
    assert_str(fx_op(fx, "transfer")->name, "s");
    b = json_path(fx_body(fx, "claim-annotations"), "metadata.annotations");
    assert_str(json_value_str(json_get(b, ANNOTATION_SANDBOX_NAME)), "s");
}

static void test_attempt_of_unknown_outcome_is_repeated(void **state)
{
    Fixture *fx = *state;
    Claim *c;

    put_scene(fx);
    put_ready_member(fx, "a", 3);
    put_ready_member(fx, "b", 5);
    c = put_claim(fx, 10, "", "", "");
    world_set_attempt(fx->world, c, "b", fx->now_ms);
    world_reserve(fx->world, world_sandbox(fx->world, "ns", "b"), "cu");
    plan(fx);
    assert_str(fx_op(fx, "transfer")->name, "b");
    world_set_attempt(fx->world, c, "c", fx->now_ms); /* its own Sandbox: a cold create */
    plan(fx);
    assert_null(fx_op(fx, "transfer"));
    assert_non_null(fx_op(fx, "cold-create"));
}

static void test_surplus_sandbox_is_deleted(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "s", "s", 3, OF_CLAIM, CLAIMED_TEMPLATE, READY_STATUS);
    fx_put(fx, OBJ_SANDBOX, "s2", "s2", 4, OF_CLAIM, CLAIMED_TEMPLATE, READY_STATUS);
    put_claim(fx, 10, ANNOTATED, "", "");
    plan(fx);
    assert_null(fx_op(fx, "claim-surplus")); /* nobody has seen one of them yet */
    assert_str(json_str(fx_body(fx, "claim-status"), "status.sandbox.name"), "s");
    put_claim(fx, 11, ANNOTATED, "", BOUND_STATUS);
    plan(fx);
    assert_str(fx_op(fx, "claim-surplus")->name, "s2");
    b = fx_body(fx, "claim-surplus");
    assert_str(json_str(b, "preconditions.uid"), "s2");
    assert_str(json_str(b, "preconditions.resourceVersion"), "4");
}

static void test_cold_create(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b, *labels;

    put_scene(fx);
    put_claim(fx, 10,
              ",'labels':{'" LABEL_CREATED_BY "':'me'},'annotations':{'" ANNOTATION_TRACE_CONTEXT
              "':'tc'}",
              ",'additionalPodMetadata':{'labels':{'sandbox.users.io/x':'1'},'annotations':{"
              "'note':'n'}}",
              "");
    plan(fx);
    assert_true(fx_op(fx, "cold-create")->guarded);
    b = fx_body(fx, "cold-create");
    assert_str(json_str(b, "metadata.name"), "c");
    labels = json_path(b, "metadata.labels");
    assert_int_equal(json_object_len(labels), 4);
    assert_str(json_value_str(json_get(labels, LABEL_LAUNCH_TYPE)), "cold");
    assert_str(json_value_str(json_get(labels, LABEL_CREATED_BY)), "me");
    assert_str(json_value_str(json_get(labels, LABEL_CLAIM_UID)), "cu");
    assert_str(json_value_str(json_get(labels, LABEL_TEMPLATE_REF)), T_HASH);
    labels = json_path(b, "metadata.annotations");
    assert_str(json_value_str(json_get(labels, ANNOTATION_TEMPLATE_REF)), "t");
    assert_str(json_value_str(json_get(labels, ANNOTATION_TRACE_CONTEXT)), "tc");
    labels = json_path(b, "spec.podTemplate.metadata.labels");
    assert_str(json_str(labels, "team"), "a");
    assert_str(json_value_str(json_get(labels, "sandbox.users.io/x")), "1");
    assert_str(json_str(b, "spec.podTemplate.metadata.annotations.note"), "n");
    assert_false(json_bool(b, "spec.podTemplate.spec.automountServiceAccountToken", true));
    assert_str(json_str(b, "spec.podTemplate.spec.dnsPolicy"), "None");
    assert_false(json_has(json_get(b, "spec"), "shutdownTime"));
    assert_str(json_str(json_array_at(json_path(b, "metadata.ownerReferences"), 0), "uid"), "cu");
    assert_str(fx_event(fx, "SandboxProvisioned")->message, "Created Sandbox \"c\"");
    /* no assignment is recorded for a cold one */
    b = json_path(fx_body(fx, "claim-annotations"), "metadata.annotations");
    assert_false(json_has(b, ANNOTATION_SANDBOX_NAME));
}

static void test_ready_goes_before_warming(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    put_member(fx, "warming", 3, "");
    fx_put(fx, OBJ_POD, "warming", "wp", 4, POD_OF("warming"), "",
           "'phase':'Running','podIPs':[{'ip':'1'}]");
    put_claim(fx, 10, "", "", "");
    plan(fx);
    assert_str(fx_op(fx, "transfer")->name, "warming"); /* has an address at least */
    put_ready_member(fx, "ready", 20);
    plan(fx);
    assert_str(fx_op(fx, "transfer")->name, "ready");
}

static void test_young_claim_waits_for_the_network(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    put_member(fx, "warming", 3, "");
    fx->now_ms = FX_NOW - 20000 + 500; /* half a second after the claim's creation */
    put_claim(fx, 10, "", "", "");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0); /* no status either */
    assert_true(fx->plan.memo.wait_for_member);
    assert_int_equal(fx->plan.wake_ms, FX_NOW - 20000 + 2000);
    fx->now_ms = FX_NOW - 20000 + 2000;
    plan(fx);
    assert_non_null(fx_op(fx, "cold-create"));
}

static void test_member_with_a_dead_pod_is_not_taken(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    put_ready_member(fx, "s", 3);
    fx_put(fx, OBJ_POD, "s", "s", 20, POD_OF("s"), "", "'phase':'Failed'");
    put_claim(fx, 10, "", "", "");
    plan(fx);
    assert_null(fx_op(fx, "transfer"));
}

static void test_recreate_pool_hands_out_nothing_stale(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    put_ready_member(fx, "stale", 3);
    put_claim(fx, 10, "", "", "");
    plan(fx);
    assert_non_null(fx_op(fx, "transfer")); /* OnReplenish does */
    fx_put(fx, OBJ_POOL, "p", "pu", 30, "",
           "'sandboxTemplateRef':{'name':'t'},'updateStrategy':{'type':'Recreate'}", "");
    plan(fx);
    assert_null(fx_op(fx, "transfer"));
    assert_non_null(fx_op(fx, "cold-create"));
}

static void test_collision(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "c", "other", 3, "", "", "");
    put_claim(fx, 10, "", "", "");
    plan(fx);
    assert_ready(fx_body(fx, "claim-status"), "False", "ReconcilerError",
                 "Error seen: sandbox \"c\" is not controlled by claim \"c\". Please use a "
                 "different claim name or delete the sandbox manually");
    assert_null(fx_op(fx, "cold-create"));
}

static void test_errors_keep_the_recorded_sandbox(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_claim(fx, 10, "", "", "'sandbox':{'name':'s','podIPs':['1']}");
    fx_live(fx, OBJ_SANDBOX, "s", NULL);
    fx_live(fx, OBJ_POOL, "p", NULL);
    plan(fx);
    b = fx_body(fx, "claim-status");
    assert_false(json_has(json_get(b, "status"), "sandbox"));
}

static void test_additional_metadata(void **state)
{
    static const struct {
        const char *metadata;
        const char *reason, *text;
    } cases[] = {
        {"'labels':{'sandbox.users.io/a':'1','sub.sandbox.users.io/b':'2'}", NULL, NULL},
        {"'labels':{'SANDBOX.users.io/a':'1'}", "InvalidMetadata",
         "label key \"SANDBOX.users.io/a\" is not a qualified name"},
        {"'labels':{'plain':'1'}", "InvalidMetadata", "label key \"plain\" needs a domain prefix"},
        {"'labels':{'xsandbox.users.io/a':'1'}", "InvalidMetadata",
         "label domain \"xsandbox.users.io\" is not in the allowlist (configure the "
         "allowed-label-domains key of the agent-sandbox-config ConfigMap in the controller "
         "namespace; default: sandbox.users.io)"},
        {"'labels':{'sandbox.users.io/a':'-'}", "InvalidMetadata",
         "value \"-\" of label \"sandbox.users.io/a\" is not a valid label value"},
        {"'labels':{'APP':'Sandbox-Router'}", "InvalidMetadata",
         "label \"app\" with value \"sandbox-router\" is not allowed"},
        {"'annotations':{'anything':'goes','x.io/y':'z'}", NULL, NULL},
        {"'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}", NULL, NULL},
        {"'annotations':{'kubernetes.io/x':'1'}", "InvalidMetadata",
         "annotation domain \"kubernetes.io\" is reserved"},
        {"'annotations':{'sub.k8s.io/x':'1'}", "InvalidMetadata",
         "annotation domain \"sub.k8s.io\" is reserved"},
        {"'annotations':{'agents.x-k8s.io/x':'1'}", "InvalidMetadata",
         "annotation domain \"agents.x-k8s.io\" is reserved"},
        {"'annotations':{'api.agents.x-k8s.io/x':'1'}", "InvalidMetadata",
         "annotation domain \"api.agents.x-k8s.io\" is reserved"},
        {"'annotations':{'bad key':'1'}", "InvalidMetadata",
         "annotation key \"bad key\" is not a qualified name"},
    };
    Fixture *fx = *state;

    put_scene(fx);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *spec = xasprintf(",'additionalPodMetadata':{%s}", cases[i].metadata);
        put_claim(fx, i + 10, "", spec, "");
        plan(fx);
        if (!cases[i].reason) {
            assert_non_null(fx_op(fx, "cold-create"));
            continue;
        }
        assert_int_equal(fx->plan.n_ops, 1);
        assert_ready(fx_body(fx, "claim-status"), "False", cases[i].reason, cases[i].text);
    }
}

static void test_metadata_that_contradicts_the_template(void **state)
{
    static const char *const domains[] = {"corp.example"};
    Fixture *fx = *state;

    fx->config.label_domains = domains;
    fx->config.n_label_domains = 1;
    put_pool(fx);
    fx_put(fx, OBJ_TEMPLATE, "t", "tu", 2, "",
           "'podTemplate':{'metadata':{'labels':{'corp.example/a':'1'}},'spec':{}}", "");
    put_ready_member(fx, "s", 3);
    put_claim(fx, 10, "", ",'additionalPodMetadata':{'labels':{'corp.example/a':'1'}}", "");
    plan(fx);
    assert_non_null(fx_op(fx, "transfer")); /* the same value is no contradiction */
    put_claim(fx, 11, "", ",'additionalPodMetadata':{'labels':{'corp.example/a':'2'}}", "");
    plan(fx);
    assert_null(fx_op(fx, "transfer"));
    assert_ready(fx_body(fx, "claim-status"), "False", "ReconcilerError",
                 "Error seen: metadata override conflict: label \"corp.example/a\" is defined in "
                 "template with value \"1\", but claim requests \"2\"");
}

static void test_wishes_beyond_the_template(void **state)
{
    static const struct {
        const char *template, *claim, *reason, *text;
    } cases[] = {
        {"", ",'env':[{'name':'A','value':'1'}]", "EnvVarsInjectionRejected",
         "environment variable injection is not allowed by SandboxTemplate \"t\" "
         "(envVarsInjectionPolicy: Disallowed)"},
        {",'envVarsInjectionPolicy':'Allowed'", ",'env':[{'name':'A','value':'1'}]",
         "ReconcilerError",
         "Error seen: spec.env is not supported by this version of the controller"},
        {"", ",'volumeClaimTemplates':[{'spec':{}}]", "VolumeClaimTemplatesError",
         "volumeClaimTemplates are not allowed by SandboxTemplate \"t\" "
         "(volumeClaimTemplatesPolicy: Disallowed)"},
        {",'volumeClaimTemplatesPolicy':'Overrides'", ",'volumeClaimTemplates':[{'spec':{}}]",
         "ReconcilerError",
         "Error seen: spec.volumeClaimTemplates is not supported by this version of the "
         "controller"},
        {",'service':true", "", "ReconcilerError",
         "Error seen: spec.service of SandboxTemplate \"t\" is not supported by this version of "
         "the controller"},
        {"", ",'env':[],'volumeClaimTemplates':[]", NULL, NULL},
    };
    Fixture *fx = *state;

    put_pool(fx);
    put_ready_member(fx, "s", 3);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *template = xasprintf(TEMPLATE_SPEC "%s", cases[i].template);
        fx_put(fx, OBJ_TEMPLATE, "t", "tu", i + 10, "", template, "");
        put_claim(fx, i + 10, "", cases[i].claim, "");
        plan(fx);
        if (!cases[i].reason) {
            assert_non_null(fx_op(fx, "transfer"));
            continue;
        }
        assert_int_equal(fx->plan.n_ops, 1);
        assert_ready(fx_body(fx, "claim-status"), "False", cases[i].reason, cases[i].text);
    }
}

static void test_template_metadata_flows_to_bound_sandboxes(void **state)
{
    Fixture *fx = *state;
    const JsonValue *labels;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "s", "s", 3, OF_CLAIM,
           "'podTemplate':{'metadata':{'labels':{'team':'old','" LABEL_CLAIM_UID
           "':'cu','" LABEL_TEMPLATE_REF "':'" T_HASH "','gone':'1'}}}",
           READY_STATUS);
    put_claim(fx, 10, ANNOTATED, "", BOUND_STATUS);
    plan(fx);
    labels = json_path(fx_body(fx, "sandbox-metadata"), "spec.podTemplate.metadata.labels");
    assert_int_equal(json_object_len(labels), 2);
    assert_str(json_str(labels, "team"), "a");
    assert_true(json_has(labels, "gone"));
}

static void test_sandbox_that_expired_by_itself(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "s", "s", 3, OF_CLAIM, CLAIMED_TEMPLATE,
           "'conditions':[{'type':'Ready','status':'False','reason':'SandboxExpired'}]");
    put_claim(fx, 10, ANNOTATED, "", "");
    plan(fx);
    assert_ready(fx_body(fx, "claim-status"), "False", "SandboxExpired",
                 "Underlying Sandbox resource has expired independently of the Claim.");
    fx_put(fx, OBJ_SANDBOX, "s", "s", 4, OF_CLAIM, CLAIMED_TEMPLATE, "");
    plan(fx);
    assert_ready(fx_body(fx, "claim-status"), "False", "SandboxNotReady", "Sandbox is not ready");
}

static void test_finished_is_mirrored_and_dropped(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_scene(fx);
    fx_put(fx, OBJ_SANDBOX, "s", "s", 3, OF_CLAIM, CLAIMED_TEMPLATE,
           "'conditions':[{'type':'Ready','status':'False','reason':'PodFailed'},{'type':"
           "'Finished','status':'True','reason':'PodFailed','message':'Pod failed',"
           "'lastTransitionTime':'2026-09-21T12:00:00Z','observedGeneration':7}]");
    put_claim(fx, 10, ANNOTATED, "", "");
    plan(fx);
    b = fx_body(fx, "claim-status");
    assert_str(json_str(fx_condition(b, "Finished"), "lastTransitionTime"), "2026-09-21T12:00:00Z");
    assert_int_equal(json_int(fx_condition(b, "Finished"), "observedGeneration", 0), 7);
    /* sorted by type */
    assert_str(json_str(json_array_at(json_path(b, "status.conditions"), 0), "type"), "Finished");
    fx_put(fx, OBJ_SANDBOX, "s", "s", 4, OF_CLAIM, CLAIMED_TEMPLATE, READY_STATUS);
    put_claim(fx, 11, ANNOTATED, "", "'conditions':[{'type':'Finished','status':'True'}]");
    plan(fx);
    assert_null(fx_condition(fx_body(fx, "claim-status"), "Finished"));
}

static void test_deleting_claim_is_left_to_the_collector(void **state)
{
    Fixture *fx = *state;

    put_scene(fx);
    put_ready_member(fx, "s", 3);
    put_claim(fx, 10, ",'deletionTimestamp':'2026-09-21T14:13:00Z'", "", "");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
}

static void test_refused_create_is_shown(void **state)
{
    Fixture *fx = *state;
    Claim *c;

    put_scene(fx);
    c = put_claim(fx, 10, "", "", "");
    world_set_trouble(fx->world, &c->obj, "exceeded quota", NULL, FX_NOW + 1000);
    plan(fx);
    assert_ready(fx_body(fx, "claim-status"), "False", "ReconcilerError",
                 "Error seen: exceeded quota");
    assert_null(fx_op(fx, "cold-create"));
    fx->now_ms += 1000;
    plan(fx);
    assert_non_null(fx_op(fx, "cold-create"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants),
        FX_TEST(test_missing_pool_and_template),
        FX_TEST(test_transfer),
        FX_TEST(test_bound_claim_forwards_its_sandbox),
        FX_TEST(test_annotations_follow_the_status),
        FX_TEST(test_first_ready_is_dated_when_seen),
        FX_TEST(test_no_observability),
        FX_TEST(test_committed_assignment_is_completed),
        FX_TEST(test_busy_assignment_is_waited_for),
        FX_TEST(test_dead_assignment_is_replaced),
        FX_TEST(test_attempt_of_unknown_outcome_is_repeated),
        FX_TEST(test_surplus_sandbox_is_deleted),
        FX_TEST(test_cold_create),
        FX_TEST(test_ready_goes_before_warming),
        FX_TEST(test_young_claim_waits_for_the_network),
        FX_TEST(test_member_with_a_dead_pod_is_not_taken),
        FX_TEST(test_recreate_pool_hands_out_nothing_stale),
        FX_TEST(test_collision),
        FX_TEST(test_errors_keep_the_recorded_sandbox),
        FX_TEST(test_additional_metadata),
        FX_TEST(test_metadata_that_contradicts_the_template),
        FX_TEST(test_wishes_beyond_the_template),
        FX_TEST(test_template_metadata_flows_to_bound_sandboxes),
        FX_TEST(test_sandbox_that_expired_by_itself),
        FX_TEST(test_finished_is_mirrored_and_dropped),
        FX_TEST(test_deleting_claim_is_left_to_the_collector),
        FX_TEST(test_refused_create_is_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
