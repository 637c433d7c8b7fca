/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/resolve.h"

#include "common/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Reasons of the Ready condition that no waiting cures. */
static const char *const final_reasons[] = {
    "TemplateNotFound", "WarmPoolNotFound",          "InvalidMetadata",
    "PodSucceeded",     "EnvVarsInjectionRejected",  "PodFailed",
    "ClaimExpired",     "VolumeClaimTemplatesError", "SandboxExpired",
};

/* A refusal by the API server has a general reason and says what it is in the message. */
static const char *const final_messages[] = {"exceeded quota", "denied the request",
                                             "is forbidden:", "is invalid:"};

static bool is_final(const ReadyState *ready)
{
    for (size_t i = 0; i < ARRAY_SIZE(final_reasons); i++)
        if (str_eq(ready->reason, final_reasons[i]))
            return true;
    if (!str_eq(ready->reason, "ReconcilerError") || !ready->message)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(final_messages); i++)
        if (strstr(ready->message, final_messages[i]))
            return true;
    return false;
}

static void say(SandboxView *v, const char *reason, const char *fmt, ...) _printf_(3, 4);
static void say(SandboxView *v, const char *reason, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(v->message, sizeof(v->message), fmt, ap);
    va_end(ap);
    v->reason = reason;
}

/* In the words of the claim's condition, where it has any. */
static void say_condition(SandboxView *v, const char *reason, const char *otherwise)
{
    const ReadyState *ready = &v->claim->ready;

    if (!ready->known || ready->ready)
        say(v, reason, "%s", otherwise);
    else if (str_empty(ready->message))
        say(v, ready->reason ? ready->reason : reason, "%s",
            ready->reason ? ready->reason : otherwise);
    else
        say(v, ready->reason ? ready->reason : reason, "%s", ready->message);
}

/* A link that the watches do not show, or show as somebody else's. */
static void say_unlinked(SandboxView *v, const char *reason, const char *otherwise)
{
    v->settling = v->claim->ready.ready;
    say_condition(v, reason, otherwise);
}

static void resolve_pod(SandboxView *v, const char *name, const PodModel *pod)
{
    const char *problem = pod->problem ? pod->problem : "no reason is known yet";

    if (pod->deleting)
        say(v, "PodTerminating", "Its pod is being deleted");
    else if (pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED) {
        v->failed = true;
        say(v, pod->phase == POD_FAILED ? "PodFailed" : "PodSucceeded", "Its pod has ended: %s",
            pod->problem               ? pod->problem
            : pod->phase == POD_FAILED ? "failed"
                                       : "completed");
    } else if (!pod->container_running) {
        v->settling = v->claim->ready.ready;
        v->cannot_start = pod->cannot_start;
        say(v, "ContainerNotRunning", "Its container does not run: %s", problem);
    } else {
        v->state = v->claim->ready.ready ? SANDBOX_READY : SANDBOX_RUNNING;
        v->pod_name = name;
        v->pod = pod;
        if (v->claim->ready.ready)
            say(v, "Ready", "%s",
                str_empty(v->claim->ready.message) ? "Sandbox is ready" : v->claim->ready.message);
        else
            say_condition(v, "NotReady", "The controller has not declared it ready yet");
    }
}

static void resolve_sandbox(const Store *s, const char *ns, SandboxView *v)
{
    const char *name = v->claim->sandbox_name;
    const SandboxModel *sandbox = store_sandbox(s, ns, name);
    const PodModel *pod;

    if (!sandbox || !str_eq(sandbox->owner_uid, v->claim->uid)) {
        say_unlinked(v, "SandboxMissing", "Its sandbox does not exist");
        return;
    }
    if (sandbox->deleting) {
        say(v, "SandboxTerminating", "Its sandbox is being deleted");
        return;
    }
    name = sandbox->pod_name ? sandbox->pod_name : name;
    pod = store_pod(s, ns, name);
    if (!pod || !str_eq(pod->owner_uid, sandbox->uid)) {
        say_unlinked(v, "PodMissing", "Its pod does not exist");
        return;
    }
    resolve_pod(v, name, pod);
}

void sandbox_resolve(const Store *s, const char *ns, const char *claim, const char *owner,
                     SandboxView *ret)
{
    ClaimModel *c = store_claim(s, ns, claim);

    *ret = (SandboxView){.reason = "NotFound"};
    if (!c || !c->owner || !str_eq(c->owner, owner)) {
        say(ret, "NotFound", "Sandbox claim '%s' is not found in namespace '%s'", claim, ns);
        return;
    }
    ret->claim = c;
    ret->state = SANDBOX_NOT_READY;
    ret->failed = c->deleting || is_final(&c->ready);
    if (c->deleting)
        say(ret, "Terminating", "The sandbox is being deleted");
    else if (ret->failed && !c->ready.ready)
        say_condition(ret, "Failed", "The sandbox cannot become ready");
    else if (!c->sandbox_name)
        say_condition(ret, "Pending", "The controller has not assigned a sandbox yet");
    else
        resolve_sandbox(s, ns, ret);
}
