/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/model.h"

#include "common/base/contract.h"
#include "common/base/str.h"
#include "controller/model_fields.h"
#include "controller/names.h"

#include <stdint.h>

static const KubeResource resources[OBJ_KIND_MAX] = {
    [OBJ_SANDBOX] = {API_GROUP_SANDBOX, "v1beta1", "sandboxes", "Sandbox"},
    [OBJ_CLAIM] = {API_GROUP_EXTENSIONS, "v1beta1", "sandboxclaims", "SandboxClaim"},
    [OBJ_POOL] = {API_GROUP_EXTENSIONS, "v1beta1", "sandboxwarmpools", "SandboxWarmPool"},
    [OBJ_TEMPLATE] = {API_GROUP_EXTENSIONS, "v1beta1", "sandboxtemplates", "SandboxTemplate"},
    [OBJ_POD] = {"", "v1", "pods", "Pod"},
    [OBJ_POLICY] = {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"},
};

static const char *const api_versions[OBJ_KIND_MAX] = {
    [OBJ_SANDBOX] = API_GROUP_SANDBOX "/v1beta1",
    [OBJ_CLAIM] = API_GROUP_EXTENSIONS "/v1beta1",
    [OBJ_POOL] = API_GROUP_EXTENSIONS "/v1beta1",
    [OBJ_TEMPLATE] = API_GROUP_EXTENSIONS "/v1beta1",
    [OBJ_POD] = "v1",
    [OBJ_POLICY] = "networking.k8s.io/v1",
};

const KubeResource *obj_resource(ObjKind kind)
{
    return &resources[kind];
}

const char *obj_api_version(ObjKind kind)
{
    return api_versions[kind];
}

const char *condition_status_to_string(ConditionStatus s)
{
    static const char *const names[] = {"False", "True", "Unknown"};

    return names[s];
}

const char *shutdown_policy_to_string(ShutdownPolicy p)
{
    static const char *const names[] = {"Retain", "Delete", "DeleteForeground"};

    return names[p];
}

const char *pod_phase_to_string(PodPhase p)
{
    static const char *const names[POD_PHASE_MAX] = {"Unknown", "Pending", "Running", "Succeeded",
                                                     "Failed"};

    return names[p];
}

const Condition *conditions_get(const Conditions *c, const char *type)
{
    for (size_t i = 0; c && i < c->len; i++)
        if (str_eq(c->items[i].type, type))
            return &c->items[i];
    return NULL;
}

static bool condition_eq(const Condition *a, const Condition *b)
{
    return a->status == b->status && a->transition_ms == b->transition_ms &&
           a->observed_generation == b->observed_generation && str_eq(a->type, b->type) &&
           str_eq(a->reason, b->reason) && str_eq(a->message, b->message);
}

bool conditions_eq(const Conditions *a, const Conditions *b)
{
    size_t len = a ? a->len : 0;

    if (len != (b ? b->len : 0))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!condition_eq(&a->items[i], &b->items[i]))
            return false;
    return true;
}

#define DEFINE_DOWNCAST(type, name, kind_value)                                                    \
    type *obj_##name(const Obj *o)                                                                 \
    {                                                                                              \
        CONTRACT(!o || o->kind == (kind_value));                                                   \
        return (type *)(uintptr_t)o;                                                               \
    }

DEFINE_DOWNCAST(Sandbox, sandbox, OBJ_SANDBOX)
DEFINE_DOWNCAST(Claim, claim, OBJ_CLAIM)
DEFINE_DOWNCAST(Pool, pool, OBJ_POOL)
DEFINE_DOWNCAST(Template, template, OBJ_TEMPLATE)
DEFINE_DOWNCAST(Pod, pod, OBJ_POD)
DEFINE_DOWNCAST(Policy, policy, OBJ_POLICY)

uint64_t *obj_warning(const Obj *o)
{
    if (o->kind == OBJ_CLAIM)
        return &obj_claim(o)->warning;
    return o->kind == OBJ_POOL ? &obj_pool(o)->warning : NULL;
}

void obj_trouble_clear(Obj *obj)
{
    if (!obj->trouble)
        return;
    free(obj->trouble->message);
    free(obj->trouble->reason);
    free(obj->trouble);
    obj->trouble = NULL;
}

static void conditions_free(Interner *in, const Conditions *c)
{
    for (size_t i = 0; c && i < c->len; i++) {
        intern_unref(in, c->items[i].type);
        intern_unref(in, c->items[i].reason);
        intern_unref(in, c->items[i].message);
    }
    free((void *)(uintptr_t)c);
}

static void field_free(Interner *in, Obj *obj, const ViewField *f)
{
    void *at = view_field_at(obj, f);

    switch (f->type) {
    case VIEW_STRING:
    case VIEW_MEMO:
        intern_unref(in, *(const char **)at);
        break;
    case VIEW_MAP:
    case VIEW_OUR_LABELS:
        (void)strmap_free(in, *(const StrMap **)at);
        break;
    case VIEW_LIST:
    case VIEW_IPS:
    case VIEW_MEMO_LIST:
        (void)strlist_free(in, *(const StrList **)at);
        break;
    case VIEW_CONDITIONS:
        conditions_free(in, *(const Conditions **)at);
        break;
    case VIEW_TEXT:
        free(*(char **)at);
        break;
    default:
        break;
    }
}

Obj *obj_free(Interner *in, Obj *obj)
{
    const ViewKind *kind;

    if (!obj)
        return NULL;
    kind = &view_kinds[obj->kind];
    for (size_t i = 0; i < kind->n_fields; i++)
        field_free(in, obj, &kind->fields[i]);
    intern_unref(in, obj->ns);
    intern_unref(in, obj->name);
    intern_unref(in, obj->uid);
    intern_unref(in, obj->owner_name);
    intern_unref(in, obj->owner_uid);
    intern_unref(in, obj->owner_kind_name);
    obj_trouble_clear(obj);
    free(obj);
    return NULL;
}
