/* SPDX-License-Identifier: Apache-2.0 */
/* Documents into views, and what is worked out from them once: hashes, defaults, names. */
#include "tests/unit/plan_fixture.h"

#include "controller/blueprint.h"

static void test_name_hash_vectors(_unused_ void **state)
{
    assert_str(name_hash_of("").s, "811c9dc5");
    assert_str(name_hash_of("a").s, "e40c292c");
    assert_str(name_hash_of("my-sandbox").s, "374de8f5");
    assert_str(name_hash_of("test-template").s, "69155462");
    assert_str(name_hash_of("warmpool").s, "8c6a35c6");
    assert_str(name_hash_of("py-pool-x7k2q").s, "18d6c5a5");
}

static void test_member_names(_unused_ void **state)
{
    uint64_t random = 1;
    char long_pool[201];
    char *a = pool_member_name("p", &random), *b = pool_member_name("p", &random), *c;

    assert_int_equal(strlen(a), strlen("p-xxxxx"));
    assert_true(str_starts_with(a, "p-"));
    assert_false(str_eq(a, b));
    memset(long_pool, 'x', 200);
    long_pool[200] = '\0';
    c = pool_member_name(long_pool, &random);
    assert_int_equal(strlen(c), 63);
    assert_true(str_is_dns_label(c));
    free(a);
    free(b);
    free(c);
}

static void test_created_by(_unused_ void **state)
{
    assert_null(created_by_normalised(NULL));
    assert_null(created_by_normalised(""));
    assert_str(created_by_normalised("go-client"), "go-client");
    assert_str(created_by_normalised("python-client"), "python-client");
    assert_str(created_by_normalised("controller"), "controller");
    assert_str(created_by_normalised("me"), "unknown");
}

static void test_reserved_keys(_unused_ void **state)
{
    assert_true(key_is_reserved("agents.x-k8s.io/x"));
    assert_true(key_is_reserved("extensions.agents.x-k8s.io/x"));
    assert_false(key_is_reserved("api.agents.x-k8s.io/x"));
    assert_false(key_is_reserved("team"));
}

static int parse(Fixture *fx, ObjKind kind, const char *text, Obj **ret)
{
    _cleanup_json_ JsonValue *doc = fx_json(text);

    return obj_parse(world_interner(fx->world), kind, doc, FX_NOW, ret, NULL);
}

static void test_what_is_null_is_absent(void **state)
{
    static const char meta[] = "{'metadata':{'namespace':'n','name':'x','uid':'u',"
                               "'resourceVersion':'1','labels':null,'annotations':null,"
                               "'ownerReferences':null,'managedFields':null},'spec':null,"
                               "'status':{'conditions':null,'podIPs':null}}";
    Fixture *fx = *state;

    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++) {
        Obj *o = NULL;
        assert_int_equal(parse(fx, k, meta, &o), 0);
        (void)obj_free(world_interner(fx->world), o);
    }
}

static void test_wrong_types_are_absent(void **state)
{
    Fixture *fx = *state;
    Obj *o = NULL;

    assert_int_equal(
        parse(fx, OBJ_SANDBOX,
              "{'metadata':{'namespace':'n','name':'x','uid':'u','resourceVersion':'1','labels':"
              "[],'ownerReferences':{}},'spec':{'shutdownTime':5,'service':'yes',"
              "'operatingMode':1,'podTemplate':3},'status':{'podIPs':'1','conditions':[null,7,{}],"
              "'nodeName':{}}}",
              &o),
        0);
    assert_int_equal(obj_sandbox(o)->shutdown_ms, TIME_NONE);
    assert_int_equal(obj_sandbox(o)->service, SERVICE_UNSET);
    assert_false(obj_sandbox(o)->suspended);
    assert_null(obj_sandbox(o)->status_node);
    (void)obj_free(world_interner(fx->world), o);
}

static void test_objects_without_identity_are_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{'metadata':{'name':'x','resourceVersion':'1'}}",
        "{'metadata':{'uid':'x','resourceVersion':'1'}}",
        "{'metadata':{'name':'x','uid':'u'}}",
        "{'metadata':{'name':'x','uid':'u','resourceVersion':'abc'}}",
        "{'metadata':{'name':'x','uid':'u','resourceVersion':'-1'}}",
    };
    Fixture *fx = *state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        Obj *o = NULL;
        if (parse(fx, OBJ_POD, bad[i], &o) == 0)
            fail_msg("%s was accepted", bad[i]);
    }
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"2026-09-21T14:13:20Z", FX_NOW},
        {"2026-09-21T16:13:20+02:00", FX_NOW},
        {"2026-09-21T14:13:20.5Z", FX_NOW + 500},
        {"9999-12-31T23:59:59Z", INT64_C(253402300799000)},
        {"1969-12-31T23:59:59Z", -1000},
        {"tomorrow", TIME_NONE},
    };
    Fixture *fx = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *spec = xasprintf("'lifecycle':{'shutdownTime':'%s'}", cases[i].text);
        const Claim *c = obj_claim(fx_put(fx, OBJ_CLAIM, "c", "u", i + 1, "", spec, ""));
        assert_int_equal(c->shutdown_ms, cases[i].ms);
    }
}

static void test_who_made_it(void **state)
{
    static const struct {
        ObjKind kind;
        const char *entry;
        bool made;
    } cases[] = {
        {OBJ_SANDBOX,
         "{'manager':'sandbox-controller','fieldsV1':{'f:spec':{'f:podTemplate':{'f:spec':{}}}}}",
         true},
        {OBJ_SANDBOX,
         "{'manager':'agent-sandbox-controller','fieldsV1':{'f:spec':{'f:podTemplate':{'f:spec':"
         "{}}}}}",
         true},
        /* a transfer or a status write of ours does not make a user's Sandbox ours */
        {OBJ_SANDBOX,
         "{'manager':'sandbox-controller','fieldsV1':{'f:spec':{'f:podTemplate':{'f:metadata':{}}}"
         "}}",
         false},
        {OBJ_SANDBOX,
         "{'manager':'sandbox-controller','subresource':'status','fieldsV1':{'f:spec':{"
         "'f:podTemplate':{'f:spec':{}}}}}",
         false},
        {OBJ_SANDBOX, "{'manager':'kubectl','fieldsV1':{'f:spec':{'f:podTemplate':{'f:spec':{}}}}}",
         false},
        {OBJ_POD, "{'manager':'sandbox-controller','fieldsV1':{'f:spec':{'f:containers':{}}}}",
         true},
        {OBJ_POD, "{'manager':'sandbox-controller','fieldsV1':{'f:metadata':{}}}", false},
    };
    Fixture *fx = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *meta = xasprintf(",'managedFields':[%s]", cases[i].entry);
        const Obj *o = fx_put(fx, cases[i].kind, "x", "u", i + 1, meta, "", "");
        if (o->made_by_controller != cases[i].made)
            fail_msg("case %zu", i);
    }
}

static const Template *put_template(Fixture *fx, uint64_t rv, const char *spec)
{
    return obj_template(fx_put(fx, OBJ_TEMPLATE, "test-template", "t", rv, "", spec, ""));
}

static void test_secure_defaults(void **state)
{
    static const struct {
        const char *spec;
        const char *token, *dns_policy, *nameserver;
    } cases[] = {
        {"'podTemplate':{'spec':{}}", "false", "None", "8.8.8.8"},
        {"'podTemplate':{'spec':{'automountServiceAccountToken':true}}", "true", "None", "8.8.8.8"},
        {"'podTemplate':{'spec':{'automountServiceAccountToken':null}}", "false", "None",
         "8.8.8.8"},
        {"'podTemplate':{'spec':{'dnsPolicy':'Default'}}", "false", "Default", NULL},
        {"'podTemplate':{'spec':{'dnsConfig':{'nameservers':['1.2.3.4']}}}", "false", "None",
         "8.8.8.8"},
        {"'networkPolicyManagement':'Unmanaged','podTemplate':{'spec':{}}", "false", NULL, NULL},
        {"'networkPolicy':{},'podTemplate':{'spec':{}}", "false", NULL, NULL},
        {"'networkPolicyManagement':'Managed','podTemplate':{'spec':{}}", "false", "None",
         "8.8.8.8"},
    };
    Fixture *fx = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const Template *t = put_template(fx, i + 1, cases[i].spec);
        JsonValue *spec = NULL;
        assert_int_equal(
            json_parse(t->pod_spec, t->pod_spec_len, 64, JSON_PARSE_UNIQUE, &spec, NULL), 0);
        fx_keep(fx, spec);
        assert_str(json_bool(spec, "automountServiceAccountToken", false) ? "true" : "false",
                   cases[i].token);
        assert_str(json_str(spec, "dnsPolicy"), cases[i].dns_policy);
        assert_str(json_value_str(json_array_at(json_path(spec, "dnsConfig.nameservers"), 0)),
                   cases[i].nameserver);
    }
}

static void test_default_network_policy(void **state)
{
    static const char expected[] =
        "{\"podSelector\":{\"matchLabels\":{\"agents.x-k8s.io/sandbox-template-ref-hash\":"
        "\"69155462\"}},\"policyTypes\":[\"Ingress\",\"Egress\"],\"ingress\":[{\"from\":[{"
        "\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":"
        "\"agent-sandbox-system\"}},\"podSelector\":{\"matchLabels\":{\"app\":\"sandbox-router\"}}"
        "}]}],\"egress\":[{\"to\":[{\"ipBlock\":{\"cidr\":\"0.0.0.0/0\",\"except\":["
        "\"10.0.0.0/8\",\"172.16.0.0/12\",\"192.168.0.0/16\",\"169.254.0.0/16\"]}},{\"ipBlock\":{"
        "\"cidr\":\"::/0\",\"except\":[\"fc00::/7\",\"fe80::/10\"]}}]}]}";
    Fixture *fx = *state;

    assert_str(put_template(fx, 1, "'podTemplate':{'spec':{}}")->policy_spec, expected);
}

static void test_policy_hash_sees_through_defaulting(_unused_ void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"{'ingress':[{'ports':[{'port':80}]}]}",
         "{'ingress':[{'ports':[{'protocol':'TCP','port':80}]}]}", true},
        {"{'ingress':[]}", "{}", true},
        {"{'egress':[{}]}", "{}", false},
        {"{'egress':[{}]}", "{'ingress':[{}]}", false},
        {"{'ingress':[{'ports':[{'port':80}]}]}",
         "{'ingress':[{'ports':[{'protocol':'UDP','port':80}]}]}", false},
        {"{'podSelector':{'matchLabels':{'a':'1'}}}",
         "{'podSelector':{'matchLabels':{'a':'1','b':'2'}}}", false},
        {"{'ingress':[{'from':[{'podSelector':{}}]}]}", "{'ingress':[{'from':[]}]}", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_json_ JsonValue *a = fx_json(cases[i].a), *b = fx_json(cases[i].b);
        if ((blueprint_policy_hash(a) == blueprint_policy_hash(b)) != cases[i].same)
            fail_msg("case %zu", i);
    }
}

static uint64_t sandbox_blueprint(Fixture *fx, uint64_t rv, const char *spec)
{
    return obj_sandbox(fx_put(fx, OBJ_SANDBOX, "s", "s", rv, "", spec, ""))->blueprint_hash;
}

static void test_blueprint_compares_what_matters(void **state)
{
    static const char base[] = "'podTemplate':{'spec':{'containers':[{'name':'a'}],"
                               "'automountServiceAccountToken':false,'dnsPolicy':'None',"
                               "'dnsConfig':{'nameservers':['8.8.8.8','1.1.1.1']}}}";
    Fixture *fx = *state;
    const Template *t = put_template(fx, 1,
                                     "'podTemplate':{'metadata':{'labels':{'l':'1'}},'spec':{"
                                     "'containers':[{'name':'a'}]}}");
    uint64_t made = sandbox_blueprint(fx, 1, base);

    assert_true(made == t->blueprint_hash); /* metadata and order of keys do not count */
    assert_true(made !=
                sandbox_blueprint(fx, 2, "'podTemplate':{'spec':{'containers':[{'name':'b'}]}}"));
    _cleanup_free_ char *with_service = xasprintf("%s,'service':false", base);
    assert_true(made != sandbox_blueprint(fx, 3, with_service));
    _cleanup_free_ char *ab = xasprintf(
        "%s,'volumeClaimTemplates':[{'metadata':{'name':'a'}},{'metadata':{'name':'b'}}]", base);
    _cleanup_free_ char *ba = xasprintf(
        "%s,'volumeClaimTemplates':[{'metadata':{'name':'b'}},{'metadata':{'name':'a'}}]", base);
    assert_true(sandbox_blueprint(fx, 4, ab) != sandbox_blueprint(fx, 5, ba));
}

static void test_pod_view(void **state)
{
    Fixture *fx = *state;
    const Pod *p = obj_pod(fx_put(
        fx, OBJ_POD, "p", "p", 1,
        ",'labels':{'x':'1'},'annotations':{'agents.x-k8s.io/propagated-annotations':'a,b','a':"
        "'1','c':'3'}",
        "'nodeName':'n1'",
        "'phase':'Running','podIPs':[{'ip':'10.0.0.1'},{'ip':'fd::1'}],'conditions':[{'type':"
        "'Ready','status':'True'},{'type':'PodScheduled','status':'False','reason':'R','message':"
        "'M'}]"));

    assert_int_equal(p->phase, POD_RUNNING);
    assert_true(p->ready);
    assert_int_equal(p->ips->len, 2);
    assert_str(p->ips->items[1], "fd::1");
    assert_int_equal(p->scheduled, CONDITION_FALSE);
    assert_str(p->scheduled_reason, "R");
    assert_str(strmap_get(p->annotations, "a"), "1");
    assert_null(strmap_get(p->annotations, "c")); /* somebody else's: not kept */
}

static void test_keys(_unused_ void **state)
{
    _cleanup_free_ char *key = key_format(KEY_CLAIM, "ns", "a.b-c");
    KeyKind kind;
    const char *ns, *name;
    size_t len;

    assert_str(key, "claim/ns/a.b-c");
    assert_true(key_split(key, &kind, &ns, &len, &name));
    assert_int_equal(kind, KEY_CLAIM);
    assert_int_equal(len, 2);
    assert_str(name, "a.b-c");
    assert_false(key_split("claim", &kind, &ns, &len, &name));
    assert_false(key_split("claim/ns", &kind, &ns, &len, &name));
    assert_false(key_split("other/ns/name", &kind, &ns, &len, &name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name_hash_vectors),
        cmocka_unit_test(test_member_names),
        cmocka_unit_test(test_created_by),
        cmocka_unit_test(test_reserved_keys),
        FX_TEST(test_what_is_null_is_absent),
        FX_TEST(test_wrong_types_are_absent),
        FX_TEST(test_objects_without_identity_are_refused),
        FX_TEST(test_times),
        FX_TEST(test_who_made_it),
        FX_TEST(test_secure_defaults),
        FX_TEST(test_default_network_policy),
        cmocka_unit_test(test_policy_hash_sees_through_defaulting),
        FX_TEST(test_blueprint_compares_what_matters),
        FX_TEST(test_pod_view),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
