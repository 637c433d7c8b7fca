/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/model_parse.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/model_fields.h"
#include "controller/model_kinds.h"

#include <limits.h>
#include <string.h>

static int64_t parse_time(const char *s)
{
    int64_t ms;

    if (str_empty(s) || time_parse_rfc3339(s, &ms, NULL) < 0)
        return TIME_NONE;
    return ms;
}

StrMap *view_string_map(Interner *in, const JsonValue *object, ViewKeyFn keep, const void *arg)
{
    size_t n = 0, cap = json_object_len(object);
    JsonMember m = json_members(object);
    StrMap *map;

    if (cap == 0)
        return NULL;
    StrPair *pairs = xcalloc(cap, sizeof(StrPair));
    while (json_next(&m)) {
        const char *value = json_value_str(m.value);
        if (value && (!keep || keep(m.key, arg)))
            pairs[n++] = (StrPair){m.key, value};
    }
    map = strmap_new(in, pairs, n);
    free(pairs);
    return map;
}

static bool key_is_ours(const char *key, _unused_ const void *arg)
{
    return str_starts_with(key, "agents.x-k8s.io/");
}

static StrList *parse_list(Interner *in, const JsonValue *array, const char *member)
{
    size_t n = 0, cap = json_array_len(array);
    StrList *list;

    if (cap == 0)
        return NULL;
    const char **items = xcalloc(cap, sizeof(char *));
    for (size_t i = 0; i < cap; i++) {
        const JsonValue *v = json_array_at(array, i);
        const char *s = json_value_str(member ? json_get(v, member) : v);
        if (s)
            items[n++] = s;
    }
    list = strlist_new(in, items, n);
    free(items);
    return list;
}

static ConditionStatus parse_condition_status(const char *s)
{
    return str_eq(s, "True")    ? CONDITION_TRUE
           : str_eq(s, "False") ? CONDITION_FALSE
                                : CONDITION_UNKNOWN;
}

static Conditions *parse_conditions(Interner *in, const JsonValue *array)
{
    size_t n = json_array_len(array);
    Conditions *c;

    if (n == 0)
        return NULL;
    if (n > CONDITIONS_MAX)
        n = CONDITIONS_MAX;
    c = xcalloc(1, sizeof(Conditions) + n * sizeof(Condition));
    for (size_t i = 0; i < n; i++) {
        const JsonValue *v = json_array_at(array, i);
        if (!json_str(v, "type"))
            continue;
        c->items[c->len++] = (Condition){
            .type = intern(in, json_str(v, "type")),
            .reason = intern(in, json_str(v, "reason")),
            .message = intern(in, json_str(v, "message")),
            .status = parse_condition_status(json_str(v, "status")),
            .transition_ms = parse_time(json_str(v, "lastTransitionTime")),
            .observed_generation = json_int(v, "observedGeneration", 0),
        };
    }
    return c;
}

/* Position of s among the words, 0 where it is none of them. */
static int parse_word(const char *s, const char *words)
{
    size_t len = s ? strlen(s) : 0;

    for (int i = 0; len > 0 && *words; i++) {
        size_t n = strcspn(words, " ");
        if (n == len && memcmp(words, s, n) == 0)
            return i;
        words += n + (words[n] == ' ');
    }
    return 0;
}

static ServiceWish parse_service(const JsonValue *v)
{
    if (json_type(v) != JSON_BOOL)
        return SERVICE_UNSET;
    return json_value_bool(v, false) ? SERVICE_TRUE : SERVICE_FALSE;
}

static void parse_pointer_field(Interner *in, const ViewField *f, const JsonValue *v, void *at)
{
    switch (f->type) {
    case VIEW_STRING:
        *(const char **)at = str_empty(json_value_str(v)) ? NULL : intern(in, json_value_str(v));
        break;
    case VIEW_MAP:
        *(const StrMap **)at = view_string_map(in, v, NULL, NULL);
        break;
    case VIEW_OUR_LABELS:
        *(const StrMap **)at = view_string_map(in, v, key_is_ours, NULL);
        break;
    case VIEW_LIST:
        *(const StrList **)at = parse_list(in, v, NULL);
        break;
    case VIEW_IPS:
        *(const StrList **)at = parse_list(in, v, "ip");
        break;
    case VIEW_CONDITIONS:
        *(const Conditions **)at = parse_conditions(in, v);
        break;
    default:
        break;
    }
}

static void parse_scalar_field(const ViewField *f, const JsonValue *v, void *at)
{
    switch (f->type) {
    case VIEW_BOOL:
        *(bool *)at = json_value_bool(v, false);
        break;
    case VIEW_PRESENT:
        *(bool *)at = json_array_len(v) > 0 || json_object_len(v) > 0;
        break;
    case VIEW_INT:
        *(int64_t *)at = json_value_int(v, -1);
        break;
    case VIEW_TIME:
        *(int64_t *)at = parse_time(json_value_str(v));
        break;
    case VIEW_SERVICE:
        *(ServiceWish *)at = parse_service(v);
        break;
    case VIEW_WORD:
        *(int *)at = parse_word(json_value_str(v), f->words);
        break;
    case VIEW_WORD_IS:
        *(bool *)at = str_eq(json_value_str(v), f->words);
        break;
    case VIEW_TIME_UNSET:
        *(int64_t *)at = TIME_NONE;
        break;
    default:
        break;
    }
}

static void parse_field(Interner *in, Obj *obj, const ViewField *f, const JsonValue *doc)
{
    const JsonValue *v = f->path ? json_path(doc, f->path) : NULL;
    void *at = view_field_at(obj, f);

    if (f->type == VIEW_EXISTS) {
        *(bool *)at = json_has(v, f->key);
        return;
    }
    if (f->key)
        v = json_get(v, f->key);
    parse_scalar_field(f, v, at);
    parse_pointer_field(in, f, v, at);
}

/* "group/version" or "version", and kind. */
static OwnerKind owner_kind_of(const char *api_version, const char *kind)
{
    static const struct {
        const char *group, *kind;
        OwnerKind owner;
    } known[] = {
        {"agents.x-k8s.io/", "Sandbox", OWNER_SANDBOX},
        {"extensions.agents.x-k8s.io/", "SandboxClaim", OWNER_CLAIM},
        {"extensions.agents.x-k8s.io/", "SandboxWarmPool", OWNER_POOL},
        {"extensions.agents.x-k8s.io/", "SandboxTemplate", OWNER_TEMPLATE},
    };

    for (size_t i = 0; api_version && i < ARRAY_SIZE(known); i++)
        if (str_starts_with(api_version, known[i].group) && str_eq(kind, known[i].kind))
            return known[i].owner;
    return OWNER_OTHER;
}

static void parse_owners(Interner *in, Obj *obj, const JsonValue *refs)
{
    obj->n_owners = (unsigned)json_array_len(refs);
    for (size_t i = 0; i < json_array_len(refs); i++) {
        const JsonValue *ref = json_array_at(refs, i);
        if (!json_bool(ref, "controller", false) || str_empty(json_str(ref, "uid")))
            continue;
        obj->owner_kind = owner_kind_of(json_str(ref, "apiVersion"), json_str(ref, "kind"));
        obj->owner_kind_name = intern(in, json_str(ref, "kind"));
        obj->owner_name = intern(in, json_str(ref, "name"));
        obj->owner_uid = intern(in, json_str(ref, "uid"));
        return;
    }
}

int obj_parse_ref(const JsonValue *doc, ObjRef *ret, Error **error)
{
    const char *rv = json_str(doc, "metadata.resourceVersion");
    const char *ns = json_str(doc, "metadata.namespace");

    *ret = (ObjRef){
        .ns = ns ? ns : "",
        .name = json_str(doc, "metadata.name"),
        .uid = json_str(doc, "metadata.uid"),
    };
    if (str_empty(ret->name) || str_empty(ret->uid))
        return error_set(error, ERROR_INVALID, "object without a name or UID");
    if (!rv || str_to_u64(rv, &ret->rv) < 0)
        return error_set(error, ERROR_INVALID,
                         "resourceVersion \"%s\" of %s/%s is not a decimal number", rv ? rv : "",
                         ret->ns, ret->name);
    return 0;
}

static void parse_metadata(Interner *in, Obj *obj, const ObjRef *ref, const JsonValue *doc)
{
    obj->ns = intern(in, ref->ns);
    obj->name = intern(in, ref->name);
    obj->uid = intern(in, ref->uid);
    obj->rv = ref->rv;
    obj->generation = json_int(doc, "metadata.generation", 0);
    obj->created_ms = parse_time(json_str(doc, "metadata.creationTimestamp"));
    obj->deleting = json_str(doc, "metadata.deletionTimestamp") != NULL;
    parse_owners(in, obj, json_path(doc, "metadata.ownerReferences"));
    obj->made_by_controller =
        view_made_by_controller(obj->kind, json_path(doc, "metadata.managedFields"));
}

int obj_parse(Interner *in, ObjKind kind, const JsonValue *doc, int64_t now_ms, Obj **ret,
              Error **error)
{
    const ViewKind *view = &view_kinds[kind];
    ObjRef ref;
    Obj *obj;
    int r;

    r = obj_parse_ref(doc, &ref, error);
    if (r < 0)
        return r;
    obj = xcalloc(1, view->size);
    obj->kind = kind;
    parse_metadata(in, obj, &ref, doc);
    for (size_t i = 0; i < view->n_fields; i++)
        parse_field(in, obj, &view->fields[i], doc);
    view_finish(in, obj, doc, now_ms);
    *ret = obj;
    return 0;
}
