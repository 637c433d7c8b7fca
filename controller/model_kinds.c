/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/model_kinds.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/blueprint.h"
#include "controller/names.h"

#include <string.h>

#define TEXT_MAX (4 * 1024 * 1024)
#define LEASE_AHEAD_MAX_MS (660 * 1000)
#define BAD_TEXT_MAX 64 /* kept of an annotation that is not valid */

static bool manager_is_controller(const char *manager)
{
    return str_eq(manager, FIELD_MANAGER) || str_eq(manager, FIELD_MANAGER_UPSTREAM);
}

bool view_made_by_controller(ObjKind kind, const JsonValue *managed_fields)
{
    static const char *const marks[OBJ_KIND_MAX] = {
        [OBJ_SANDBOX] = "fieldsV1.f:spec.f:podTemplate.f:spec",
        [OBJ_POD] = "fieldsV1.f:spec.f:containers",
    };

    for (size_t i = 0; marks[kind] && i < json_array_len(managed_fields); i++) {
        const JsonValue *entry = json_array_at(managed_fields, i);
        if (manager_is_controller(json_str(entry, "manager")) &&
            str_empty(json_str(entry, "subresource")) && json_path(entry, marks[kind]))
            return true;
    }
    return false;
}

static void finish_sandbox(Sandbox *s, const JsonValue *doc)
{
    s->blueprint_hash =
        blueprint_hash(json_path(doc, "spec.podTemplate.spec"),
                       json_path(doc, "spec.volumeClaimTemplates"), json_path(doc, "spec.service"));
}

static int64_t parse_clamped(const char *text, int64_t latest_ms)
{
    int64_t ms;

    if (!text || time_parse_rfc3339(text, &ms, NULL) < 0)
        return TIME_NONE;
    return ms < latest_ms ? ms : latest_ms;
}

/* The beginning of s, in whole characters. */
static const char *intern_beginning(Interner *in, const char *s, size_t max)
{
    size_t len = strlen(s), n = 0, step;

    while (n < len && (step = str_utf8_len(s + n, len - n)) > 0 && n + step <= max)
        n += step;
    _cleanup_free_ char *text = xstrndup(s, n);
    return intern(in, text);
}

/* Annotations are a wish of whoever may write the claim. */
static void finish_claim(Interner *in, Claim *c, const JsonValue *doc, int64_t now_ms)
{
    const JsonValue *annotations = json_path(doc, "metadata.annotations");
    const char *idle = json_value_str(json_get(annotations, ANNOTATION_IDLE_TIMEOUT));
    uint64_t seconds;

    if (idle && str_to_u64(idle, &seconds) == 0 && seconds > 0 && seconds <= IDLE_SECONDS_MAX)
        c->idle_timeout_ms = (int64_t)seconds * 1000;
    else if (idle)
        c->bad_idle_timeout = intern_beginning(in, idle, BAD_TEXT_MAX);
    c->activity_ms = parse_clamped(c->last_activity, now_ms);
    c->lease_ms = parse_clamped(c->exec_lease, now_ms + LEASE_AHEAD_MAX_MS);
}

static void finish_pool(Pool *p)
{
    if (p->replicas < 0)
        p->replicas = 1;
}

static const char *hash_text(Interner *in, const void *data, size_t len)
{
    uint32_t h = str_hash_fnv1a32(data, len);
    _cleanup_free_ char *text = xasprintf("%08x", h);

    return intern(in, text);
}

static void finish_template(Interner *in, Template *t, const JsonValue *doc)
{
    const JsonValue *spec = json_get(doc, "spec");
    _cleanup_buf_ Buf pod_spec = BUF_INIT(TEXT_MAX), policy = BUF_INIT(TEXT_MAX);
    _cleanup_json_ JsonValue *secured = NULL, *policy_spec = NULL;

    (void)blueprint_secure_spec(spec, &pod_spec);
    (void)blueprint_policy_spec(spec, name_hash_of(t->obj.name).s, &policy);
    (void)json_parse(buf_str(&pod_spec), pod_spec.len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &secured,
                     NULL);
    (void)json_parse(buf_str(&policy), policy.len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &policy_spec,
                     NULL);
    t->blueprint_hash =
        blueprint_hash(secured, json_get(spec, "volumeClaimTemplates"), json_get(spec, "service"));
    t->policy_hash = blueprint_policy_hash(policy_spec);
    t->blueprint_label = hash_text(in, &t->blueprint_hash, sizeof(t->blueprint_hash));
    t->pod_template_label = hash_text(in, buf_str(&pod_spec), pod_spec.len);
    t->pod_spec = buf_take(&pod_spec, &t->pod_spec_len);
    t->policy_spec = buf_take(&policy, NULL);
}

/* Whether item is an element of the comma-joined list. */
static bool list_has(const char *list, const char *item)
{
    size_t len = strlen(item);

    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n == len && memcmp(list, item, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* A pod can carry large annotations of others: only what a sandbox may have put there counts. */
static bool pod_annotation_counts(const char *key, const void *arg)
{
    return key_is_reserved(key) || str_eq(key, ANNOTATION_SAFE_TO_EVICT) || list_has(arg, key);
}

static void finish_pod(Interner *in, Pod *p, const JsonValue *doc)
{
    const JsonValue *annotations = json_path(doc, "metadata.annotations");
    const JsonValue *conditions = json_path(doc, "status.conditions");

    p->annotations =
        view_string_map(in, annotations, pod_annotation_counts,
                        json_value_str(json_get(annotations, ANNOTATION_PROPAGATED_ANNOTATIONS)));
    for (size_t i = 0; i < json_array_len(conditions); i++) {
        const JsonValue *c = json_array_at(conditions, i);
        const char *type = json_str(c, "type"), *status = json_str(c, "status");
        if (str_eq(type, "Ready"))
            p->ready = str_eq(status, "True");
        if (!str_eq(type, "PodScheduled"))
            continue;
        p->has_scheduled = true;
        p->scheduled = str_eq(status, "True")    ? CONDITION_TRUE
                       : str_eq(status, "False") ? CONDITION_FALSE
                                                 : CONDITION_UNKNOWN;
        intern_unref(in, p->scheduled_reason);
        intern_unref(in, p->scheduled_message);
        p->scheduled_reason = intern(in, json_str(c, "reason"));
        p->scheduled_message = intern(in, json_str(c, "message"));
    }
}

void view_finish(Interner *in, Obj *obj, const JsonValue *doc, int64_t now_ms)
{
    switch (obj->kind) {
    case OBJ_SANDBOX:
        finish_sandbox(obj_sandbox(obj), doc);
        break;
    case OBJ_CLAIM:
        finish_claim(in, obj_claim(obj), doc, now_ms);
        break;
    case OBJ_POOL:
        finish_pool(obj_pool(obj));
        break;
    case OBJ_TEMPLATE:
        finish_template(in, obj_template(obj), doc);
        break;
    case OBJ_POD:
        finish_pod(in, obj_pod(obj), doc);
        break;
    case OBJ_POLICY:
        obj_policy(obj)->spec_hash = blueprint_policy_hash(json_get(doc, "spec"));
        break;
    default:
        break;
    }
}
