/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/model_fields.h"

#include "controller/names.h"

#define LABELS "metadata.labels"
#define ANNOTATIONS "metadata.annotations"

#define SANDBOX(t, field, ...)                                                                     \
    {                                                                                              \
        .type = (t), .offset = offsetof(Sandbox, field), .path = __VA_ARGS__                       \
    }
static const ViewField sandbox_fields[] = {
    SANDBOX(VIEW_OUR_LABELS, labels, LABELS),
    SANDBOX(VIEW_STRING, template_ref, ANNOTATIONS, ANNOTATION_TEMPLATE_REF),
    SANDBOX(VIEW_STRING, legacy_pod_name, ANNOTATIONS, ANNOTATION_POD_NAME),
    SANDBOX(VIEW_EXISTS, has_legacy_pod_name, ANNOTATIONS, ANNOTATION_POD_NAME),
    SANDBOX(VIEW_WORD_IS, suspended, "spec.operatingMode", NULL, "Suspended"),
    SANDBOX(VIEW_WORD_IS, shutdown_delete, "spec.shutdownPolicy", NULL, "Delete"),
    SANDBOX(VIEW_PRESENT, has_volume_claims, "spec.volumeClaimTemplates"),
    SANDBOX(VIEW_SERVICE, service, "spec.service"),
    SANDBOX(VIEW_TIME, shutdown_ms, "spec.shutdownTime"),
    SANDBOX(VIEW_MAP, pod_labels, "spec.podTemplate.metadata.labels"),
    SANDBOX(VIEW_MAP, pod_annotations, "spec.podTemplate.metadata.annotations"),
    SANDBOX(VIEW_CONDITIONS, conditions, "status.conditions"),
    SANDBOX(VIEW_STRING, status_selector, "status.selector"),
    SANDBOX(VIEW_STRING, status_service, "status.service"),
    SANDBOX(VIEW_STRING, status_service_fqdn, "status.serviceFQDN"),
    SANDBOX(VIEW_STRING, status_node, "status.nodeName"),
    SANDBOX(VIEW_LIST, status_pod_ips, "status.podIPs"),
    SANDBOX(VIEW_MEMO, reserved_for, NULL),
    SANDBOX(VIEW_TIME_UNSET, status_due_ms, NULL),
};

#define CLAIM(t, field, ...)                                                                       \
    {                                                                                              \
        .type = (t), .offset = offsetof(Claim, field), .path = __VA_ARGS__                         \
    }
static const ViewField claim_fields[] = {
    CLAIM(VIEW_STRING, created_by, LABELS, LABEL_CREATED_BY),
    CLAIM(VIEW_STRING, legacy_sandbox, LABELS, LABEL_SANDBOX_NAME),
    CLAIM(VIEW_STRING, owner_hash, LABELS, LABEL_SESSION_ID),
    CLAIM(VIEW_STRING, assigned, ANNOTATIONS, ANNOTATION_SANDBOX_NAME),
    CLAIM(VIEW_STRING, first_observed, ANNOTATIONS, ANNOTATION_FIRST_OBSERVED),
    CLAIM(VIEW_STRING, first_ready, ANNOTATIONS, ANNOTATION_FIRST_READY),
    CLAIM(VIEW_STRING, trace_context, ANNOTATIONS, ANNOTATION_TRACE_CONTEXT),
    CLAIM(VIEW_STRING, last_activity, ANNOTATIONS, ANNOTATION_LAST_ACTIVITY),
    CLAIM(VIEW_STRING, exec_lease, ANNOTATIONS, ANNOTATION_EXEC_LEASE),
    CLAIM(VIEW_STRING, pool, "spec.warmPoolRef.name"),
    CLAIM(VIEW_TIME, shutdown_ms, "spec.lifecycle.shutdownTime"),
    CLAIM(VIEW_INT, ttl_seconds, "spec.lifecycle.ttlSecondsAfterFinished"),
    CLAIM(VIEW_WORD, policy, "spec.lifecycle.shutdownPolicy", NULL,
          "Retain Delete DeleteForeground"),
    CLAIM(VIEW_PRESENT, has_env, "spec.env"),
    CLAIM(VIEW_PRESENT, has_volume_claims, "spec.volumeClaimTemplates"),
    CLAIM(VIEW_MAP, extra_labels, "spec.additionalPodMetadata.labels"),
    CLAIM(VIEW_MAP, extra_annotations, "spec.additionalPodMetadata.annotations"),
    CLAIM(VIEW_CONDITIONS, conditions, "status.conditions"),
    CLAIM(VIEW_STRING, status_sandbox, "status.sandbox.name"),
    CLAIM(VIEW_STRING, status_service_fqdn, "status.sandbox.serviceFQDN"),
    CLAIM(VIEW_LIST, status_pod_ips, "status.sandbox.podIPs"),
    CLAIM(VIEW_MEMO, attempt, NULL),
    CLAIM(VIEW_MEMO, bad_idle_timeout, NULL),
    CLAIM(VIEW_TIME_UNSET, idle_timeout_ms, NULL),
    CLAIM(VIEW_TIME_UNSET, activity_ms, NULL),
    CLAIM(VIEW_TIME_UNSET, lease_ms, NULL),
    CLAIM(VIEW_TIME_UNSET, first_seen_ms, NULL),
    CLAIM(VIEW_TIME_UNSET, ready_seen_ms, NULL),
};

#define POOL(t, field, ...)                                                                        \
    {                                                                                              \
        .type = (t), .offset = offsetof(Pool, field), .path = __VA_ARGS__                          \
    }
static const ViewField pool_fields[] = {
    POOL(VIEW_INT, replicas, "spec.replicas"),
    POOL(VIEW_STRING, template_name, "spec.sandboxTemplateRef.name"),
    POOL(VIEW_WORD_IS, recreate, "spec.updateStrategy.type", NULL, "Recreate"),
    POOL(VIEW_INT, status_replicas, "status.replicas"),
    POOL(VIEW_INT, status_ready, "status.readyReplicas"),
    POOL(VIEW_INT, status_observed_generation, "status.observedGeneration"),
    POOL(VIEW_STRING, status_selector, "status.selector"),
    POOL(VIEW_MEMO_LIST, pending, NULL),
    POOL(VIEW_TIME_UNSET, status_due_ms, NULL),
};

#define TEMPLATE(t, field, ...)                                                                    \
    {                                                                                              \
        .type = (t), .offset = offsetof(Template, field), .path = __VA_ARGS__                      \
    }
static const ViewField template_fields[] = {
    TEMPLATE(VIEW_STRING, ref_hash_label, LABELS, LABEL_TEMPLATE_REF),
    TEMPLATE(VIEW_MAP, pod_labels, "spec.podTemplate.metadata.labels"),
    TEMPLATE(VIEW_MAP, pod_annotations, "spec.podTemplate.metadata.annotations"),
    TEMPLATE(VIEW_TEXT, pod_spec, NULL),
    TEMPLATE(VIEW_PRESENT, has_volume_claims, "spec.volumeClaimTemplates"),
    TEMPLATE(VIEW_SERVICE, service, "spec.service"),
    TEMPLATE(VIEW_WORD_IS, policy_unmanaged, "spec.networkPolicyManagement", NULL, "Unmanaged"),
    TEMPLATE(VIEW_TEXT, policy_spec, NULL),
    TEMPLATE(VIEW_WORD, env_policy, "spec.envVarsInjectionPolicy", NULL,
             "Disallowed Allowed Overrides"),
    TEMPLATE(VIEW_WORD, volume_policy, "spec.volumeClaimTemplatesPolicy", NULL,
             "Disallowed Allowed Overrides"),
    TEMPLATE(VIEW_MEMO, blueprint_label, NULL),
    TEMPLATE(VIEW_MEMO, pod_template_label, NULL),
};

#define POD(t, field, ...)                                                                         \
    {                                                                                              \
        .type = (t), .offset = offsetof(Pod, field), .path = __VA_ARGS__                           \
    }
static const ViewField pod_fields[] = {
    POD(VIEW_MAP, labels, LABELS),
    POD(VIEW_STRING, node, "spec.nodeName"),
    POD(VIEW_IPS, ips, "status.podIPs"),
    POD(VIEW_WORD, phase, "status.phase", NULL, "Unknown Pending Running Succeeded Failed"),
    POD(VIEW_MEMO, scheduled_reason, NULL),
    POD(VIEW_MEMO, scheduled_message, NULL),
    POD(VIEW_MAP, annotations, NULL),
};

#define VIEW_KIND(type, table)                                                                     \
    {                                                                                              \
        sizeof(type), table, ARRAY_SIZE(table)                                                     \
    }
const ViewKind view_kinds[OBJ_KIND_MAX] = {
    [OBJ_SANDBOX] = VIEW_KIND(Sandbox, sandbox_fields),
    [OBJ_CLAIM] = VIEW_KIND(Claim, claim_fields),
    [OBJ_POOL] = VIEW_KIND(Pool, pool_fields),
    [OBJ_TEMPLATE] = VIEW_KIND(Template, template_fields),
    [OBJ_POD] = VIEW_KIND(Pod, pod_fields),
    [OBJ_POLICY] = {sizeof(Policy), NULL, 0},
};
