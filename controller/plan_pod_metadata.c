/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels and annotations of Pods. What the user wrote into the template is copied and kept in step,
 * and the keys copied are listed on the Pod, so that a key that leaves the template leaves the Pod,
 * and a key that somebody else put there stays. Keys of the controller come from the Sandbox's own
 * labels and never from the template.
 */
#include "controller/plan_pod.h"

#include "common/base/str.h"
#include "controller/names.h"

#include <string.h>

#define LIST_MAX (256 * 1024)

/* Labels that are set to the value expected, or deleted where none is. */
typedef struct Expected {
    NameHash name_hash;
    StrPair items[5];
    size_t len;
} Expected;

static bool owner_is_extension(const Sandbox *s)
{
    return s->obj.owner_kind == OWNER_CLAIM || s->obj.owner_kind == OWNER_POOL ||
           s->obj.owner_kind == OWNER_TEMPLATE;
}

static const char *non_empty(const char *s)
{
    return str_empty(s) ? NULL : s;
}

static void expected_labels(const Sandbox *s, Expected *e)
{
    OwnerKind owner = s->obj.owner_kind;
    const char *template_ref = strmap_get(s->labels, LABEL_TEMPLATE_REF);
    const char *pool = strmap_get(s->labels, LABEL_WARM_POOL);
    const char *claim = strmap_get(s->labels, LABEL_CLAIM_UID);

    e->name_hash = name_hash_of(s->obj.name);
    const StrPair items[] = {
        {LABEL_NAME_HASH, e->name_hash.s},
        {LABEL_TEMPLATE_REF, owner_is_extension(s) ? non_empty(template_ref) : NULL},
        {LABEL_WARM_POOL, owner == OWNER_POOL ? non_empty(pool) : NULL},
        {LABEL_CLAIM_UID, owner == OWNER_CLAIM ? non_empty(claim) : NULL},
        {LABEL_CREATED_BY, created_by_normalised(strmap_get(s->labels, LABEL_CREATED_BY))},
    };
    memcpy(e->items, items, sizeof(items));
    e->len = ARRAY_SIZE(items);
}

static bool is_user_annotation(const char *key)
{
    return !key_is_reserved(key) && !str_eq(key, ANNOTATION_TRACE_CONTEXT);
}

static bool is_user_label(const char *key)
{
    return !key_is_reserved(key);
}

typedef bool (*KeyTestFn)(const char *key);

/* Maps are sorted, and so is the list. */
static void join_keys(const StrMap *m, KeyTestFn is_user, Buf *out)
{
    for (size_t i = 0; m && i < m->len; i++)
        if (is_user(m->items[i].key))
            (void)buf_printf(out, "%s%s", out->len ? "," : "", m->items[i].key);
}

void plan_pod_metadata(JsonWriter *w, const Sandbox *s)
{
    _cleanup_pairs_ PairSet labels = {0}, annotations = {0};
    _cleanup_buf_ Buf label_keys = BUF_INIT(LIST_MAX), annotation_keys = BUF_INIT(LIST_MAX);
    Expected e;

    expected_labels(s, &e);
    for (size_t i = 0; s->pod_labels && i < s->pod_labels->len; i++)
        if (is_user_label(s->pod_labels->items[i].key))
            pair_set_put(&labels, s->pod_labels->items[i].key, s->pod_labels->items[i].value);
    for (size_t i = 0; i < e.len; i++)
        pair_set_put(&labels, e.items[i].key, e.items[i].value);
    for (size_t i = 0; s->pod_annotations && i < s->pod_annotations->len; i++)
        if (is_user_annotation(s->pod_annotations->items[i].key))
            pair_set_put(&annotations, s->pod_annotations->items[i].key,
                         s->pod_annotations->items[i].value);
    join_keys(s->pod_labels, is_user_label, &label_keys);
    join_keys(s->pod_annotations, is_user_annotation, &annotation_keys);
    if (label_keys.len > 0)
        pair_set_put(&annotations, ANNOTATION_PROPAGATED_LABELS, buf_str(&label_keys));
    if (annotation_keys.len > 0)
        pair_set_put(&annotations, ANNOTATION_PROPAGATED_ANNOTATIONS, buf_str(&annotation_keys));
    plan_write_map(w, "labels", labels.items, labels.len);
    plan_write_map(w, "annotations", annotations.items, annotations.len);
}

/* Sets in `to` what the template has; drops from it what the list says was copied and is not in the
 * template any more. freed keeps copies of the list's keys alive. */
static void sync_user_keys(PairSet *to, const StrMap *template_map, const char *list,
                           KeyTestFn is_user, const char *keep)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        _cleanup_free_ char *key = xstrndup(list, n);
        list += n + (list[n] == ',');
        if (!str_eq(key, keep) && !(is_user(key) && strmap_get(template_map, key)) &&
            !str_eq(key, ANNOTATION_PROPAGATED_LABELS) &&
            !str_eq(key, ANNOTATION_PROPAGATED_ANNOTATIONS))
            pair_set_put(to, key, NULL);
    }
    for (size_t i = 0; template_map && i < template_map->len; i++)
        if (is_user(template_map->items[i].key))
            pair_set_put(to, template_map->items[i].key, template_map->items[i].value);
}

/* A list that was there once becomes "" and does not vanish. */
static void sync_list(PairSet *to, const char *key, const Buf *joined)
{
    if (joined->len > 0 || pair_set_get(to, key))
        pair_set_put(to, key, buf_str(joined));
}

/* The Pod of a Sandbox that lost its owner keeps what isolates it, until somebody decides. */
static bool keeps_labels(const Sandbox *s)
{
    return s->obj.owner_kind == OWNER_NONE && s->obj.made_by_controller;
}

int plan_pod_sync(const Sandbox *s, const Pod *pod, bool adopt, Plan *plan, Error **error)
{
    _cleanup_pairs_ PairSet labels = {0}, annotations = {0};
    _cleanup_buf_ Buf label_keys = BUF_INIT(LIST_MAX), annotation_keys = BUF_INIT(LIST_MAX);
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    Expected e;
    JsonWriter w;

    if (pod->obj.inflight > 0 || keeps_labels(s))
        return 0;
    expected_labels(s, &e);
    join_keys(s->pod_labels, is_user_label, &label_keys);
    join_keys(s->pod_annotations, is_user_annotation, &annotation_keys);
    pair_set_put_map(&labels, pod->labels);
    pair_set_put_map(&annotations, pod->annotations);
    sync_user_keys(&labels, s->pod_labels,
                   strmap_get(pod->annotations, ANNOTATION_PROPAGATED_LABELS), is_user_label,
                   LABEL_NAME_HASH);
    sync_user_keys(&annotations, s->pod_annotations,
                   strmap_get(pod->annotations, ANNOTATION_PROPAGATED_ANNOTATIONS),
                   is_user_annotation, NULL);
    for (size_t i = 0; i < e.len; i++)
        pair_set_put(&labels, e.items[i].key, e.items[i].value);
    sync_list(&annotations, ANNOTATION_PROPAGATED_LABELS, &label_keys);
    sync_list(&annotations, ANNOTATION_PROPAGATED_ANNOTATIONS, &annotation_keys);
    if (!adopt && !pair_set_differs(pod->labels, &labels) &&
        !pair_set_differs(pod->annotations, &annotations))
        return 0;
    plan_add_op_to(plan, PLAN_PATCH, &pod->obj, adopt ? "pod-adopt" : "pod-metadata")->guarded =
        adopt;
    w = plan_patch_begin_metadata(&body, &pod->obj, adopt);
    (void)pair_set_write_diff(&w, "labels", pod->labels, &labels);
    (void)pair_set_write_diff(&w, "annotations", pod->annotations, &annotations);
    if (adopt)
        plan_write_owner(&w, &s->obj);
    jw_object_end(&w);
    return plan_patch_end(plan, &w, &body, error);
}
