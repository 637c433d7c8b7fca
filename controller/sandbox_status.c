/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/sandbox_status.h"

#include "common/base/str.h"
#include "controller/names.h"

#include <stdio.h>

/* What a row says: a condition without its type. */
typedef struct Verdict {
    ConditionStatus status;
    const char *reason, *message;
} Verdict;

static void put(SandboxStatus *out, const Sandbox *s, const char *type, const Verdict *v,
                int64_t now_ms)
{
    const Condition c = {
        .type = type,
        .status = v->status,
        .reason = v->reason,
        .message = v->message,
        .transition_ms = TIME_NONE,
        .observed_generation = s->obj.generation,
    };

    condition_set_put(&out->conditions, &c, now_ms);
}

static Verdict suspended_verdict(const Sandbox *s, const PodStep *step)
{
    if (!s->suspended)
        return (Verdict){CONDITION_FALSE, "NotSuspended", "Sandbox is not suspended"};
    if (step->error[0] && !step->pod)
        return (Verdict){CONDITION_UNKNOWN, "PodStateUnknown",
                         "Pod state is unknown. Sandbox suspension cannot be confirmed"};
    if (!step->pod)
        return (Verdict){CONDITION_TRUE, "PodTerminated",
                         "Pod has been terminated. Sandbox is suspended"};
    if (!step->owned)
        return (Verdict){CONDITION_FALSE, "PodNotOwned",
                         "Refused to delete pod because it is not owned by this sandbox"};
    return (Verdict){CONDITION_FALSE, "PodTerminating",
                     "Pod is terminating. Sandbox is suspending"};
}

static Verdict scheduled_verdict(const Pod *pod)
{
    const char *reason;

    if (!pod)
        return (Verdict){CONDITION_UNKNOWN, "PodSchedulingUnknown",
                         "Pod state is unknown. Pod scheduling cannot be determined"};
    if (!pod->has_scheduled)
        return (Verdict){CONDITION_UNKNOWN, "PodSchedulingUnknown",
                         "Pod has not reported a PodScheduled condition yet"};
    reason = !str_empty(pod->scheduled_reason)  ? pod->scheduled_reason
             : pod->scheduled == CONDITION_TRUE ? "PodScheduled"
                                                : "PodSchedulingUnknown";
    return (Verdict){pod->scheduled, reason, pod->scheduled_message ? pod->scheduled_message : ""};
}

static const Verdict finished_verdicts[POD_PHASE_MAX] = {
    [POD_SUCCEEDED] = {CONDITION_TRUE, "PodSucceeded", "Pod completed successfully"},
    [POD_FAILED] = {CONDITION_TRUE, "PodFailed", "Pod failed"},
};

static Verdict error_verdict(const PodStep *step, SandboxStatus *out)
{
    if (step->multiple)
        return (Verdict){CONDITION_FALSE, "MultiplePods", step->error};
    (void)snprintf(out->message, sizeof(out->message), "Error seen: %s", step->error);
    return (Verdict){CONDITION_FALSE, "ReconcilerError", out->message};
}

static Verdict pod_verdict(const Pod *pod, SandboxStatus *out)
{
    if (!pod)
        return (Verdict){CONDITION_FALSE, "DependenciesNotReady", "Pod does not exist"};
    if (pod->phase != POD_RUNNING) {
        (void)snprintf(out->message, sizeof(out->message), "Pod exists with phase: %s",
                       pod_phase_to_string(pod->phase));
        return (Verdict){CONDITION_FALSE, "DependenciesNotReady", out->message};
    }
    if (!pod->ready)
        return (Verdict){CONDITION_FALSE, "DependenciesNotReady", "Pod is Running but not Ready"};
    if (!pod->ips)
        return (Verdict){CONDITION_FALSE, "DependenciesNotReady",
                         "Pod is Ready but has no podIPs yet"};
    return (Verdict){CONDITION_TRUE, "DependenciesReady", "Pod is Ready"};
}

static Verdict ready_verdict(const Sandbox *s, const PodStep *step, SandboxStatus *out)
{
    const Pod *pod = step->pod;

    if (step->error[0])
        return error_verdict(step, out);
    if (s->suspended)
        return (Verdict){CONDITION_FALSE, "SandboxSuspended",
                         pod ? "Sandbox is suspending" : "Sandbox is suspended"};
    if (pod && finished_verdicts[pod->phase].reason)
        return (Verdict){CONDITION_FALSE, finished_verdicts[pod->phase].reason,
                         finished_verdicts[pod->phase].message};
    return pod_verdict(pod, out);
}

void sandbox_status_active(const Sandbox *s, const PodStep *step, int64_t now_ms,
                           SandboxStatus *out)
{
    const Pod *owned = step->owned ? step->pod : NULL;
    Verdict v;

    *out = (SandboxStatus){.conditions = condition_set_of(s->conditions)};
    v = suspended_verdict(s, step);
    put(out, s, "Suspended", &v, now_ms);
    v = scheduled_verdict(owned);
    if (owned || (step->error[0] && !step->pod))
        put(out, s, "PodScheduled", &v, now_ms);
    else
        condition_set_drop(&out->conditions, "PodScheduled");
    if (owned && finished_verdicts[owned->phase].reason)
        put(out, s, "Finished", &finished_verdicts[owned->phase], now_ms);
    else
        condition_set_drop(&out->conditions, "Finished");
    v = ready_verdict(s, step, out);
    put(out, s, "Ready", &v, now_ms);

    (void)snprintf(out->selector_text, sizeof(out->selector_text), "%s=%s", LABEL_NAME_HASH,
                   name_hash_of(s->obj.name).s);
    out->selector = step->pod ? out->selector_text : s->status_selector;
    out->node = owned ? owned->node : NULL;
    out->pod_ips = owned ? owned->ips : NULL;
}

void sandbox_status_expired(const Sandbox *s, bool cleaned, int64_t now_ms, SandboxStatus *out)
{
    static const Verdict expired = {CONDITION_FALSE, "SandboxExpired", "Sandbox has expired"};

    *out = (SandboxStatus){.conditions = condition_set_of(s->conditions)};
    put(out, s, "Ready", &expired, now_ms);
    condition_set_drop(&out->conditions, "PodScheduled");
    if (cleaned)
        return;
    out->selector = s->status_selector;
    out->service = s->status_service;
    out->service_fqdn = s->status_service_fqdn;
    out->node = s->status_node;
    out->pod_ips = s->status_pod_ips;
}

bool sandbox_status_same(const Sandbox *s, const SandboxStatus *status)
{
    return condition_set_eq(&status->conditions, s->conditions) &&
           str_eq(s->status_selector, status->selector) &&
           str_eq(s->status_service, status->service) &&
           str_eq(s->status_service_fqdn, status->service_fqdn) &&
           str_eq(s->status_node, status->node) && strlist_eq(s->status_pod_ips, status->pod_ips);
}

bool sandbox_status_can_wait(const Sandbox *s, const SandboxStatus *status)
{
    const Condition *was = conditions_get(s->conditions, "Ready");
    const Condition *is = condition_set_get(&status->conditions, "Ready");
    const Condition *finished = condition_set_get(&status->conditions, "Finished");
    const Condition *suspended = conditions_get(s->conditions, "Suspended");

    return str_eq(is->reason, "DependenciesNotReady") && !finished &&
           (!was || str_eq(was->reason, "DependenciesNotReady")) &&
           (!suspended || suspended->status == CONDITION_FALSE);
}

static void write_changed_str(JsonWriter *w, const char *key, const char *was, const char *is)
{
    if (!str_eq(was, is))
        jw_kv_str(w, key, is);
}

int sandbox_status_write(const Sandbox *s, const SandboxStatus *status, Plan *plan, Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w = plan_patch_begin(&body, &s->obj, true);

    plan_add_op_to(plan, PLAN_PATCH_STATUS, &s->obj, "sandbox-status");
    jw_key(&w, "status");
    jw_object(&w);
    if (!condition_set_eq(&status->conditions, s->conditions)) {
        jw_key(&w, "conditions");
        condition_set_write(&w, &status->conditions);
    }
    write_changed_str(&w, "selector", s->status_selector, status->selector);
    write_changed_str(&w, "service", s->status_service, status->service);
    write_changed_str(&w, "serviceFQDN", s->status_service_fqdn, status->service_fqdn);
    write_changed_str(&w, "nodeName", s->status_node, status->node);
    if (!strlist_eq(s->status_pod_ips, status->pod_ips))
        plan_write_list(&w, "podIPs", status->pod_ips);
    jw_object_end(&w);
    return plan_patch_end(plan, &w, &body, error);
}
