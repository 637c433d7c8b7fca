/* SPDX-License-Identifier: Apache-2.0 */
/* A template: its label, and the NetworkPolicy that isolates all Pods made from it. */
#include "controller/plan_internal.h"

#include "common/base/str.h"
#include "controller/names.h"

static int label_template(const Template *t, const char *hash, Plan *plan, Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    const StrPair label = {LABEL_TEMPLATE_REF, hash};
    JsonWriter w;

    plan_add_op_to(plan, PLAN_PATCH, &t->obj, "template-label");
    w = plan_patch_begin_metadata(&body, &t->obj, false);
    plan_write_map(&w, "labels", &label, 1);
    jw_object_end(&w);
    return plan_patch_end(plan, &w, &body, error);
}

static int create_policy(const PlanInput *in, const Template *t, const char *name, Plan *plan,
                         Error **error)
{
    const ObjTrouble *trouble = plan_trouble(in, &t->obj);
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w = json_writer(&body);

    if (trouble) {
        plan_wake_at(plan, trouble->retry_at_ms);
        return 0;
    }
    plan_add_op(plan, PLAN_CREATE, OBJ_POLICY, t->obj.ns, name, NULL, "policy-create")->guarded =
        true;
    jw_object(&w);
    jw_kv_str(&w, "apiVersion", obj_api_version(OBJ_POLICY));
    jw_kv_str(&w, "kind", "NetworkPolicy");
    jw_key(&w, "metadata");
    jw_object(&w);
    jw_kv_str(&w, "name", name);
    jw_kv_str(&w, "namespace", t->obj.ns);
    plan_write_owner(&w, &t->obj);
    jw_object_end(&w);
    jw_kv_raw(&w, "spec", t->policy_spec);
    return plan_patch_end(plan, &w, &body, error);
}

static void write_patch_step(JsonWriter *w, const char *op, const char *path)
{
    jw_object(w);
    jw_kv_str(w, "op", op);
    jw_kv_str(w, "path", path);
}

/* The whole spec is replaced: what somebody added to a map has to go as well. */
static int repair_policy(const Template *t, const Policy *p, Plan *plan, Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w = json_writer(&body);

    if (p->obj.inflight > 0)
        return 0;
    plan_add_op_to(plan, PLAN_PATCH_JSON, &p->obj, "policy-repair");
    jw_array(&w);
    write_patch_step(&w, "test", "/metadata/uid");
    jw_kv_str(&w, "value", p->obj.uid);
    jw_object_end(&w);
    write_patch_step(&w, "replace", "/spec");
    jw_kv_raw(&w, "value", t->policy_spec);
    jw_object_end(&w);
    jw_array_end(&w);
    return plan_body(plan, &body, error);
}

static int plan_policy(const PlanInput *in, const Template *t, Plan *plan, Error **error)
{
    _cleanup_free_ char *name = policy_name(t->obj.name);
    const Policy *p = world_policy(in->world, t->obj.ns, name);
    bool owned = p && str_eq(p->obj.owner_uid, t->obj.uid);

    if (t->policy_unmanaged)
        return owned && !p->obj.deleting && p->obj.inflight == 0
                   ? plan_delete(plan, &p->obj, false, false, "policy-unmanage", error)
                   : 0;
    if (!p)
        return create_policy(in, t, name, plan, error);
    if (!owned) {
        plan_add_event(plan, &t->obj, true, "ReconcilerError", "Reconciling",
                       "refusing to update NetworkPolicy \"%s\" as it is not controlled by "
                       "SandboxTemplate \"%s\"",
                       name, t->obj.name);
        return 0;
    }
    return p->spec_hash == t->policy_hash ? 0 : repair_policy(t, p, plan, error);
}

int plan_template(const PlanInput *in, const char *ns, const char *name, Plan *plan, Error **error)
{
    const Template *t = world_template(in->world, ns, name);
    NameHash hash = name_hash_of(name);
    int r;

    if (!t || t->obj.deleting)
        return 0;
    if (!str_eq(t->ref_hash_label, hash.s) && t->obj.inflight == 0) {
        r = label_template(t, hash.s, plan, error);
        if (r < 0)
            return r;
    }
    return plan_policy(in, t, plan, error);
}
