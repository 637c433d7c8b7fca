/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/plan_pod.h"

#include "common/base/str.h"
#include "controller/names.h"

#include <stdarg.h>
#include <stdio.h>

/* A Pod without the tracking label is not watched: it is looked at again after so long. */
#define UNWATCHED_RECHECK_MS (30 * 1000)

static void step_error(PodStep *step, const char *fmt, ...) _printf_(2, 3);
static void step_error(PodStep *step, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(step->error, sizeof(step->error), fmt, ap);
    va_end(ap);
}

const Pod *sandbox_owned_pod(const World *w, const Sandbox *s, size_t *ret_count)
{
    const Pod *owned = NULL;
    size_t n = 0;
    const Obj *o;

    for (WorldIter it = world_children(w, s->obj.uid); (o = world_next(&it));)
        if (o->kind == OBJ_POD) {
            owned = obj_pod(o);
            n++;
        }
    if (ret_count)
        *ret_count = n;
    return n == 1 ? owned : NULL;
}

static const char *tracked_name(const Sandbox *s)
{
    return s->legacy_pod_name ? s->legacy_pod_name : s->obj.name;
}

/* The annotation of old releases goes where it does not name the Sandbox's own Pod. */
static int clear_legacy_name(const Sandbox *s, const Pod *owned, Plan *plan, Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w;

    if (!s->has_legacy_pod_name || s->obj.inflight > 0 ||
        (owned && str_eq(owned->obj.name, s->legacy_pod_name)))
        return 0;
    plan_add_op_to(plan, PLAN_PATCH, &s->obj, "clear-pod-name");
    w = plan_patch_begin_metadata(&body, &s->obj, false);
    jw_key(&w, "annotations");
    jw_object(&w);
    jw_kv_str(&w, ANNOTATION_POD_NAME, NULL);
    jw_object_end(&w);
    jw_object_end(&w);
    return plan_patch_end(plan, &w, &body, error);
}

/* Everything about this Sandbox that this version does not carry out. */
static bool refuse_unsupported(const Sandbox *s, PodStep *step)
{
    const char *field = s->has_volume_claims         ? "spec.volumeClaimTemplates"
                        : s->service == SERVICE_TRUE ? "spec.service"
                                                     : NULL;

    if (field)
        step_error(step, "%s is not supported by this version of the controller", field);
    return field != NULL;
}

/* The Pod's spec: the template's where the Sandbox's is the same, else it has to be read. Returns
 * false where it is not to be had in this round. */
static bool find_pod_spec(const PlanInput *in, const Sandbox *s, Plan *plan, JsonWriter *w)
{
    const Template *t =
        s->template_ref ? world_template(in->world, s->obj.ns, s->template_ref) : NULL;
    const PlanLive *live;

    if (t && t->blueprint_hash == s->blueprint_hash) {
        jw_key(w, "spec");
        jw_raw(w, t->pod_spec, t->pod_spec_len);
        return true;
    }
    live = plan_live_get(in, OBJ_SANDBOX, s->obj.ns, s->obj.name);
    if (!live || (live->found && !live->object)) {
        plan_need_get(plan, OBJ_SANDBOX, s->obj.ns, s->obj.name);
        return false;
    }
    if (!live->found || !str_eq(json_str(live->object, "metadata.uid"), s->obj.uid))
        return false; /* gone: its deletion is on its way to the World */
    jw_key(w, "spec");
    jw_value(w, json_path(live->object, "spec.podTemplate.spec"));
    return true;
}

static int create_pod(const PlanInput *in, const Sandbox *s, Plan *plan, PodStep *step,
                      Error **error)
{
    const ObjTrouble *trouble = plan_trouble(in, &s->obj);
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w = json_writer(&body);

    if (s->obj.trouble)
        step_error(step, "%s", s->obj.trouble->message);
    if (trouble) {
        plan_wake_at(plan, trouble->retry_at_ms);
        return 0;
    }
    jw_object(&w);
    jw_kv_str(&w, "apiVersion", "v1");
    jw_kv_str(&w, "kind", "Pod");
    jw_key(&w, "metadata");
    jw_object(&w);
    jw_kv_str(&w, "name", s->obj.name);
    jw_kv_str(&w, "namespace", s->obj.ns);
    plan_pod_metadata(&w, s);
    plan_write_owner(&w, &s->obj);
    jw_object_end(&w);
    if (!find_pod_spec(in, s, plan, &w))
        return 0;
    step->creating = true;
    plan_add_op(plan, PLAN_CREATE, OBJ_POD, s->obj.ns, s->obj.name, NULL, "pod-create")->guarded =
        true;
    return plan_patch_end(plan, &w, &body, error);
}

static bool may_adopt(const Sandbox *s, const Pod *pod)
{
    return str_eq(strmap_get(pod->labels, LABEL_ADOPTABLE), "true") ||
           str_eq(strmap_get(pod->labels, LABEL_NAME_HASH), name_hash_of(s->obj.name).s);
}

static int existing_pod(const Sandbox *s, const Pod *pod, Plan *plan, PodStep *step, Error **error)
{
    if (step->owned)
        return plan_pod_sync(s, pod, false, plan, error);
    if (pod->obj.owner_kind != OWNER_NONE) {
        step_error(step, "pod \"%s\" is owned by %s/%s (UID: %s), not by sandbox \"%s\"",
                   pod->obj.name, pod->obj.owner_kind_name, pod->obj.owner_name, pod->obj.owner_uid,
                   s->obj.name);
        return 0;
    }
    if (may_adopt(s, pod) && !pod->obj.deleting)
        return plan_pod_sync(s, pod, true, plan, error);
    step_error(step,
               "cannot adopt unowned pod \"%s\": missing required pool authorization label "
               "(\"%s\") or sandbox tracking label (\"%s\")",
               pod->obj.name, LABEL_ADOPTABLE, LABEL_NAME_HASH);
    return 0;
}

/* The World learns of changes of a Pod without tracking label only by reading it. */
static bool is_fresh(const PlanInput *in, const Pod *pod, Plan *plan)
{
    if (strmap_get(pod->labels, LABEL_NAME_HASH))
        return true;
    plan_wake_at(plan, in->now_ms + UNWATCHED_RECHECK_MS);
    if (plan_live_get(in, OBJ_POD, pod->obj.ns, pod->obj.name))
        return true;
    plan_need_get(plan, OBJ_POD, pod->obj.ns, pod->obj.name);
    return false;
}

static int suspend_pod(const Pod *pod, bool owned, Plan *plan, Error **error)
{
    if (!pod || !owned || pod->obj.deleting || pod->obj.inflight > 0)
        return 0;
    return plan_delete(plan, &pod->obj, false, false, "pod-suspend", error);
}

int plan_pod_step(const PlanInput *in, const Sandbox *s, Plan *plan, PodStep *step, Error **error)
{
    size_t n_owned;
    const Pod *pod = sandbox_owned_pod(in->world, s, &n_owned);
    int r;

    *step = (PodStep){0};
    if (n_owned > 1) {
        step->multiple = true;
        step_error(step,
                   "multiple Pods (%zu) are controlled by this Sandbox; refusing to choose or "
                   "create a Pod",
                   n_owned);
        return 0;
    }
    r = clear_legacy_name(s, pod, plan, error);
    if (r < 0)
        return r;
    step->owned = pod != NULL;
    if (!pod)
        pod = world_pod(in->world, s->obj.ns, tracked_name(s));
    if (!pod && s->legacy_pod_name)
        pod = world_pod(in->world, s->obj.ns, s->obj.name);
    if (pod && !step->owned && !is_fresh(in, pod, plan))
        return 0;
    step->pod = pod;
    if (s->suspended)
        return suspend_pod(pod, step->owned, plan, error);
    if (refuse_unsupported(s, step))
        return 0;
    return pod ? existing_pod(s, pod, plan, step, error) : create_pod(in, s, plan, step, error);
}

int plan_pod_delete_all(const PlanInput *in, const Sandbox *s, Plan *plan, Error **error)
{
    const Obj *o;

    for (WorldIter it = world_children(in->world, s->obj.uid); (o = world_next(&it));) {
        int r;
        if (o->kind != OBJ_POD || o->deleting || o->inflight > 0)
            continue;
        r = plan_delete(plan, o, false, false, "pod-expire", error);
        if (r < 0)
            return r;
    }
    return 0;
}
