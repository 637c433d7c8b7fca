/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/model.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "gateway/sandbox/names.h"

#include <string.h>

/* A bounded copy that never ends inside a UTF-8 sequence. NULL and "" give NULL. */
static char *text_dup(const char *s)
{
    size_t len = s ? strnlen(s, MODEL_TEXT_MAX) : 0;

    if (len == 0)
        return NULL;
    if (len == MODEL_TEXT_MAX)
        while (len > 0 && ((unsigned char)s[len] & 0xC0) == 0x80)
            len--;
    return xstrndup(s, len);
}

/* A string member of a map whose keys have dots. */
static const char *map_str(const JsonValue *object, const char *path, const char *key)
{
    return json_value_str(json_get(json_path(object, path), key));
}

static const char *annotation(const JsonValue *object, const char *key)
{
    return map_str(object, "metadata.annotations", key);
}

static int64_t time_of(const char *s)
{
    int64_t ms = 0;

    if (!s || time_parse_rfc3339(s, &ms, NULL) < 0)
        return 0;
    return ms;
}

static bool is_deleting(const JsonValue *object)
{
    return json_path(object, "metadata.deletionTimestamp") != NULL;
}

static const JsonValue *controller_of(const JsonValue *object)
{
    const JsonValue *owners = json_path(object, "metadata.ownerReferences");

    for (size_t i = 0; i < json_array_len(owners); i++) {
        const JsonValue *owner = json_array_at(owners, i);
        if (json_bool(owner, "controller", false))
            return owner;
    }
    return NULL;
}

static const JsonValue *condition_of(const JsonValue *object, const char *type)
{
    const JsonValue *conditions = json_path(object, "status.conditions");

    for (size_t i = 0; i < json_array_len(conditions); i++) {
        const JsonValue *condition = json_array_at(conditions, i);
        if (str_eq(json_str(condition, "type"), type))
            return condition;
    }
    return NULL;
}

static ReadyState ready_of(const JsonValue *object)
{
    const JsonValue *condition = condition_of(object, "Ready");

    return (ReadyState){
        .known = condition != NULL,
        .ready = str_eq(json_str(condition, "status"), "True"),
        .reason = text_dup(json_str(condition, "reason")),
        .message = text_dup(json_str(condition, "message")),
    };
}

static const char *owner_of(const JsonValue *claim)
{
    const char *owner = annotation(claim, ANNOTATION_OWNER);

    if (str_empty(owner) || !str_eq(owner, map_str(claim, "metadata.labels", LABEL_OWNER)))
        return NULL;
    return owner;
}

static int64_t idle_timeout_of(const JsonValue *claim)
{
    const char *s = annotation(claim, ANNOTATION_IDLE_TIMEOUT);
    int64_t seconds = 0;

    if (!s || str_to_i64(s, &seconds) < 0 || seconds <= 0 || seconds > INT32_MAX)
        return 0;
    return seconds;
}

ClaimModel *claim_model_new(const JsonValue *object)
{
    ClaimModel *c = xnew(ClaimModel);

    c->uid = text_dup(json_str(object, "metadata.uid"));
    c->owner = text_dup(owner_of(object));
    c->sandbox_name = text_dup(json_str(object, "status.sandbox.name"));
    c->ready = ready_of(object);
    c->deleting = is_deleting(object);
    c->shutdown_ms = time_of(json_str(object, "spec.lifecycle.shutdownTime"));
    c->idle_timeout_s = idle_timeout_of(object);
    c->last_activity_ms = time_of(annotation(object, ANNOTATION_LAST_ACTIVITY));
    c->exec_lease_ms = time_of(annotation(object, ANNOTATION_EXEC_LEASE));
    return c;
}

ClaimModel *claim_model_free(ClaimModel *c)
{
    if (!c)
        return NULL;
    free(c->uid);
    free(c->owner);
    free(c->sandbox_name);
    free(c->ready.reason);
    free(c->ready.message);
    free(c);
    return NULL;
}

SandboxModel *sandbox_model_new(const JsonValue *object)
{
    SandboxModel *s = xnew(SandboxModel);
    const JsonValue *controller = controller_of(object);

    s->uid = text_dup(json_str(object, "metadata.uid"));
    s->owner_uid = text_dup(json_str(controller, "uid"));
    s->owner_name = text_dup(json_str(controller, "name"));
    s->pod_name = text_dup(annotation(object, ANNOTATION_POD_NAME));
    s->deleting = is_deleting(object);
    return s;
}

SandboxModel *sandbox_model_free(SandboxModel *s)
{
    if (!s)
        return NULL;
    free(s->uid);
    free(s->owner_uid);
    free(s->owner_name);
    free(s->pod_name);
    free(s);
    return NULL;
}

static PodPhase phase_of(const JsonValue *pod)
{
    static const char *const names[POD_PHASE_MAX] = {"Pending", "Running", "Succeeded", "Failed"};
    const char *phase = json_str(pod, "status.phase");

    for (int i = 0; i < POD_PHASE_MAX; i++)
        if (str_eq(phase, names[i]))
            return (PodPhase)i;
    return POD_PENDING;
}

static const char *container_of(const JsonValue *pod)
{
    const JsonValue *containers = json_path(pod, "spec.containers");
    const char *wanted = annotation(pod, ANNOTATION_DEFAULT_CONTAINER);

    for (size_t i = 0; wanted && i < json_array_len(containers); i++)
        if (str_eq(json_str(json_array_at(containers, i), "name"), wanted))
            return wanted;
    return json_str(json_array_at(containers, 0), "name");
}

static const JsonValue *container_status(const JsonValue *pod, const char *container)
{
    const JsonValue *statuses = json_path(pod, "status.containerStatuses");

    for (size_t i = 0; i < json_array_len(statuses); i++) {
        const JsonValue *status = json_array_at(statuses, i);
        if (str_eq(json_str(status, "name"), container))
            return status;
    }
    return NULL;
}

/* "reason: message" of what holds the pod back; either part may be missing. */
static char *problem_text(const char *reason, const char *message)
{
    _cleanup_free_ char *text = NULL;

    if (!reason && !message)
        return NULL;
    text = xasprintf("%s%s%s", reason ? reason : "", reason && message ? ": " : "",
                     message ? message : "");
    return text_dup(text);
}

static char *problem_of(const JsonValue *pod, const JsonValue *state)
{
    const JsonValue *waiting = json_get(state, "waiting");
    const JsonValue *ended = json_get(state, "terminated");
    const JsonValue *scheduled = condition_of(pod, "PodScheduled");

    if (waiting)
        return problem_text(json_str(waiting, "reason"), json_str(waiting, "message"));
    if (ended)
        return problem_text(json_str(ended, "reason"), json_str(ended, "message"));
    if (str_eq(json_str(scheduled, "status"), "False"))
        return problem_text(json_str(scheduled, "reason"), json_str(scheduled, "message"));
    return problem_text(json_str(pod, "status.reason"), json_str(pod, "status.message"));
}

/* The kubelet tries again, but it takes somebody to mend the image or the pod's template. */
static bool is_lasting(const char *reason)
{
    static const char *const reasons[] = {"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff",
                                          "InvalidImageName", "CreateContainerConfigError"};

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (str_eq(reason, reasons[i]))
            return true;
    return false;
}

PodModel *pod_model_new(const JsonValue *object)
{
    PodModel *p = xnew(PodModel);
    const JsonValue *controller = controller_of(object);
    const JsonValue *status = container_status(object, container_of(object));
    const JsonValue *state = json_get(status, "state");

    p->uid = text_dup(json_str(object, "metadata.uid"));
    p->owner_uid = text_dup(json_str(controller, "uid"));
    p->owner_name = text_dup(json_str(controller, "name"));
    p->phase = phase_of(object);
    p->container = text_dup(container_of(object));
    p->container_id = text_dup(json_str(status, "containerID"));
    p->container_running = json_get(state, "running") != NULL;
    p->problem = p->container_running ? NULL : problem_of(object, state);
    p->cannot_start = is_lasting(json_str(json_get(state, "waiting"), "reason"));
    p->deleting = is_deleting(object);
    return p;
}

PodModel *pod_model_free(PodModel *p)
{
    if (!p)
        return NULL;
    free(p->uid);
    free(p->owner_uid);
    free(p->owner_name);
    free(p->container);
    free(p->container_id);
    free(p->problem);
    free(p);
    return NULL;
}
