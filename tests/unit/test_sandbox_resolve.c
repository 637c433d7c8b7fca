/* SPDX-License-Identifier: Apache-2.0 */
/* From watch objects to what a call is told: the chain by UID, and the words where it ends. */
#include "common/base/str.h"
#include "gateway/sandbox/resolve.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

#define OWNER "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

static JsonValue *parse(const char *text)
{
    JsonValue *v = NULL;

    assert_int_equal(json_parse(text, strlen(text), 64, JSON_PARSE_UNIQUE, &v, NULL), 0);
    return v;
}

static const char *put(Store *s, StoreKind kind, char *text)
{
    _cleanup_free_ char *owned = text;
    _cleanup_json_ JsonValue *v = parse(owned);

    return store_put(s, kind, v);
}

/* more: further members of metadata, with a comma in front. */
static char *claim(const char *owner, const char *label, const char *more, const char *status)
{
    return xasprintf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"cu\","
                     "\"annotations\":{\"k8s-agent-sandbox-mcp/owner\":\"%s\"},"
                     "\"labels\":{\"mcp.k8s-agent-sandbox/session-id\":\"%s\"}%s},"
                     "\"spec\":{\"lifecycle\":{\"shutdownTime\":\"2030-01-01T00:00:00Z\"}},"
                     "\"status\":%s}",
                     owner, label, more, status);
}

static char *status(const char *sandbox, const char *ready, const char *reason, const char *message)
{
    return xasprintf("{\"sandbox\":{\"name\":\"%s\"},\"conditions\":[{\"type\":\"Finished\","
                     "\"status\":\"False\"},{\"type\":\"Ready\",\"status\":\"%s\",\"reason\":"
                     "\"%s\",\"message\":\"%s\"}]}",
                     sandbox, ready, reason, message);
}

static void put_claim(Store *s, const char *sandbox, const char *ready, const char *reason,
                      const char *message)
{
    _cleanup_free_ char *text = status(sandbox, ready, reason, message);

    assert_string_equal(put(s, STORE_CLAIMS, claim(OWNER, OWNER, "", text)), "ns/c");
}

static void put_ready_claim(Store *s)
{
    put_claim(s, "sb", "True", "DependenciesReady", "Pod is Ready");
}

static const char *put_sandbox(Store *s, const char *owner_uid, const char *more)
{
    return put(s, STORE_SANDBOXES,
               xasprintf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"sb\",\"uid\":\"su\","
                         "\"ownerReferences\":[{\"uid\":\"x\",\"name\":\"x\"},{\"controller\":true,"
                         "\"uid\":\"%s\",\"name\":\"c\"}]%s}}",
                         owner_uid, more));
}

static const char *put_pod(Store *s, const char *name, const char *owner_uid, const char *more,
                           const char *pod_status)
{
    return put(s, STORE_PODS,
               xasprintf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"pu\","
                         "\"ownerReferences\":[{\"controller\":true,\"uid\":\"%s\",\"name\":\"sb\"}"
                         "]%s},\"spec\":{\"containers\":[{\"name\":\"main\"},{\"name\":\"side\"}]},"
                         "\"status\":%s}",
                         name, owner_uid, more, pod_status));
}

#define RUNNING                                                                                    \
    "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"side\",\"state\":{\"waiting\":{}}}" \
    ",{\"name\":\"main\",\"containerID\":\"c://1\",\"state\":{\"running\":{}}}]}"

static SandboxView resolve(Store *s, const char *owner)
{
    SandboxView v;

    sandbox_resolve(s, "ns", "c", owner, &v);
    assert_non_null(v.reason);
    assert_true(v.message[0] != '\0');
    return v;
}

static int setup(void **state)
{
    *state = store_new();
    return 0;
}

static int teardown(void **state)
{
    *state = store_free(*state);
    return 0;
}

static void test_ready(void **state)
{
    Store *s = *state;
    SandboxView v;

    put_ready_claim(s);
    assert_string_equal(put_sandbox(s, "cu", ""), "ns/c");
    assert_string_equal(put_pod(s, "sb", "su", "", RUNNING), "ns/c");
    v = resolve(s, OWNER);
    assert_int_equal(v.state, SANDBOX_READY);
    assert_true(sandbox_is_usable(&v));
    assert_string_equal(v.pod_name, "sb");
    assert_string_equal(v.pod->container, "main");
    assert_string_equal(v.pod->container_id, "c://1");
    assert_string_equal(v.message, "Pod is Ready");
    assert_int_equal(v.claim->shutdown_ms, 1893456000000);
    assert_int_equal(store_size(s, STORE_PODS), 1);
}

static void test_foreign_and_missing_are_the_same(void **state)
{
    Store *s = *state;
    SandboxView missing = resolve(s, OWNER), foreign;

    put_ready_claim(s);
    foreign = resolve(s, OTHER);
    assert_int_equal(missing.state, SANDBOX_MISSING);
    assert_int_equal(foreign.state, SANDBOX_MISSING);
    assert_string_equal(missing.message, foreign.message);
    assert_string_equal(missing.message, "Sandbox claim 'c' is not found in namespace 'ns'");
    assert_null(foreign.claim);
}

static void test_owner_needs_annotation_and_label(void **state)
{
    Store *s = *state;

    (void)put(s, STORE_CLAIMS, claim(OWNER, OTHER, "", "{}"));
    assert_int_equal(resolve(s, OWNER).state, SANDBOX_MISSING);
    assert_int_equal(resolve(s, OTHER).state, SANDBOX_MISSING);
    (void)put(s, STORE_CLAIMS, claim("", "", "", "{}"));
    assert_int_equal(resolve(s, "").state, SANDBOX_MISSING);
}

static void test_default_container(void **state)
{
    Store *s = *state;

    put_ready_claim(s);
    (void)put_sandbox(s, "cu", "");
    (void)put_pod(s, "sb", "su",
                  ",\"annotations\":{\"kubectl.kubernetes.io/default-container\":\"side\"}",
                  "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"side\",\"state\":{"
                  "\"running\":{}}}]}");
    assert_string_equal(resolve(s, OWNER).pod->container, "side");
    (void)put_pod(s, "sb", "su",
                  ",\"annotations\":{\"kubectl.kubernetes.io/default-container\":\"nope\"}",
                  RUNNING);
    assert_string_equal(resolve(s, OWNER).pod->container, "main");
}

static void test_uids_are_checked(void **state)
{
    Store *s = *state;
    SandboxView v;

    put_ready_claim(s);
    v = resolve(s, OWNER); /* the sandbox is not there yet */
    assert_int_equal(v.state, SANDBOX_NOT_READY);
    assert_true(v.settling);
    (void)put_sandbox(s, "another claim", "");
    (void)put_pod(s, "sb", "su", "", RUNNING);
    v = resolve(s, OWNER);
    assert_int_equal(v.state, SANDBOX_NOT_READY);
    assert_string_equal(v.reason, "SandboxMissing");
    (void)put_sandbox(s, "cu", "");
    (void)put_pod(s, "sb", "another sandbox", "", RUNNING);
    v = resolve(s, OWNER);
    assert_int_equal(v.state, SANDBOX_NOT_READY);
    assert_string_equal(v.reason, "PodMissing");
    assert_null(v.pod_name);
}

static void test_pod_name_annotation(void **state)
{
    Store *s = *state;

    put_ready_claim(s);
    (void)put_sandbox(s, "cu", ",\"annotations\":{\"agents.x-k8s.io/pod-name\":\"old\"}");
    (void)put_pod(s, "old", "su", "", RUNNING);
    assert_string_equal(resolve(s, OWNER).pod_name, "old");
}

static void test_not_declared_ready(void **state)
{
    Store *s = *state;
    SandboxView v;

    put_claim(s, "sb", "False", "DependenciesNotReady", "Pod is Running but not Ready");
    (void)put_sandbox(s, "cu", "");
    (void)put_pod(s, "sb", "su", "", RUNNING);
    v = resolve(s, OWNER);
    assert_int_equal(v.state, SANDBOX_RUNNING);
    assert_true(sandbox_is_usable(&v));
    assert_string_equal(v.message, "Pod is Running but not Ready");
    assert_string_equal(v.reason, "DependenciesNotReady");
}

static void test_final_reasons(void **state)
{
    static const struct {
        const char *reason, *message;
        bool failed;
    } rows[] = {
        {"WarmPoolNotFound", "SandboxWarmPool \\\"x\\\" not found", true},
        {"TemplateNotFound", "no", true},
        {"InvalidMetadata", "no", true},
        {"ClaimExpired", "Claim expired", true},
        {"PodFailed", "Pod failed", true},
        {"ReconcilerError", "Error seen: pods \\\"x\\\" is forbidden: exceeded quota: q", true},
        {"ReconcilerError", "Error seen: admission webhook \\\"w\\\" denied the request: no", true},
        {"ReconcilerError", "Error seen: timeout", false},
        {"SandboxNotReady", "Sandbox is not ready", false},
        {"SandboxSuspended", "Sandbox is suspended", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SandboxView v;

        put_claim(*state, "", "False", rows[i].reason, rows[i].message);
        v = resolve(*state, OWNER);
        assert_int_equal(v.state, SANDBOX_NOT_READY);
        assert_int_equal(v.failed, rows[i].failed);
        assert_string_equal(v.reason, rows[i].reason);
        assert_false(v.settling);
    }
}

static void test_pods_that_do_not_run(void **state)
{
    static const struct {
        const char *more, *status, *reason, *words;
        bool failed, cannot_start;
    } rows[] = {
        {"",
         "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
         "\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/1 nodes\"}]}",
         "ContainerNotRunning", "Unschedulable: 0/1 nodes", false, false},
        {"",
         "{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{"
         "\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"no such image\"}}}]}",
         "ContainerNotRunning", "ImagePullBackOff: no such image", false, true},
        {"",
         "{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{"
         "\"waiting\":{\"reason\":\"ErrImageNeverPull\"}}}]}",
         "ContainerNotRunning", "ErrImageNeverPull", false, true},
        {"",
         "{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{"
         "\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}",
         "ContainerNotRunning", "ContainerCreating", false, false},
        {"", "{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on disk\"}",
         "PodFailed", "Evicted: low on disk", true, false},
        {"", "{\"phase\":\"Succeeded\"}", "PodSucceeded", "completed", true, false},
        {",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", RUNNING, "PodTerminating", "deleted",
         false, false},
        {"", "{}", "ContainerNotRunning", "no reason", false, false},
    };
    Store *s = *state;

    put_claim(s, "sb", "False", "DependenciesNotReady", "Pod exists with phase: Pending");
    (void)put_sandbox(s, "cu", "");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SandboxView v;

        (void)put_pod(s, "sb", "su", rows[i].more, rows[i].status);
        v = resolve(s, OWNER);
        assert_int_equal(v.state, SANDBOX_NOT_READY);
        assert_string_equal(v.reason, rows[i].reason);
        assert_int_equal(v.failed, rows[i].failed);
        assert_int_equal(v.cannot_start, rows[i].cannot_start);
        if (!strstr(v.message, rows[i].words))
            fail_msg("row %zu: %s", i, v.message);
    }
}

static void test_deleting(void **state)
{
    SandboxView v;

    (void)put(*state, STORE_CLAIMS,
              claim(OWNER, OWNER, ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "{}"));
    v = resolve(*state, OWNER);
    assert_int_equal(v.state, SANDBOX_NOT_READY);
    assert_true(v.failed);
}

static void test_relist_drops_what_was_not_mentioned(void **state)
{
    Store *s = *state;

    put_ready_claim(s);
    (void)put_sandbox(s, "cu", "");
    store_list_begin(s, STORE_CLAIMS, NULL);
    assert_int_equal(store_size(s, STORE_CLAIMS), 1); /* the old view stands meanwhile */
    store_list_end(s, STORE_CLAIMS, "elsewhere");
    assert_int_equal(store_size(s, STORE_CLAIMS), 1);
    store_list_end(s, STORE_CLAIMS, "ns");
    assert_int_equal(store_size(s, STORE_CLAIMS), 0);
    assert_int_equal(store_size(s, STORE_SANDBOXES), 1);
    store_list_begin(s, STORE_SANDBOXES, "ns");
    (void)put_sandbox(s, "cu", "");
    store_list_end(s, STORE_SANDBOXES, "ns");
    assert_int_equal(store_size(s, STORE_SANDBOXES), 1);
}

static void test_remove_names_the_claim(void **state)
{
    Store *s = *state;
    _cleanup_json_ JsonValue *pod = parse("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"sb\"}}");

    put_ready_claim(s);
    (void)put_sandbox(s, "cu", "");
    (void)put_pod(s, "sb", "su", "", RUNNING);
    assert_string_equal(store_remove(s, STORE_PODS, pod), "ns/c");
    assert_null(store_remove(s, STORE_PODS, pod));
    assert_string_equal(resolve(s, OWNER).reason, "PodMissing");
}

static void test_odd_objects_do_no_harm(void **state)
{
    static const char *const objects[] = {
        "null",
        "{}",
        "{\"metadata\":{\"namespace\":5,\"name\":[]}}",
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"c\",\"annotations\":[],\"labels\":\"x\","
        "\"ownerReferences\":{}},\"status\":{\"conditions\":{\"a\":1}}}",
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"c\"},\"status\":{\"conditions\":[null,5,"
        "{\"type\":\"Ready\"}],\"containerStatuses\":[null]},\"spec\":null}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
        for (int kind = 0; kind < STORE_KIND_MAX; kind++) {
            _cleanup_json_ JsonValue *v = parse(objects[i]);
            (void)store_put(*state, (StoreKind)kind, v);
        }
    assert_int_equal(resolve(*state, OWNER).state, SANDBOX_MISSING);
}

static void test_long_texts_are_cut_at_a_character(_unused_ void **state)
{
    _cleanup_buf_ Buf message = BUF_INIT(4096);
    Store *s = *state;

    for (int i = 0; i < 400; i++)
        (void)buf_append_str(&message, "x\xc3\xa9");
    put_claim(s, "", "False", "Waiting", buf_str(&message));
    SandboxView v = resolve(s, OWNER);
    assert_true(strlen(v.message) <= MODEL_TEXT_MAX);
    assert_true(str_is_utf8(v.message, strlen(v.message)));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_ready),
        T(test_foreign_and_missing_are_the_same),
        T(test_owner_needs_annotation_and_label),
        T(test_default_container),
        T(test_uids_are_checked),
        T(test_pod_name_annotation),
        T(test_not_declared_ready),
        T(test_final_reasons),
        T(test_pods_that_do_not_run),
        T(test_deleting),
        T(test_relist_drops_what_was_not_mentioned),
        T(test_remove_names_the_claim),
        T(test_odd_objects_do_no_harm),
        T(test_long_texts_are_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
