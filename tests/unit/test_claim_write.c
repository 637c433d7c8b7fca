/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/sandbox/claim.h"
#include "gateway/sandbox/model.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static char key[] = "team", value[] = "a";
static char owner_key[] = "mcp.k8s-agent-sandbox/session-id", forged[] = "forged";
static char *keys[] = {key, owner_key};
static char *values[] = {value, forged};

static JsonValue *written(const ClaimSpec *spec)
{
    _cleanup_buf_ Buf out = BUF_INIT(1 << 16);
    JsonValue *v = NULL;

    claim_write(&out, spec);
    assert_int_equal(json_parse(buf_str(&out), out.len, 64, JSON_PARSE_UNIQUE, &v, NULL), 0);
    return v;
}

static void test_whole_claim(_unused_ void **state)
{
    const JsonStringMap labels = {.keys = keys, .values = values, .len = 2};
    const JsonStringMap pod = {.keys = keys, .values = values, .len = 1};
    const JsonStringMap none = {0};
    ClaimSpec spec = {.ns = "ns",
                      .name = "c",
                      .warmpool = "pool",
                      .owner = "0123",
                      .created_by = "kubernetes:me",
                      .now_ms = 1764590000123,
                      .shutdown_ms = 1764590300999,
                      .labels = &labels,
                      .pod_labels = &pod,
                      .pod_annotations = &none};
    _cleanup_json_ JsonValue *v = written(&spec);
    const JsonValue *annotations = json_path(v, "metadata.annotations");

    assert_string_equal(json_str(v, "kind"), "SandboxClaim");
    assert_string_equal(json_str(v, "spec.warmPoolRef.name"), "pool");
    assert_string_equal(json_str(v, "spec.lifecycle.shutdownTime"), "2025-12-01T11:58:20Z");
    assert_string_equal(json_str(v, "spec.lifecycle.shutdownPolicy"), "Delete");
    assert_string_equal(json_str(v, "metadata.labels.team"), "a");
    assert_string_equal(json_value_str(json_get(json_path(v, "metadata.labels"), owner_key)),
                        "0123");
    assert_string_equal(json_value_str(json_get(annotations, "k8s-agent-sandbox-mcp/owner")),
                        "0123");
    assert_string_equal(json_value_str(json_get(annotations, "k8s-agent-sandbox-mcp/created-by")),
                        "kubernetes:me");
    assert_string_equal(
        json_value_str(json_get(annotations, "agents.x-k8s.io/client-first-requested-at")),
        "2025-12-01T11:53:20.123000Z");
    assert_string_equal(json_str(v, "spec.additionalPodMetadata.labels.team"), "a");
    assert_false(json_has(json_path(v, "spec.additionalPodMetadata"), "annotations"));
    /* What the gateway writes, it recognises. */
    ClaimModel *model = claim_model_new(v);
    assert_string_equal(model->owner, "0123");
    assert_int_equal(model->shutdown_ms, 1764590300000);
    assert_null(claim_model_free(model));
}

static void test_least_claim(_unused_ void **state)
{
    const JsonStringMap none = {0};
    ClaimSpec spec = {.ns = "ns",
                      .name = "c",
                      .warmpool = "pool",
                      .owner = "0123",
                      .created_by = "x",
                      .labels = &none,
                      .pod_labels = &none,
                      .pod_annotations = &none};
    _cleanup_json_ JsonValue *v = written(&spec);

    assert_false(json_has(json_get(v, "spec"), "lifecycle"));
    assert_false(json_has(json_get(v, "spec"), "additionalPodMetadata"));
    assert_int_equal(json_object_len(json_get(v, "spec")), 1);
}

static void test_names(_unused_ void **state)
{
    char a[CLAIM_NAME_MAX], b[CLAIM_NAME_MAX];

    claim_make_name(a);
    claim_make_name(b);
    assert_string_not_equal(a, b);
    assert_true(str_starts_with(a, "sandbox-claim-"));
    assert_true(str_is_dns_label(a));
}

static void test_nobody_gets_less_than_was_asked_for(_unused_ void **state)
{
    assert_int_equal(claim_shutdown_ms(1764590000000, 300), 1764590300000);
    assert_int_equal(claim_shutdown_ms(1764590000001, 300), 1764590301000);
    assert_int_equal(claim_shutdown_ms(1764590000999, 1), 1764590002000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_gets_less_than_was_asked_for),
        cmocka_unit_test(test_whole_claim),
        cmocka_unit_test(test_least_claim),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
