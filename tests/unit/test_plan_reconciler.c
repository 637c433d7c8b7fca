/* SPDX-License-Identifier: Apache-2.0 */
/* What the reconciler does with answers; against a port that only takes notes. */
#include "controller/reconciler.h"

#include "common/base/hashmap.h"
#include "common/base/str.h"
#include "controller/names.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#define NOW INT64_C(1790000000000) /* 2026-09-21T14:13:20Z */

/* A request that the port was given. */
typedef struct Sent {
    uint64_t ticket;
    char what[64]; /* purpose of an op; "get", "list" */
    char name[64];
    char *body;
    bool answered;
} Sent;

typedef struct Rig {
    Reconciler *r;
    Sent *sent;
    size_t n_sent;
    int64_t now_ms;
    unsigned events;
    uint64_t rv;
} Rig;

static Sent *note(Rig *rig, uint64_t ticket, const char *what, const char *name)
{
    Sent *s;

    if ((rig->n_sent & (rig->n_sent - 1)) == 0)
        rig->sent = xreallocarray(rig->sent, rig->n_sent ? rig->n_sent * 2 : 1, sizeof(Sent));
    s = &rig->sent[rig->n_sent++];
    *s = (Sent){.ticket = ticket};
    (void)snprintf(s->what, sizeof(s->what), "%s", what);
    (void)snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
    return s;
}

static void on_submit(uint64_t ticket, const PlanOp *op, void *userdata)
{
    note(userdata, ticket, op->purpose, op->name)->body = xstrndup(op->body, op->body_len);
}

static void on_get(uint64_t ticket, _unused_ ObjKind kind, _unused_ const char *ns,
                   const char *name, void *userdata)
{
    note(userdata, ticket, "get", name);
}

static void on_list(uint64_t ticket, _unused_ ObjKind kind, _unused_ const char *ns, void *userdata)
{
    note(userdata, ticket, "list", NULL);
}

static void on_event(_unused_ const PlanEvent *event, void *userdata)
{
    ((Rig *)userdata)->events++;
}

static int setup_with(void **state, unsigned max_inflight)
{
    Rig *rig = xnew(Rig);
    const ReconcilerOptions options = {
        .port = {.submit = on_submit,
                 .get = on_get,
                 .list = on_list,
                 .event = on_event,
                 .userdata = rig},
        .plan = plan_config_default,
        .max_inflight = max_inflight,
        .seed = 7,
    };

    rig->r = reconciler_new(&options);
    rig->now_ms = NOW;
    rig->rv = 100;
    reconciler_set_time(rig->r, NOW, 1000000);
    *state = rig;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, 0);
}

static int setup_narrow(void **state)
{
    return setup_with(state, 3);
}

static int teardown(void **state)
{
    Rig *rig = *state;

    reconciler_free(rig->r);
    for (size_t i = 0; i < rig->n_sent; i++)
        free(rig->sent[i].body);
    free(rig->sent);
    free(rig);
    return 0;
}

static JsonValue *parse(const char *single_quoted)
{
    char *text = xstrdup(single_quoted);
    JsonValue *v = NULL;

    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    if (json_parse(text, strlen(text), JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &v, NULL) < 0)
        fail_msg("not JSON: %s", text);
    free(text);
    return v;
}

static char *object_text(Rig *rig, const char *name, const char *uid, const char *meta,
                         const char *spec, const char *status)
{
    return xasprintf("{'metadata':{'namespace':'ns','name':'%s','uid':'%s','resourceVersion':"
                     "'%llu','generation':1,'creationTimestamp':'2026-09-21T14:00:00Z'%s},'spec':{"
                     "%s},'status':{%s}}",
                     name, uid, (unsigned long long)++rig->rv, meta, spec, status);
}

static void put(Rig *rig, ObjKind kind, const char *name, const char *uid, const char *meta,
                const char *spec, const char *status)
{
    _cleanup_free_ char *text = object_text(rig, name, uid, meta, spec, status);
    _cleanup_json_ JsonValue *doc = parse(text);

    reconciler_upsert(rig->r, kind, doc);
}

static void sync_all(Rig *rig)
{
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++) {
        reconciler_list_begin(rig->r, k, NULL);
        reconciler_list_end(rig->r, k, NULL, rig->rv - 100);
        reconciler_connected(rig->r, k, true);
    }
}

static void run(Rig *rig, int64_t after_ms)
{
    rig->now_ms += after_ms;
    reconciler_set_time(rig->r, rig->now_ms, 1000000 + rig->now_ms - NOW);
    reconciler_run(rig->r);
}

/* The only unanswered request of that kind. */
static Sent *only(const Rig *rig, const char *what)
{
    Sent *found = NULL;

    for (size_t i = 0; i < rig->n_sent; i++) {
        if (rig->sent[i].answered || !str_eq(rig->sent[i].what, what))
            continue;
        if (found)
            fail_msg("more than one \"%s\" is under way", what);
        found = &rig->sent[i];
    }
    return found;
}

static Sent *expect(const Rig *rig, const char *what)
{
    Sent *s = only(rig, what);

    if (!s)
        fail_msg("no \"%s\" is under way", what);
    return s;
}

static size_t open_requests(const Rig *rig)
{
    size_t n = 0;

    for (size_t i = 0; i < rig->n_sent; i++)
        n += !rig->sent[i].answered;
    return n;
}

static void answer(Rig *rig, Sent *s, ApiOutcome outcome, const char *object)
{
    _cleanup_json_ JsonValue *doc = object ? parse(object) : NULL;
    const ApiResult result = {.outcome = outcome, .object = doc, .message = "the reason"};

    s->answered = true;
    if (str_eq(s->what, "get"))
        reconciler_get_done(rig->r, s->ticket, &result);
    else if (str_eq(s->what, "list"))
        reconciler_list_done(rig->r, s->ticket, &result);
    else
        reconciler_op_done(rig->r, s->ticket, &result);
}

#define T_HASH "f10c3da3"
#define READY                                                                                      \
    "'podIPs':['1'],'nodeName':'n','selector':'" LABEL_NAME_HASH                                   \
    "=%s','conditions':[{'type':'Ready','status':'True','reason':'DependenciesReady','message':"   \
    "'Pod is Ready','lastTransitionTime':'2026-09-21T14:00:00Z','observedGeneration':1},{'type':"  \
    "'PodScheduled','status':'True','reason':'PodScheduled','message':'','lastTransitionTime':"    \
    "'2026-09-21T14:00:00Z','observedGeneration':1},{'type':'Suspended','status':'False',"         \
    "'reason':'NotSuspended','message':'Sandbox is not suspended','lastTransitionTime':"           \
    "'2026-09-21T14:00:00Z','observedGeneration':1}]"

/* A pool with one ready member "m", all settled. */
static void put_scene(Rig *rig)
{
    _cleanup_free_ char *status = xasprintf(READY, name_hash_of("m").s);
    _cleanup_free_ char *pool_status = xasprintf(
        "'replicas':1,'readyReplicas':1,'observedGeneration':1,'selector':'" LABEL_WARM_POOL "=%s'",
        name_hash_of("p").s);
    _cleanup_free_ char *pod_meta = xasprintf(
        ",'labels':{'" LABEL_NAME_HASH "':'%s','" LABEL_WARM_POOL "':'P','" LABEL_TEMPLATE_REF
        "':'" T_HASH "'},'ownerReferences':[{'apiVersion':'agents.x-k8s.io/v1beta1','kind':"
        "'Sandbox','name':'m','uid':'mu','controller':true}]",
        name_hash_of("m").s);

    put(rig, OBJ_TEMPLATE, "t", "tu", ",'labels':{'" LABEL_TEMPLATE_REF "':'" T_HASH "'}",
        "'networkPolicyManagement':'Unmanaged','podTemplate':{'spec':{}}", "");
    put(rig, OBJ_POOL, "p", "pu", "", "'replicas':1,'sandboxTemplateRef':{'name':'t'}",
        pool_status);
    put(rig, OBJ_SANDBOX, "m", "mu",
        ",'labels':{'" LABEL_WARM_POOL "':'P','" LABEL_TEMPLATE_REF "':'" T_HASH
        "'},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"
        "'SandboxWarmPool','name':'p','uid':'pu','controller':true}]",
        "", status);
    put(rig, OBJ_POD, "m", "pm", pod_meta, "'nodeName':'n'",
        "'phase':'Running','podIPs':[{'ip':'1'}],'conditions':[{'type':'Ready','status':'True'},{"
        "'type':'PodScheduled','status':'True'}]");
}

static void put_claim(Rig *rig, const char *spec)
{
    _cleanup_free_ char *whole = xasprintf("'warmPoolRef':{'name':'p'}%s", spec);

    put(rig, OBJ_CLAIM, "c", "cu", "", whole, "");
}

static void settle_scene(Rig *rig)
{
    put_scene(rig);
    sync_all(rig);
    run(rig, 0);
    assert_int_equal(open_requests(rig), 0);
}

static void test_nothing_is_planned_before_all_is_listed(void **state)
{
    Rig *rig = *state;

    put_scene(rig);
    put_claim(rig, "");
    run(rig, 0);
    assert_int_equal(rig->n_sent, 0);
    assert_int_equal(reconciler_next_ms(rig->r), INT64_MAX);
    sync_all(rig);
    run(rig, 0);
    assert_non_null(only(rig, "transfer"));
}

/* The object as the transfer's answer shows it. */
static char *transferred(Rig *rig)
{
    _cleanup_free_ char *status = xasprintf(READY, name_hash_of("m").s);

    return object_text(rig, "m", "mu",
                       ",'labels':{'" LABEL_CLAIM_UID "':'cu','" LABEL_LAUNCH_TYPE
                       "':'warm','" LABEL_TEMPLATE_REF "':'" T_HASH
                       "'},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1',"
                       "'kind':'SandboxClaim','name':'c','uid':'cu','controller':true}]",
                       "'podTemplate':{'metadata':{'labels':{'" LABEL_CLAIM_UID
                       "':'cu','" LABEL_TEMPLATE_REF "':'" T_HASH "'}}}",
                       status);
}

#define CLAIM_META                                                                                 \
    ",'annotations':{'" ANNOTATION_SANDBOX_NAME "':'m','" ANNOTATION_FIRST_OBSERVED                \
    "':'x','" ANNOTATION_FIRST_READY "':'x'}"

static void test_two_round_trips_to_ready(void **state)
{
    Rig *rig = *state;
    _cleanup_free_ char *sandbox = NULL, *claim = NULL;

    settle_scene(rig);
    put_claim(rig, "");
    run(rig, 0);
    assert_int_equal(open_requests(rig), 2);
    sandbox = transferred(rig);
    claim = object_text(rig, "c", "cu", CLAIM_META, "'warmPoolRef':{'name':'p'}", "");
    answer(rig, expect(rig, "transfer"), API_OK, sandbox);
    assert_null(only(rig, "claim-status"));
    assert_int_equal(rig->events, 0);
    answer(rig, expect(rig, "claim-annotations"), API_OK, claim);
    assert_int_equal(rig->events, 1);
    run(rig, 0);
    /* no watch event was needed; the Pod's labels follow, and the pool is refilled */
    assert_non_null(only(rig, "claim-status"));
    assert_non_null(only(rig, "pod-metadata"));
    assert_non_null(only(rig, "pool-create"));
    assert_int_equal(open_requests(rig), 3);
}

static void test_conflict_reads_and_tries_again(void **state)
{
    Rig *rig = *state;
    _cleanup_free_ char *taken = NULL;

    settle_scene(rig);
    put_claim(rig, "");
    run(rig, 0);
    answer(rig, expect(rig, "claim-annotations"), API_OK, NULL);
    answer(rig, expect(rig, "transfer"), API_CONFLICT, NULL);
    taken = object_text(rig, "m", "mu",
                        ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1',"
                        "'kind':'SandboxClaim','name':'d','uid':'du','controller':true}]",
                        "", "");
    answer(rig, expect(rig, "get"), API_OK, taken);
    run(rig, 0);
    assert_string_equal(expect(rig, "cold-create")->name, "c"); /* somebody else has it */
}

static void test_lost_answer_is_looked_up(void **state)
{
    Rig *rig = *state;
    _cleanup_free_ char *sandbox = NULL;

    settle_scene(rig);
    put_claim(rig, "");
    run(rig, 0);
    answer(rig, expect(rig, "claim-annotations"), API_OK, NULL);
    answer(rig, expect(rig, "transfer"), API_UNKNOWN, NULL);
    sandbox = transferred(rig);
    answer(rig, expect(rig, "get"), API_OK, sandbox);
    run(rig, 0);
    assert_non_null(only(rig, "claim-status")); /* it was ours all along */
    assert_null(only(rig, "transfer"));
}

static void test_reservation_holds_while_the_outcome_is_open(void **state)
{
    Rig *rig = *state;

    settle_scene(rig);
    put_claim(rig, "");
    put(rig, OBJ_CLAIM, "d", "du", "", "'warmPoolRef':{'name':'p'}", "");
    run(rig, 0);
    assert_non_null(only(rig, "transfer")); /* one of the two gets it */
    assert_string_equal(expect(rig, "cold-create")->name, "d");
}

static void test_refusal_goes_into_the_status(void **state)
{
    Rig *rig = *state;

    settle_scene(rig);
    put(rig, OBJ_CLAIM, "e", "eu", "", "'warmPoolRef':{'name':'q'}", "");
    put(rig, OBJ_POOL, "q", "qu", "", "'replicas':0,'sandboxTemplateRef':{'name':'t'}", "");
    run(rig, 0);
    answer(rig, expect(rig, "pool-status"), API_RETRY, NULL);
    answer(rig, expect(rig, "claim-annotations"), API_OK, NULL);
    answer(rig, expect(rig, "cold-create"), API_REFUSED, NULL);
    run(rig, 0);
    assert_non_null(strstr(expect(rig, "claim-status")->body, "Error seen: the reason"));
    assert_null(only(rig, "cold-create"));
}

static void test_exists_is_read_and_not_taken_for_ours(void **state)
{
    Rig *rig = *state;
    _cleanup_free_ char *theirs = NULL;

    settle_scene(rig);
    put(rig, OBJ_POOL, "q", "qu", "", "'replicas':0,'sandboxTemplateRef':{'name':'t'}", "");
    put(rig, OBJ_CLAIM, "e", "eu", "", "'warmPoolRef':{'name':'q'}", "");
    run(rig, 0);
    answer(rig, expect(rig, "pool-status"), API_RETRY, NULL);
    answer(rig, expect(rig, "claim-annotations"), API_OK, NULL);
    answer(rig, expect(rig, "cold-create"), API_EXISTS, NULL);
    theirs = object_text(rig, "e", "xu", "", "", "");
    answer(rig, expect(rig, "get"), API_OK, theirs);
    run(rig, 0);
    assert_non_null(strstr(expect(rig, "claim-status")->body, "is not controlled by claim"));
}

static void test_retry_after_is_respected(void **state)
{
    Rig *rig = *state;
    const ApiResult busy = {.outcome = API_RETRY, .retry_after_ms = 7000};

    settle_scene(rig);
    put(rig, OBJ_POOL, "q", "qu", "", "'replicas':0,'sandboxTemplateRef':{'name':'t'}", "");
    run(rig, 0);
    Sent *s = expect(rig, "pool-status");
    s->answered = true;
    reconciler_op_done(rig->r, s->ticket, &busy);
    reconciler_op_done(rig->r, s->ticket, &busy); /* a ticket is good for one answer */
    run(rig, 6999);
    assert_null(only(rig, "pool-status"));
    run(rig, 1);
    assert_non_null(only(rig, "pool-status"));
}

/* The first create may still take effect after the second was put off or refused. */
static void test_open_creations_stay_open(void **state)
{
    static const ApiOutcome put_off[] = {API_RETRY, API_REFUSED, API_UNKNOWN};
    Rig *rig = *state;
    char name[64];

    settle_scene(rig);
    put(rig, OBJ_POOL, "q", "qu", "", "'replicas':1,'sandboxTemplateRef':{'name':'t'}", "");
    run(rig, 0);
    (void)snprintf(name, sizeof(name), "%s", expect(rig, "pool-create")->name);
    answer(rig, expect(rig, "pool-create"), API_UNKNOWN, NULL);
    answer(rig, expect(rig, "get"), API_NOT_FOUND, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(put_off); i++) {
        run(rig, 5000);
        if (only(rig, "pool-status"))
            answer(rig, expect(rig, "pool-status"), API_RETRY, NULL);
        run(rig, 5000);
        assert_string_equal(expect(rig, "pool-create")->name, name);
        answer(rig, expect(rig, "pool-create"), put_off[i], NULL);
        if (only(rig, "get"))
            answer(rig, expect(rig, "get"), API_NOT_FOUND, NULL);
    }
}

static void test_failed_list_collects_nothing(void **state)
{
    static const ApiOutcome failures[] = {API_UNKNOWN, API_REFUSED, API_RETRY, API_NOT_FOUND};
    Rig *rig = *state;

    settle_scene(rig);
    put(rig, OBJ_SANDBOX, "lost", "lu",
        ",'labels':{'" LABEL_CLAIM_UID "':'dead'},'managedFields':[{'manager':"
        "'sandbox-controller','fieldsV1':{'f:spec':{'f:podTemplate':{'f:spec':{}}}}}]",
        "'service':true", "");
    run(rig, 0);
    answer(rig, expect(rig, "sandbox-status"), API_NOT_FOUND, NULL);
    put(rig, OBJ_SANDBOX, "lost2", "lu2",
        ",'labels':{'" LABEL_CLAIM_UID "':'dead'},'managedFields':[{'manager':"
        "'sandbox-controller','fieldsV1':{'f:spec':{'f:podTemplate':{'f:spec':{}}}}}],"
        "'deletionGracePeriodSeconds':0",
        "", "");
    for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
        run(rig, 70000);
        answer(rig, expect(rig, "list"), failures[i], NULL);
        assert_null(only(rig, "orphan"));
    }
    run(rig, 70000);
    answer(rig, expect(rig, "list"), API_OK, NULL);
    assert_string_equal(expect(rig, "orphan")->name, "lost2");
}

#define JUST_MADE ",'creationTimestamp':'2026-09-21T14:13:20Z'"
#define MEMBER_META                                                                                \
    JUST_MADE ",'labels':{'" LABEL_WARM_POOL "':'P','" LABEL_TEMPLATE_REF "':'" T_HASH             \
              "'},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"   \
              "'SandboxWarmPool','name':'p','uid':'pu','controller':true}]"
#define MEMBER_POD                                                                                 \
    ",'labels':{'" LABEL_NAME_HASH "':'x'},'ownerReferences':[{'apiVersion':"                      \
    "'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':'m','uid':'mu','controller':true}]"

static void test_a_waiting_claim_gets_the_first_member(void **state)
{
    Rig *rig = *state;
    _cleanup_free_ char *status = xasprintf(READY, name_hash_of("m").s);

    put_scene(rig);
    put(rig, OBJ_SANDBOX, "m", "mu", MEMBER_META, "", "");
    put(rig, OBJ_POD, "m", "pm", MEMBER_POD, "", "'phase':'Pending'");
    put(rig, OBJ_CLAIM, "c", "cu", JUST_MADE, "'warmPoolRef':{'name':'p'}", "");
    sync_all(rig);
    run(rig, 500);
    assert_null(only(rig, "transfer"));
    assert_null(only(rig, "cold-create"));
    assert_null(only(rig, "claim-status"));
    put(rig, OBJ_POD, "m", "pm", MEMBER_POD, "'nodeName':'n'",
        "'phase':'Running','podIPs':[{'ip':'1'}],'conditions':[{'type':'Ready','status':'True'}]");
    put(rig, OBJ_SANDBOX, "m", "mu", MEMBER_META, "", status);
    run(rig, 0);
    assert_non_null(only(rig, "transfer"));
}

/* A claim that ends wants to delete its Sandbox while a write of the Sandbox's own key is out; that
 * one fails, so nothing changes, and still the claim has its turn. */
static void test_who_waits_for_an_answer_has_its_turn(void **state)
{
    static const char expired[] =
        "'sandbox':{'name':'m'},'conditions':[{'type':'Ready','status':'False','reason':"
        "'ClaimExpired','message':'Claim expired. Sandbox cleanup initiated.',"
        "'lastTransitionTime':'2026-09-21T14:00:00Z','observedGeneration':1}]";
    Rig *rig = *state;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ JsonValue *doc = NULL;

    settle_scene(rig);
    put(rig, OBJ_SANDBOX, "m", "mu",
        ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"
        "'SandboxClaim','name':'c','uid':'cu','controller':true}]",
        "'service':true", "");
    run(rig, 0);
    assert_non_null(only(rig, "sandbox-status"));
    text = object_text(rig, "c", "cu", "",
                       "'warmPoolRef':{'name':'p'},'lifecycle':{'shutdownTime':"
                       "'2026-09-21T14:00:00Z'}",
                       expired);
    doc = parse(text);
    reconciler_upsert(rig->r, OBJ_CLAIM, doc);
    run(rig, 0);
    assert_null(only(rig, "claim-expire-sandbox"));
    answer(rig, expect(rig, "sandbox-status"), API_RETRY, NULL);
    run(rig, 0);
    assert_non_null(only(rig, "claim-expire-sandbox"));
}

static void test_clock_jump_is_noticed(void **state)
{
    Rig *rig = *state;
    uint64_t before;

    settle_scene(rig);
    before = reconciler_stats(rig->r).plans;
    run(rig, 10);
    assert_int_equal(reconciler_stats(rig->r).plans, before);
    rig->now_ms -= 3600 * 1000; /* the wall clock alone */
    reconciler_set_time(rig->r, rig->now_ms, 1000000 + 20);
    reconciler_run(rig->r);
    assert_true(reconciler_stats(rig->r).plans > before);
}

static void remove_object(Rig *rig, ObjKind kind, const char *name, const char *uid)
{
    _cleanup_free_ char *text = object_text(rig, name, uid, "", "", "");
    _cleanup_json_ JsonValue *doc = parse(text);

    reconciler_removed(rig->r, kind, doc);
}

static void run_all(Rig *rig, int64_t ms)
{
    for (int64_t t = 0; t < ms; t += 100)
        run(rig, 100);
}

/* A Pod whose Sandbox is gone has no Sandbox's key to be planned under. */
static void test_a_clock_put_back_keeps_no_pod(void **state)
{
    Rig *rig = *state;

    settle_scene(rig);
    remove_object(rig, OBJ_SANDBOX, "m", "mu");
    run(rig, 100);
    assert_null(only(rig, "owner-gone"));
    rig->now_ms -= 3600 * 1000; /* the wall clock alone */
    reconciler_set_time(rig->r, rig->now_ms, 1000000 + 200);
    reconciler_run(rig->r);
    assert_non_null(only(rig, "owner-gone"));
}

/* The claim goes while its Sandbox's transfer is on its way: nothing tells of that afterwards. */
static void test_what_a_claim_gets_too_late_is_not_kept(void **state)
{
    Rig *rig = *state;
    _cleanup_free_ char *object = NULL;

    settle_scene(rig);
    put_claim(rig, "");
    run(rig, 0);
    Sent *transfer = expect(rig, "transfer");
    remove_object(rig, OBJ_CLAIM, "c", "cu");
    object = transferred(rig);
    answer(rig, transfer, API_OK, object);
    run_all(rig, 5000);
    assert_non_null(only(rig, "owner-gone"));
}

/* The same of a pool's new member. */
static void test_what_a_pool_gets_too_late_is_not_kept(void **state)
{
    Rig *rig = *state;
    _cleanup_free_ char *object = NULL;

    settle_scene(rig);
    put(rig, OBJ_POOL, "p", "pu", "", "'replicas':2,'sandboxTemplateRef':{'name':'t'}", "");
    run(rig, 0);
    Sent *create = expect(rig, "pool-create");
    remove_object(rig, OBJ_SANDBOX, "m", "mu");
    remove_object(rig, OBJ_POD, "m", "pm");
    remove_object(rig, OBJ_POOL, "p", "pu");
    _cleanup_free_ char *name = xstrdup(create->name);
    object = object_text(rig, name, "nu",
                         ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1',"
                         "'kind':'SandboxWarmPool','name':'p','uid':'pu','controller':true}]",
                         "", "");
    answer(rig, create, API_OK, object);
    run_all(rig, 5000);
    assert_string_equal(expect(rig, "owner-gone")->name, name);
}

/* What waits for a deadline or a back-off is no backlog. */
static void test_backlog_is_empty_at_rest(void **state)
{
    Rig *rig = *state;

    settle_scene(rig);
    put(rig, OBJ_CLAIM, "c", "cu", "",
        "'warmPoolRef':{'name':'p'},'lifecycle':{'shutdownTime':'2026-09-21T15:13:20Z'}", "");
    assert_int_equal(reconciler_stats(rig->r).queued, 1);
    run(rig, 0);
    answer(rig, expect(rig, "transfer"), API_RETRY, NULL);
    answer(rig, expect(rig, "claim-annotations"), API_OK, NULL);
    run(rig, 0);
    assert_int_equal(open_requests(rig), 0); /* the back-off is waited out */
    assert_int_equal(reconciler_stats(rig->r).queued, 0);
    assert_true(reconciler_stats(rig->r).delayed > 0);
}

static void test_ceiling_of_requests(void **state)
{
    Rig *rig = *state;

    put_scene(rig);
    sync_all(rig);
    put(rig, OBJ_POOL, "p", "pu", "", "'replicas':3,'sandboxTemplateRef':{'name':'t'}", "");
    for (int i = 0; i < 10; i++) {
        _cleanup_free_ char *name = xasprintf("z%d", i);
        put(rig, OBJ_CLAIM, name, name, "", "'warmPoolRef':{'name':'none'}", "");
    }
    run(rig, 0);
    assert_true(reconciler_stats(rig->r).inflight <= 4); /* a plan is sent whole */
    assert_int_equal(reconciler_next_ms(rig->r), INT64_MAX);
}

#define STORM 10000
#define STORM_SPEC                                                                                 \
    "'warmPoolRef':{'name':'p'},'lifecycle':{'shutdownTime':'2026-09-21T14:14:20Z',"               \
    "'shutdownPolicy':'Delete'}"
#define STORM_META ",'annotations':{'" ANNOTATION_FIRST_OBSERVED "':'x'}"
#define STORM_STATUS(reason, message)                                                              \
    "'conditions':[{'type':'Ready','status':'False','reason':'" reason "','message':'" message     \
    "','lastTransitionTime':'2026-09-21T14:00:00Z','observedGeneration':1}]"

static size_t count_open(const Rig *rig, const char *what)
{
    size_t n = 0;

    for (size_t i = 0; i < rig->n_sent; i++)
        n += !rig->sent[i].answered && str_eq(rig->sent[i].what, what);
    return n;
}

/* Everything that falls due together is sent together: the status of each first, then, without any
 * time passing, its deletion. */
static void test_ten_thousand_deadlines_at_once(void **state)
{
    Rig *rig = *state;

    sync_all(rig);
    for (int i = 0; i < STORM; i++) {
        _cleanup_free_ char *name = xasprintf("c%d", i);
        put(rig, OBJ_CLAIM, name, name, STORM_META, STORM_SPEC,
            STORM_STATUS("WarmPoolNotFound", "SandboxWarmPool \\'p\\' not found"));
    }
    run(rig, 0);
    assert_int_equal(count_open(rig, "get"), STORM); /* is there no pool? */
    for (size_t i = 0; i < STORM; i++)
        answer(rig, &rig->sent[i], API_NOT_FOUND, NULL);
    run(rig, 59999);
    assert_int_equal(open_requests(rig), 0);
    run(rig, 1);
    assert_int_equal(count_open(rig, "claim-status"), STORM);
    assert_int_equal(open_requests(rig), STORM);
    for (size_t i = STORM; i < 2 * STORM; i++) {
        _cleanup_free_ char *object =
            object_text(rig, rig->sent[i].name, rig->sent[i].name, STORM_META, STORM_SPEC,
                        STORM_STATUS("ClaimExpired", "Claim expired. Sandbox cleanup initiated."));
        answer(rig, &rig->sent[i], API_OK, object);
    }
    run(rig, 0);
    assert_int_equal(count_open(rig, "claim-expire"), STORM);
    for (size_t i = 2 * STORM; i < 3 * STORM; i++)
        answer(rig, &rig->sent[i], API_OK, "{'kind':'Status'}");
    run(rig, 0);
    assert_int_equal(open_requests(rig), 0);
    assert_int_equal(rig->events, 2 * STORM);
    assert_null(world_claim(reconciler_world(rig->r), "ns", "c0"));
}

/* A claim of no pool that is there, planned with nothing to write; returns the events so far. */
static unsigned plan_idle_claim(Rig *rig, const char *timeout)
{
    _cleanup_free_ char *meta = xasprintf(",'annotations':{'" ANNOTATION_FIRST_OBSERVED
                                          "':'x','" ANNOTATION_IDLE_TIMEOUT "':'%s'}",
                                          timeout);

    put(rig, OBJ_CLAIM, "c", "cu", meta, "'warmPoolRef':{'name':'p'}",
        STORM_STATUS("WarmPoolNotFound", "SandboxWarmPool \\'p\\' not found"));
    run(rig, 0);
    answer(rig, expect(rig, "get"), API_NOT_FOUND, NULL);
    assert_int_equal(open_requests(rig), 0);
    return rig->events;
}

/* Once for each value, however often the claim is planned or written. */
static void test_a_warning_is_given_once(void **state)
{
    Rig *rig = *state;

    sync_all(rig);
    assert_int_equal(plan_idle_claim(rig, "soon"), 1);
    assert_int_equal(plan_idle_claim(rig, "soon"), 1);
    run(rig, 60000);
    answer(rig, expect(rig, "get"), API_NOT_FOUND, NULL);
    assert_int_equal(rig->events, 1);
    assert_int_equal(plan_idle_claim(rig, "later"), 2);
    assert_int_equal(plan_idle_claim(rig, "9000"), 2);
    assert_int_equal(plan_idle_claim(rig, "later"), 3);
}

/* What is not sent, since the step it belongs to failed, is not forgotten. */
static void test_a_warning_outlives_a_failed_step(void **state)
{
    static const char idle[] = ",'annotations':{'" ANNOTATION_IDLE_TIMEOUT "':'soon'}";
    Rig *rig = *state;

    settle_scene(rig);
    put(rig, OBJ_CLAIM, "c", "cu", idle, "'warmPoolRef':{'name':'p'}", "");
    run(rig, 0);
    answer(rig, expect(rig, "claim-annotations"), API_OK, NULL);
    answer(rig, expect(rig, "transfer"), API_RETRY, NULL);
    assert_int_equal(rig->events, 0);
    run(rig, 60000);
    answer(rig, expect(rig, "claim-annotations"), API_OK, NULL);
    answer(rig, expect(rig, "transfer"), API_OK, NULL);
    assert_int_equal(rig->events, 2); /* this one and SandboxAdopted */
}

static void test_outcomes_of_errors(_unused_ void **state)
{
    static const struct {
        ErrorKind kind;
        ApiOutcome outcome;
    } cases[] = {
        {ERROR_CONFLICT, API_CONFLICT},   {ERROR_EXISTS, API_EXISTS},
        {ERROR_NOT_FOUND, API_NOT_FOUND}, {ERROR_DENIED, API_REFUSED},
        {ERROR_INVALID, API_REFUSED},     {ERROR_TOO_LARGE, API_REFUSED},
        {ERROR_EXHAUSTED, API_RETRY},     {ERROR_UNAUTHENTICATED, API_RETRY},
        {ERROR_UNAVAILABLE, API_UNKNOWN}, {ERROR_TIMEOUT, API_UNKNOWN},
        {ERROR_INTERNAL, API_UNKNOWN},    {ERROR_CANCELLED, API_UNKNOWN},
        {ERROR_GONE, API_RETRY},
    };
    _cleanup_error_ Error *e = NULL;

    assert_int_equal(api_outcome_of_error(NULL), API_OK);
    assert_int_equal(ARRAY_SIZE(cases), ERROR_KIND_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        error_set(&e, cases[i].kind, "x");
        e->reason = xstrdup("NotFound"); /* counts for one kind */
        assert_int_equal(api_outcome_of_error(e), cases[i].outcome);
    }
}

static ApiOutcome outcome_of_404(const char *body)
{
    _cleanup_error_ Error *e = kube_status_error("patch", "/x", 404, body, strlen(body), 0);

    return api_outcome_of_error(e);
}

/* What is taken for gone loses its children: only the API server's word about the object will do.
 */
static void test_not_every_404_is_about_the_object(_unused_ void **state)
{
    assert_int_equal(outcome_of_404("{\"kind\":\"Status\",\"reason\":\"NotFound\"}"),
                     API_NOT_FOUND);
    assert_int_equal(outcome_of_404("404 page not found\n"), API_RETRY);
    assert_int_equal(outcome_of_404("<html>no such host</html>"), API_RETRY);
    assert_int_equal(outcome_of_404(""), API_RETRY);
}

#define RIG_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_nothing_is_planned_before_all_is_listed),
        RIG_TEST(test_two_round_trips_to_ready),
        RIG_TEST(test_conflict_reads_and_tries_again),
        RIG_TEST(test_lost_answer_is_looked_up),
        RIG_TEST(test_reservation_holds_while_the_outcome_is_open),
        RIG_TEST(test_refusal_goes_into_the_status),
        RIG_TEST(test_exists_is_read_and_not_taken_for_ours),
        RIG_TEST(test_retry_after_is_respected),
        RIG_TEST(test_open_creations_stay_open),
        RIG_TEST(test_failed_list_collects_nothing),
        RIG_TEST(test_a_waiting_claim_gets_the_first_member),
        RIG_TEST(test_who_waits_for_an_answer_has_its_turn),
        RIG_TEST(test_clock_jump_is_noticed),
        RIG_TEST(test_backlog_is_empty_at_rest),
        RIG_TEST(test_a_clock_put_back_keeps_no_pod),
        RIG_TEST(test_what_a_claim_gets_too_late_is_not_kept),
        RIG_TEST(test_what_a_pool_gets_too_late_is_not_kept),
        cmocka_unit_test_setup_teardown(test_ceiling_of_requests, setup_narrow, teardown),
        RIG_TEST(test_ten_thousand_deadlines_at_once),
        cmocka_unit_test(test_not_every_404_is_about_the_object),
        RIG_TEST(test_a_warning_is_given_once),
        RIG_TEST(test_a_warning_outlives_a_failed_step),
        cmocka_unit_test(test_outcomes_of_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
