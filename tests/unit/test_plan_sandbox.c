/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/plan_fixture.h"

#define OWNED                                                                                      \
    ",'ownerReferences':[{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':"         \
    "'my-sandbox','uid':'su','controller':true}]"
#define TRACKED ",'labels':{'agents.x-k8s.io/sandbox-name-hash':'374de8f5'}"
#define DOC                                                                                        \
    "{'metadata':{'uid':'su'},'spec':{'podTemplate':{'spec':{'containers':[{'name':'c'}]}}}}"

static Sandbox *put_sandbox(Fixture *fx, uint64_t rv, const char *meta, const char *spec,
                            const char *status)
{
    return obj_sandbox(fx_put(fx, OBJ_SANDBOX, "my-sandbox", "su", rv, meta, spec, status));
}

static Pod *put_pod(Fixture *fx, uint64_t rv, const char *meta, const char *status)
{
    return obj_pod(fx_put(fx, OBJ_POD, "my-sandbox", "pu", rv, meta, "'nodeName':'n1'", status));
}

static void plan(Fixture *fx)
{
    fx_plan(fx, KEY_SANDBOX, "my-sandbox");
}

/* The status that is written once waiting for more news is over. */
static const JsonValue *status_of(Fixture *fx)
{
    plan(fx);
    if (fx->plan.n_ops == 0 && fx->plan.memo.status_due_ms != TIME_NONE) {
        world_sandbox(fx->world, "ns", "my-sandbox")->status_due_ms = fx->now_ms;
        plan(fx);
    }
    return fx_body(fx, "sandbox-status");
}

static void assert_condition(const JsonValue *body, const char *type, const char *status,
                             const char *reason, const char *message)
{
    const JsonValue *c = fx_condition(body, type);

    if (!c)
        fail_msg("no condition %s", type);
    assert_str(json_str(c, "status"), status);
    assert_str(json_str(c, "reason"), reason);
    assert_str(json_str(c, "message"), message);
    assert_int_equal(json_int(c, "observedGeneration", 0), 1);
}

static void test_creation_needs_the_whole_spec(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 1, "", "", "");
    plan(fx);
    assert_int_equal(fx->plan.need.type, NEED_GET);
    assert_int_equal(fx->plan.need.kind, OBJ_SANDBOX);
    assert_str(fx->plan.need.name, "my-sandbox");
    assert_int_equal(fx->plan.n_ops, 0);
}

static void test_created_pod(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b, *ref;

    put_sandbox(fx, 1, ",'labels':{'agents.x-k8s.io/created-by':'somebody'}",
                "'podTemplate':{'metadata':{'labels':{'team':'a','agents.x-k8s.io/claim-uid':"
                "'forged'},'annotations':{'note':'n','opentelemetry.io/trace-context':'t'}}}",
                "");
    fx_live(fx, OBJ_SANDBOX, "my-sandbox", DOC);
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 1);
    assert_true(fx->plan.ops[0].guarded);
    b = fx_body(fx, "pod-create");
    assert_str(json_str(b, "metadata.name"), "my-sandbox");
    assert_str(json_value_str(json_get(json_path(b, "metadata.labels"), LABEL_NAME_HASH)),
               "374de8f5");
    assert_str(json_str(b, "metadata.labels.team"), "a");
    assert_str(json_value_str(json_get(json_path(b, "metadata.labels"), LABEL_CREATED_BY)),
               "unknown");
    assert_int_equal(json_object_len(json_path(b, "metadata.labels")), 3);
    assert_str(json_str(b, "metadata.annotations.note"), "n");
    assert_str(json_value_str(
                   json_get(json_path(b, "metadata.annotations"), ANNOTATION_PROPAGATED_LABELS)),
               "team");
    assert_str(json_value_str(json_get(json_path(b, "metadata.annotations"),
                                       ANNOTATION_PROPAGATED_ANNOTATIONS)),
               "note");
    assert_int_equal(json_object_len(json_path(b, "metadata.annotations")), 3);
    ref = json_array_at(json_path(b, "metadata.ownerReferences"), 0);
    assert_str(json_str(ref, "apiVersion"), "agents.x-k8s.io/v1beta1");
    assert_str(json_str(ref, "kind"), "Sandbox");
    assert_str(json_str(ref, "uid"), "su");
    assert_true(json_bool(ref, "controller", false));
    assert_true(json_bool(ref, "blockOwnerDeletion", false));
    assert_int_equal(json_array_len(json_path(b, "spec.containers")), 1);
}

static void test_a_template_saves_the_read(void **state)
{
    Fixture *fx = *state;

    fx_put(fx, OBJ_TEMPLATE, "t", "tu", 1, "",
           "'networkPolicyManagement':'Unmanaged','podTemplate':{'spec':{'containers':[{'name':"
           "'x'}]}}",
           "");
    put_sandbox(fx, 2, ",'annotations':{'agents.x-k8s.io/sandbox-template-ref':'t'}",
                "'podTemplate':{'spec':{'containers':[{'name':'x'}],"
                "'automountServiceAccountToken':false}}",
                "");
    plan(fx);
    assert_str(
        json_str(json_array_at(json_path(fx_body(fx, "pod-create"), "spec.containers"), 0), "name"),
        "x");
}

static void test_labels_of_extension_owners(void **state)
{
    static const struct {
        const char *kind;
        bool template_ref, pool, claim;
    } cases[] = {
        {"SandboxWarmPool", true, true, false},
        {"SandboxClaim", true, false, true},
    };
    Fixture *fx = *state;

    fx_live(fx, OBJ_SANDBOX, "my-sandbox", DOC);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *meta = xasprintf(
            ",'labels':{'" LABEL_TEMPLATE_REF "':'T','" LABEL_WARM_POOL "':'P','" LABEL_CLAIM_UID
            "':'C','" LABEL_LAUNCH_TYPE "':'warm','" LABEL_TEMPLATE_HASH
            "':'H'},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"
            "'%s','name':'o','uid':'ou','controller':true}]",
            cases[i].kind);
        const JsonValue *labels;
        put_sandbox(fx, i + 1, meta, "", "");
        plan(fx);
        labels = json_path(fx_body(fx, "pod-create"), "metadata.labels");
        assert_true(json_has(labels, LABEL_TEMPLATE_REF) == cases[i].template_ref);
        assert_true(json_has(labels, LABEL_WARM_POOL) == cases[i].pool);
        assert_true(json_has(labels, LABEL_CLAIM_UID) == cases[i].claim);
        assert_false(json_has(labels, LABEL_LAUNCH_TYPE));
        assert_false(json_has(labels, LABEL_TEMPLATE_HASH));
    }
}

static void test_status_by_pod_state(void **state)
{
    static const struct {
        const char *pod;
        const char *scheduled[3], *ready[3];
        const char *finished;
    } cases[] = {
        {"'phase':'Pending'",
         {"Unknown", "PodSchedulingUnknown", "Pod has not reported a PodScheduled condition yet"},
         {"False", "DependenciesNotReady", "Pod exists with phase: Pending"},
         NULL},
        {"'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
         "'Unschedulable','message':'no'}]",
         {"False", "Unschedulable", "no"},
         {"False", "DependenciesNotReady", "Pod exists with phase: Pending"},
         NULL},
        {"'phase':'Running','conditions':[{'type':'PodScheduled','status':'True'}]",
         {"True", "PodScheduled", ""},
         {"False", "DependenciesNotReady", "Pod is Running but not Ready"},
         NULL},
        {"'phase':'Running','conditions':[{'type':'PodScheduled','status':'True'},{'type':"
         "'Ready','status':'True'}]",
         {"True", "PodScheduled", ""},
         {"False", "DependenciesNotReady", "Pod is Ready but has no podIPs yet"},
         NULL},
        {"'phase':'Running','podIPs':[{'ip':'1'}],'conditions':[{'type':'PodScheduled','status':"
         "'True'},{'type':'Ready','status':'True'}]",
         {"True", "PodScheduled", ""},
         {"True", "DependenciesReady", "Pod is Ready"},
         NULL},
        {"'phase':'Succeeded','conditions':[{'type':'PodScheduled','status':'True'}]",
         {"True", "PodScheduled", ""},
         {"False", "PodSucceeded", "Pod completed successfully"},
         "PodSucceeded"},
        {"'phase':'Failed','conditions':[{'type':'PodScheduled','status':'True'}]",
         {"True", "PodScheduled", ""},
         {"False", "PodFailed", "Pod failed"},
         "PodFailed"},
    };
    Fixture *fx = *state;

    put_sandbox(fx, 1, "", "", "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const JsonValue *b;
        put_pod(fx, i + 2, OWNED TRACKED, cases[i].pod);
        b = status_of(fx);
        assert_condition(b, "Suspended", "False", "NotSuspended", "Sandbox is not suspended");
        assert_condition(b, "PodScheduled", cases[i].scheduled[0], cases[i].scheduled[1],
                         cases[i].scheduled[2]);
        assert_condition(b, "Ready", cases[i].ready[0], cases[i].ready[1], cases[i].ready[2]);
        assert_str(json_str(fx_condition(b, "Finished"), "reason"), cases[i].finished);
        assert_str(json_str(b, "status.selector"), LABEL_NAME_HASH "=374de8f5");
        assert_str(json_str(b, "status.nodeName"), "n1");
        assert_str(json_str(b, "metadata.resourceVersion"), "1");
        assert_int_equal(json_array_len(json_path(b, "status.conditions")),
                         cases[i].finished ? 4 : 3);
    }
}

static void test_settled_status_is_not_written_again(void **state)
{
    Fixture *fx = *state;

    put_pod(fx, 1, OWNED TRACKED,
            "'phase':'Running','podIPs':[{'ip':'1'}],'conditions':[{'type':'PodScheduled',"
            "'status':'True'},{'type':'Ready','status':'True'}]");
    put_sandbox(
        fx, 2, "", "",
        "'selector':'" LABEL_NAME_HASH "=374de8f5','podIPs':['1'],'nodeName':'n1','conditions':[{"
        "'type':'Ready','status':'True','reason':'DependenciesReady','message':'Pod is Ready',"
        "'lastTransitionTime':'2026-01-01T00:00:00Z','observedGeneration':1},{'type':'Suspended',"
        "'status':'False','reason':'NotSuspended','message':'Sandbox is not suspended',"
        "'lastTransitionTime':'2026-01-01T00:00:00Z','observedGeneration':1},{'type':"
        "'PodScheduled','status':'True','reason':'PodScheduled','message':'',"
        "'lastTransitionTime':'2026-01-01T00:00:00Z','observedGeneration':1}]");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    assert_int_equal(fx->plan.wake_ms, TIME_NONE);
}

static void test_transition_time_moves_with_the_status_only(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_pod(fx, 1, OWNED TRACKED, "'phase':'Failed'");
    put_sandbox(fx, 2, "", "",
                "'conditions':[{'type':'Ready','status':'False','reason':'DependenciesNotReady',"
                "'message':'x','lastTransitionTime':'2026-01-01T00:00:00Z'},{'type':'Suspended',"
                "'status':'True','reason':'PodTerminated','message':'x','lastTransitionTime':"
                "'2026-01-01T00:00:00Z'}]");
    b = status_of(fx);
    assert_str(json_str(fx_condition(b, "Ready"), "lastTransitionTime"), "2026-01-01T00:00:00Z");
    assert_str(json_str(fx_condition(b, "Suspended"), "lastTransitionTime"),
               "2026-09-21T14:13:20Z");
}

static void test_progress_waits_a_little(void **state)
{
    Fixture *fx = *state;
    Sandbox *s = put_sandbox(fx, 1, "", "", "");

    put_pod(fx, 2, OWNED TRACKED, "'phase':'Pending'");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    assert_int_equal(fx->plan.memo.status_due_ms, FX_NOW + 1000);
    assert_int_equal(fx->plan.wake_ms, FX_NOW + 1000);
    s->status_due_ms = fx->plan.memo.status_due_ms;
    fx->now_ms += 1000;
    plan(fx);
    assert_non_null(fx_op(fx, "sandbox-status"));
    /* nobody looks at a pool's member before it is ready */
    s = put_sandbox(fx, 3,
                    ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"
                    "'SandboxWarmPool','name':'p','uid':'pp','controller':true}]",
                    "", "");
    s->status_due_ms = TIME_NONE;
    plan(fx);
    assert_null(fx_op(fx, "sandbox-status"));
    assert_int_equal(fx->plan.memo.status_due_ms, fx->now_ms + 10000);
}

static void test_suspension(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_sandbox(fx, 1, "", "'operatingMode':'Suspended'", "");
    put_pod(fx, 2, OWNED TRACKED, "'phase':'Running'");
    plan(fx);
    b = fx_body(fx, "pod-suspend");
    assert_str(json_str(b, "preconditions.uid"), "pu");
    put_pod(fx, 3, ",'deletionTimestamp':'2026-09-21T14:13:00Z'" OWNED TRACKED,
            "'phase':'Running'");
    b = status_of(fx);
    assert_null(fx_op(fx, "pod-suspend"));
    assert_condition(b, "Suspended", "False", "PodTerminating",
                     "Pod is terminating. Sandbox is suspending");
    assert_condition(b, "Ready", "False", "SandboxSuspended", "Sandbox is suspending");
    assert_non_null(fx_condition(b, "PodScheduled"));
    world_remove(fx->world, OBJ_POD, "ns", "my-sandbox", "pu", 4, fx->now_ms);
    b = status_of(fx);
    assert_condition(b, "Suspended", "True", "PodTerminated",
                     "Pod has been terminated. Sandbox is suspended");
    assert_condition(b, "Ready", "False", "SandboxSuspended", "Sandbox is suspended");
    assert_null(fx_condition(b, "PodScheduled"));
    assert_null(json_str(b, "status.nodeName"));
}

static void test_suspended_before_a_foreign_pod(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_sandbox(fx, 1, "", "'operatingMode':'Suspended'", "");
    put_pod(fx, 2, ",'labels':{'" LABEL_NAME_HASH "':'00000000'}",
            "'phase':'Running','podIPs':[{'ip':'9'}]");
    b = status_of(fx);
    assert_null(fx_op(fx, "pod-suspend"));
    assert_condition(b, "Suspended", "False", "PodNotOwned",
                     "Refused to delete pod because it is not owned by this sandbox");
    assert_condition(b, "Ready", "False", "SandboxSuspended", "Sandbox is suspending");
    assert_null(fx_condition(b, "PodScheduled"));
    assert_null(json_path(b, "status.podIPs"));
    assert_null(json_str(b, "status.nodeName"));
}

static void test_foreign_pod_is_left_alone(void **state)
{
    static const struct {
        const char *meta, *text;
    } cases[] = {
        {",'labels':{'" LABEL_NAME_HASH "':'00000000'}",
         "Error seen: cannot adopt unowned pod \"my-sandbox\": missing required pool "
         "authorization label (\"agents.x-k8s.io/adoptable\") or sandbox tracking label "
         "(\"agents.x-k8s.io/sandbox-name-hash\")"},
        {",'labels':{'" LABEL_NAME_HASH
         "':'374de8f5'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':"
         "'rs','uid':'ru','controller':true}]",
         "Error seen: pod \"my-sandbox\" is owned by ReplicaSet/rs (UID: ru), not by sandbox "
         "\"my-sandbox\""},
        /* its own name in the reference, but another UID: the Pod of a namesake */
        {",'labels':{'" LABEL_NAME_HASH
         "':'374de8f5'},'ownerReferences':[{'apiVersion':'agents.x-k8s.io/v1beta1','kind':"
         "'Sandbox','name':'my-sandbox','uid':'old','controller':true}]",
         "Error seen: pod \"my-sandbox\" is owned by Sandbox/my-sandbox (UID: old), not by sandbox "
         "\"my-sandbox\""},
    };
    Fixture *fx = *state;

    put_sandbox(fx, 1, "", "", "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const JsonValue *b;
        put_pod(fx, i + 2, cases[i].meta,
                "'phase':'Running','podIPs':[{'ip':'9'}],'conditions':[{'type':'Ready','status':"
                "'True'},{'type':'PodScheduled','status':'True'}]");
        b = status_of(fx);
        assert_int_equal(fx->plan.n_ops, 1);
        assert_condition(b, "Ready", "False", "ReconcilerError", cases[i].text);
        assert_null(json_path(b, "status.podIPs"));
        assert_null(fx_condition(b, "PodScheduled"));
    }
}

static void test_adoption_of_an_unowned_pod(void **state)
{
    static const char *const metas[] = {
        TRACKED,
        ",'labels':{'" LABEL_NAME_HASH "':'00000000','" LABEL_ADOPTABLE "':'true'}",
    };
    Fixture *fx = *state;

    put_sandbox(fx, 1, "", "", "");
    for (size_t i = 0; i < ARRAY_SIZE(metas); i++) {
        const JsonValue *b;
        put_pod(fx, i + 2, metas[i], "'phase':'Running'");
        plan(fx);
        b = fx_body(fx, "pod-adopt");
        assert_str(json_str(b, "metadata.uid"), "pu");
        assert_non_null(json_str(b, "metadata.resourceVersion"));
        assert_str(json_str(json_array_at(json_path(b, "metadata.ownerReferences"), 0), "uid"),
                   "su");
    }
}

static void test_unlabelled_pod_is_read_again(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 1, "", "", "");
    put_pod(fx, 2, "", "'phase':'Running'");
    plan(fx);
    assert_int_equal(fx->plan.need.type, NEED_GET);
    assert_int_equal(fx->plan.need.kind, OBJ_POD);
    fx_live(fx, OBJ_POD, "my-sandbox", "{}");
    assert_condition(status_of(fx), "Ready", "False", "ReconcilerError",
                     "Error seen: cannot adopt unowned pod \"my-sandbox\": missing required pool "
                     "authorization label (\"agents.x-k8s.io/adoptable\") or sandbox tracking "
                     "label (\"agents.x-k8s.io/sandbox-name-hash\")");
    assert_int_equal(fx->plan.wake_ms, FX_NOW + 30000);
}

static void test_several_pods_are_too_many(void **state)
{
    Fixture *fx = *state;
    static const char text[] = "multiple Pods (2) are controlled by this Sandbox; refusing to "
                               "choose or create a Pod";

    put_sandbox(fx, 1, "", "", "");
    put_pod(fx, 2, OWNED TRACKED, "'phase':'Running'");
    fx_put(fx, OBJ_POD, "second", "p2", 3, OWNED TRACKED, "", "'phase':'Running'");
    assert_condition(status_of(fx), "Ready", "False", "MultiplePods", text);
    assert_int_equal(fx->plan.n_ops, 1);
    assert_str(fx_event(fx, "MultiplePods")->message, text);
    put_sandbox(fx, 4, "", "",
                "'conditions':[{'type':'Ready','status':'False','reason':'MultiplePods'}]");
    (void)status_of(fx);
    assert_null(fx_event(fx, "MultiplePods")); /* only when it comes up */
}

static void test_terminating_pod_is_waited_for(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 1, "", "", "");
    put_pod(fx, 2, ",'deletionTimestamp':'2026-09-21T14:13:00Z'" OWNED TRACKED,
            "'phase':'Running'");
    plan(fx);
    assert_null(fx_op(fx, "pod-create"));
}

static void test_metadata_is_kept_in_step(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b, *labels, *annotations;

    put_sandbox(fx, 1, ",'labels':{'" LABEL_CREATED_BY "':'go-client'}",
                "'podTemplate':{'metadata':{'labels':{'team':'b','new':'1'},'annotations':{}}}",
                "");
    put_pod(fx, 2,
            OWNED ",'labels':{'" LABEL_NAME_HASH
                  "':'bad','team':'a','old':'1','theirs':'1','" LABEL_WARM_POOL
                  "':'P','" LABEL_CLAIM_UID
                  "':'forged'},'annotations':{'" ANNOTATION_PROPAGATED_LABELS
                  "':'old,team','" ANNOTATION_PROPAGATED_ANNOTATIONS "':'gone','gone':'x'}",
            "'phase':'Running'");
    plan(fx);
    b = fx_body(fx, "pod-metadata");
    labels = json_path(b, "metadata.labels");
    annotations = json_path(b, "metadata.annotations");
    assert_str(json_value_str(json_get(labels, LABEL_NAME_HASH)), "374de8f5");
    assert_str(json_str(labels, "team"), "b");
    assert_str(json_str(labels, "new"), "1");
    assert_true(json_has(labels, "old") && !json_get(labels, "old"));
    assert_false(json_has(labels, "theirs"));
    assert_true(json_has(labels, LABEL_WARM_POOL) && !json_get(labels, LABEL_WARM_POOL));
    assert_true(json_has(labels, LABEL_CLAIM_UID) && !json_get(labels, LABEL_CLAIM_UID));
    assert_str(json_value_str(json_get(labels, LABEL_CREATED_BY)), "go-client");
    assert_true(json_has(annotations, "gone") && !json_get(annotations, "gone"));
    assert_str(json_value_str(json_get(annotations, ANNOTATION_PROPAGATED_LABELS)), "new,team");
    assert_str(json_value_str(json_get(annotations, ANNOTATION_PROPAGATED_ANNOTATIONS)), "");
    assert_str(json_str(b, "metadata.uid"), "pu");
    assert_null(json_str(b, "metadata.resourceVersion"));
}

static void test_legacy_pod_name(void **state)
{
    Fixture *fx = *state;
    const JsonValue *b;

    put_sandbox(fx, 1, ",'annotations':{'" ANNOTATION_POD_NAME "':'elsewhere'}", "", "");
    fx_put(fx, OBJ_POD, "elsewhere", "pu", 2, OWNED TRACKED, "", "'phase':'Running'");
    plan(fx);
    assert_null(fx_op(fx, "clear-pod-name")); /* it is its Pod */
    assert_null(fx_op(fx, "pod-create"));
    world_remove(fx->world, OBJ_POD, "ns", "elsewhere", "pu", 3, fx->now_ms);
    fx_live(fx, OBJ_SANDBOX, "my-sandbox", DOC);
    plan(fx);
    b = fx_body(fx, "clear-pod-name");
    assert_true(json_has(json_path(b, "metadata.annotations"), ANNOTATION_POD_NAME));
    assert_str(fx_op(fx, "pod-create")->name, "my-sandbox");
}

static void test_expiry_has_two_steps(void **state)
{
    static const char marked[] =
        "'podIPs':['1'],'selector':'x','nodeName':'n','conditions':[{'type':'Ready','status':"
        "'False','reason':'SandboxExpired','message':'Sandbox has expired','lastTransitionTime':"
        "'2026-09-21T14:13:20Z','observedGeneration':1},{'type':'Finished','status':'True',"
        "'reason':'PodSucceeded'}]";
    Fixture *fx = *state;
    const JsonValue *b;

    put_pod(fx, 1, OWNED TRACKED, "'phase':'Running'");
    put_sandbox(fx, 2, "", "'shutdownTime':'2026-09-21T14:13:20Z'",
                "'conditions':[{'type':'PodScheduled','status':'True'},{'type':'Finished','status':"
                "'True','reason':'PodSucceeded'}]");
    fx->now_ms = FX_NOW - 1;
    plan(fx);
    assert_null(fx_op(fx, "pod-expire"));
    assert_int_equal(fx->plan.wake_ms, FX_NOW);
    fx->now_ms = FX_NOW; /* the instant itself counts */
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 1);
    b = fx_body(fx, "sandbox-status");
    assert_condition(b, "Ready", "False", "SandboxExpired", "Sandbox has expired");
    assert_null(fx_condition(b, "PodScheduled"));
    assert_non_null(fx_condition(b, "Finished"));
    put_sandbox(fx, 3, "", "'shutdownTime':'2026-09-21T14:13:20Z'", marked);
    plan(fx);
    assert_str(json_str(fx_body(fx, "pod-expire"), "preconditions.uid"), "pu");
    b = fx_body(fx, "sandbox-status");
    assert_true(json_has(json_get(b, "status"), "podIPs") && !json_path(b, "status.podIPs"));
    assert_true(json_has(json_get(b, "status"), "selector") && !json_path(b, "status.selector"));
    assert_false(json_has(json_get(b, "status"), "conditions"));
    put_sandbox(fx, 4, "", "'shutdownTime':'2026-09-21T14:13:20Z','shutdownPolicy':'Delete'",
                marked);
    plan(fx);
    b = fx_body(fx, "sandbox-expire");
    assert_str(json_str(b, "preconditions.uid"), "su");
    assert_str(json_str(b, "preconditions.resourceVersion"), "4");
    assert_non_null(fx_op(fx, "pod-expire"));
    assert_null(fx_op(fx, "sandbox-status"));
    assert_non_null(fx_event(fx, "SandboxExpired"));
}

static void test_expiry_spares_foreign_pods(void **state)
{
    Fixture *fx = *state;

    put_pod(fx, 1, TRACKED, "'phase':'Running'");
    put_sandbox(fx, 2, "", "'shutdownTime':'2026-01-01T00:00:00Z'",
                "'conditions':[{'type':'Ready','status':'False','reason':'SandboxExpired',"
                "'message':'Sandbox has expired','lastTransitionTime':'2026-09-21T14:13:20Z',"
                "'observedGeneration':1}]");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
}

static void test_revival(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 1, "", "'shutdownTime':'2030-01-01T00:00:00Z'",
                "'conditions':[{'type':'Ready','status':'False','reason':'SandboxExpired'}]");
    fx_live(fx, OBJ_SANDBOX, "my-sandbox", DOC);
    plan(fx);
    assert_non_null(fx_op(fx, "pod-create"));
}

static void test_refusal_is_shown_and_waited_out(void **state)
{
    Fixture *fx = *state;
    Sandbox *s = put_sandbox(fx, 1, "", "", "");

    fx_live(fx, OBJ_SANDBOX, "my-sandbox", DOC);
    world_set_trouble(fx->world, &s->obj, "exceeded quota", "Forbidden", FX_NOW + 2000);
    assert_condition(status_of(fx), "Ready", "False", "ReconcilerError",
                     "Error seen: exceeded quota");
    assert_null(fx_op(fx, "pod-create"));
    assert_int_equal(fx->plan.wake_ms, FX_NOW + 2000);
    fx->now_ms += 2000;
    plan(fx);
    assert_non_null(fx_op(fx, "pod-create"));
    /* the clock was put back: it is not waited for for hours */
    fx->now_ms -= 10 * 3600 * 1000;
    plan(fx);
    assert_non_null(fx_op(fx, "pod-create"));
}

static void test_unsupported_fields_are_named(void **state)
{
    static const struct {
        const char *spec, *text;
    } cases[] = {
        {"'service':true",
         "Error seen: spec.service is not supported by this version of the controller"},
        {"'volumeClaimTemplates':[{}]", "Error seen: spec.volumeClaimTemplates is not supported by "
                                        "this version of the controller"},
    };
    Fixture *fx = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        put_sandbox(fx, i + 1, "", cases[i].spec, "");
        assert_condition(status_of(fx), "Ready", "False", "ReconcilerError", cases[i].text);
        assert_int_equal(fx->plan.n_ops, 1);
    }
    put_sandbox(fx, 10, "", "'service':false", "");
    plan(fx);
    assert_int_equal(fx->plan.need.type, NEED_GET); /* goes on */
}

static void test_nothing_is_done_to_what_is_going(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 1, ",'deletionTimestamp':'2026-09-21T14:13:00Z'", "", "");
    plan(fx);
    assert_int_equal(fx->plan.n_ops, 0);
    assert_int_equal(fx->plan.need.type, NEED_NONE);
    fx_plan(fx, KEY_SANDBOX, "missing");
    assert_int_equal(fx->plan.n_ops, 0);
}

static void test_orphaned_sandbox_keeps_its_pod_isolated(void **state)
{
    Fixture *fx = *state;

    put_sandbox(fx, 1,
                ",'labels':{'" LABEL_TEMPLATE_REF "':'T','" LABEL_CLAIM_UID
                "':'C'},'managedFields':[{'manager':'sandbox-controller','fieldsV1':{'f:spec':{"
                "'f:podTemplate':{'f:spec':{}}}}}]",
                "", "");
    put_pod(fx, 2,
            OWNED ",'labels':{'" LABEL_NAME_HASH "':'374de8f5','" LABEL_TEMPLATE_REF "':'T'}",
            "'phase':'Running'");
    plan(fx);
    assert_null(fx_op(fx, "pod-metadata"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_creation_needs_the_whole_spec),
        FX_TEST(test_created_pod),
        FX_TEST(test_a_template_saves_the_read),
        FX_TEST(test_labels_of_extension_owners),
        FX_TEST(test_status_by_pod_state),
        FX_TEST(test_settled_status_is_not_written_again),
        FX_TEST(test_transition_time_moves_with_the_status_only),
        FX_TEST(test_progress_waits_a_little),
        FX_TEST(test_suspension),
        FX_TEST(test_suspended_before_a_foreign_pod),
        FX_TEST(test_foreign_pod_is_left_alone),
        FX_TEST(test_adoption_of_an_unowned_pod),
        FX_TEST(test_unlabelled_pod_is_read_again),
        FX_TEST(test_several_pods_are_too_many),
        FX_TEST(test_terminating_pod_is_waited_for),
        FX_TEST(test_metadata_is_kept_in_step),
        FX_TEST(test_legacy_pod_name),
        FX_TEST(test_expiry_has_two_steps),
        FX_TEST(test_expiry_spares_foreign_pods),
        FX_TEST(test_revival),
        FX_TEST(test_refusal_is_shown_and_waited_out),
        FX_TEST(test_unsupported_fields_are_named),
        FX_TEST(test_nothing_is_done_to_what_is_going),
        FX_TEST(test_orphaned_sandbox_keeps_its_pod_isolated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
