/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a claim: mostly its Sandbox's, forwarded; else the reason why there is none. */
#include "controller/claim_pass.h"

#include "common/base/str.h"

typedef struct ClaimStatus {
    ConditionSet conditions;
    const char *sandbox, *service_fqdn;
    const StrList *pod_ips;
} ClaimStatus;

bool claim_is_ready(const Claim *c)
{
    const Condition *ready = conditions_get(c->conditions, "Ready");

    return ready && ready->status == CONDITION_TRUE;
}

static void put_ready(const ClaimPass *p, ClaimStatus *status, Condition ready)
{
    ready.type = "Ready";
    ready.observed_generation = p->c->obj.generation;
    condition_set_put(&status->conditions, &ready, p->in->now_ms);
}

static Condition forwarded_ready(const Sandbox *s)
{
    const Condition *ready = conditions_get(s->conditions, "Ready");

    if (!ready)
        return (Condition){.reason = "SandboxNotReady",
                           .message = "Sandbox is not ready",
                           .transition_ms = TIME_NONE};
    if (str_eq(ready->reason, "SandboxExpired"))
        return (Condition){.reason = "SandboxExpired",
                           .message = "Underlying Sandbox resource has expired independently of "
                                      "the Claim.",
                           .transition_ms = TIME_NONE};
    return *ready;
}

/* Copied with the Sandbox's own observedGeneration. */
static void mirror_finished(const Sandbox *s, ClaimStatus *status, int64_t now_ms)
{
    const Condition *finished = s ? conditions_get(s->conditions, "Finished") : NULL;

    if (finished)
        condition_set_put(&status->conditions, finished, now_ms);
    else
        condition_set_drop(&status->conditions, "Finished");
}

static void mirror_sandbox(const Sandbox *s, ClaimStatus *status)
{
    status->sandbox = s->obj.name;
    status->pod_ips = s->status_pod_ips;
    status->service_fqdn = s->status_service_fqdn;
}

static bool same(const Claim *c, const ClaimStatus *status)
{
    return condition_set_eq(&status->conditions, c->conditions) &&
           str_eq(c->status_sandbox, status->sandbox) &&
           str_eq(c->status_service_fqdn, status->service_fqdn) &&
           strlist_eq(c->status_pod_ips, status->pod_ips);
}

static void write_sandbox(JsonWriter *w, const Claim *c, const ClaimStatus *status)
{
    if (str_eq(c->status_sandbox, status->sandbox) &&
        str_eq(c->status_service_fqdn, status->service_fqdn) &&
        strlist_eq(c->status_pod_ips, status->pod_ips))
        return;
    jw_key(w, "sandbox");
    if (!status->sandbox) {
        jw_null(w);
        return;
    }
    jw_object(w);
    jw_kv_str(w, "name", status->sandbox);
    plan_write_list(w, "podIPs", status->pod_ips);
    jw_kv_str(w, "serviceFQDN", status->service_fqdn);
    jw_object_end(w);
}

static int write_status(ClaimPass *p, ClaimStatus *status, Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w;
    int r;

    if (p->c->obj.inflight > 0 || same(p->c, status))
        return 0;
    condition_set_sort(&status->conditions);
    plan_add_op_to(p->plan, PLAN_PATCH_STATUS, &p->c->obj, "claim-status");
    w = plan_patch_begin(&body, &p->c->obj, true);
    jw_key(&w, "status");
    jw_object(&w);
    if (!condition_set_eq(&status->conditions, p->c->conditions)) {
        jw_key(&w, "conditions");
        condition_set_write(&w, &status->conditions);
    }
    write_sandbox(&w, p->c, status);
    jw_object_end(&w);
    r = plan_patch_end(p->plan, &w, &body, error);
    return r < 0 ? r : 1;
}

static ClaimStatus stored_status(const Claim *c)
{
    return (ClaimStatus){
        .conditions = condition_set_of(c->conditions),
        .sandbox = c->status_sandbox,
        .service_fqdn = c->status_service_fqdn,
        .pod_ips = c->status_pod_ips,
    };
}

int claim_add_status(ClaimPass *p, Error **error)
{
    ClaimStatus status = stored_status(p->c);

    mirror_finished(p->bound, &status, p->in->now_ms);
    if (p->bound) {
        mirror_sandbox(p->bound, &status);
        put_ready(p, &status, forwarded_ready(p->bound));
    } else {
        put_ready(
            p, &status,
            (Condition){.reason = p->reason, .message = p->message, .transition_ms = TIME_NONE});
    }
    return write_status(p, &status, error);
}

int claim_add_status_expired(ClaimPass *p, const char *message, bool clear_sandbox, Error **error)
{
    ClaimStatus status = stored_status(p->c);

    if (p->bound) {
        mirror_finished(p->bound, &status, p->in->now_ms);
        mirror_sandbox(p->bound, &status);
    } else if (clear_sandbox) {
        status.sandbox = status.service_fqdn = NULL;
        status.pod_ips = NULL;
    }
    put_ready(
        p, &status,
        (Condition){.reason = "ClaimExpired",
                    .message = message ? message : "Claim expired. Sandbox cleanup initiated.",
                    .transition_ms = TIME_NONE});
    return write_status(p, &status, error);
}
