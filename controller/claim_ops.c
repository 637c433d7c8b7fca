/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A claim's writes. The transfer is the commit of a warm adoption: one patch that makes the claim
 * the Sandbox's controller, checked by resourceVersion, so that of two claims one gets it. The
 * claim's annotations travel beside it, and its status follows when both are answered.
 */
#include "controller/claim_pass.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/candidates.h"
#include "controller/names.h"

#include <stdio.h>

/* RFC3339Nano with a sub-second part that is never zero: readers parse it as such. */
static void format_nano(int64_t ms, char out[RFC3339_MAX])
{
    time_format_rfc3339_micro(ms % 1000 == 0 ? ms + 1 : ms, out);
}

/* Metadata of the podTemplate as a patch: "spec":{"podTemplate":{"metadata":{…}}}. */
static void write_template_diff(JsonWriter *w, const Sandbox *s, const PodTemplateMetadata *m)
{
    if (!pair_set_differs(s->pod_labels, &m->labels) &&
        !pair_set_differs(s->pod_annotations, &m->annotations))
        return;
    jw_key(w, "spec");
    jw_object(w);
    jw_key(w, "podTemplate");
    jw_object(w);
    jw_key(w, "metadata");
    jw_object(w);
    (void)pair_set_write_diff(w, "labels", s->pod_labels, &m->labels);
    (void)pair_set_write_diff(w, "annotations", s->pod_annotations, &m->annotations);
    jw_object_end(w);
    jw_object_end(w);
    jw_object_end(w);
}

/* Labels of a Sandbox that changes hands. */
static void transferred_labels(const ClaimPass *p, const Sandbox *s, const NameHash *template_ref,
                               PairSet *labels)
{
    pair_set_put_map(labels, s->labels);
    pair_set_put(labels, LABEL_WARM_POOL, NULL);
    pair_set_put(labels, LABEL_POD_TEMPLATE_HASH, NULL);
    pair_set_put(labels, LABEL_TEMPLATE_HASH, NULL);
    pair_set_put(labels, LABEL_LAUNCH_TYPE, "warm");
    pair_set_put(labels, LABEL_TEMPLATE_REF, template_ref->s);
    pair_set_put(labels, LABEL_CLAIM_UID, p->c->obj.uid);
    pair_set_put(labels, LABEL_CREATED_BY, p->c->created_by);
}

static void write_trace_context(const ClaimPass *p, JsonWriter *w)
{
    if (!p->c->trace_context)
        return;
    jw_key(w, "annotations");
    jw_object(w);
    jw_kv_str(w, ANNOTATION_TRACE_CONTEXT, p->c->trace_context);
    jw_object_end(w);
}

int claim_add_transfer(ClaimPass *p, const Sandbox *s, Error **error)
{
    _cleanup_pod_metadata_ PodTemplateMetadata m;
    _cleanup_pairs_ PairSet labels = {0};
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w;
    PlanOp *op;
    int r;

    claim_pod_template_metadata(p->c, p->template, &m);
    transferred_labels(p, s, &m.template_ref, &labels);
    op = plan_add_op_to(p->plan, PLAN_PATCH, &s->obj, "transfer");
    op->reserve_for = xstrdup(p->c->obj.uid);
    op->guarded = true;
    w = plan_patch_begin_metadata(&body, &s->obj, true);
    (void)pair_set_write_diff(&w, "labels", s->labels, &labels);
    write_trace_context(p, &w);
    plan_write_owner(&w, &p->c->obj);
    jw_object_end(&w);
    write_template_diff(&w, s, &m);
    r = plan_patch_end(p->plan, &w, &body, error);
    if (r < 0)
        return r;
    plan_note(p->plan, "sandbox adopted", p->c->obj.name, s->obj.name, "from pool \"%s\", %s",
              p->pool->obj.name, sandbox_is_ready(s) ? "ready" : "still starting");
    if (p->in->config->claim_events)
        plan_add_event(p->plan, &p->c->obj, false, "SandboxAdopted", "Adoption",
                       "Adopted warm pool Sandbox \"%s\"", s->obj.name);
    return claim_add_annotations(p, s->obj.name, sandbox_is_ready(s), error);
}

static void write_cold_metadata(const ClaimPass *p, const NameHash *template_ref, JsonWriter *w)
{
    _cleanup_pairs_ PairSet labels = {0}, annotations = {0};

    pair_set_put(&labels, LABEL_CLAIM_UID, p->c->obj.uid);
    pair_set_put(&labels, LABEL_CREATED_BY, p->c->created_by);
    pair_set_put(&labels, LABEL_LAUNCH_TYPE, "cold");
    pair_set_put(&labels, LABEL_TEMPLATE_REF, template_ref->s);
    pair_set_put(&annotations, ANNOTATION_TEMPLATE_REF, p->template->obj.name);
    pair_set_put(&annotations, ANNOTATION_TRACE_CONTEXT, p->c->trace_context);
    jw_key(w, "metadata");
    jw_object(w);
    jw_kv_str(w, "name", p->c->obj.name);
    jw_kv_str(w, "namespace", p->c->obj.ns);
    plan_write_map(w, "labels", labels.items, labels.len);
    plan_write_map(w, "annotations", annotations.items, annotations.len);
    plan_write_owner(w, &p->c->obj);
    jw_object_end(w);
}

int claim_add_cold_create(ClaimPass *p, Error **error)
{
    _cleanup_pod_metadata_ PodTemplateMetadata m;
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    JsonWriter w = json_writer(&body);
    PlanOp *op;
    int r;

    claim_pod_template_metadata(p->c, p->template, &m);
    jw_object(&w);
    jw_kv_str(&w, "apiVersion", obj_api_version(OBJ_SANDBOX));
    jw_kv_str(&w, "kind", "Sandbox");
    write_cold_metadata(p, &m.template_ref, &w);
    plan_write_blueprint(&w, p->template, &m.labels, &m.annotations);
    op = plan_add_op(p->plan, PLAN_CREATE, OBJ_SANDBOX, p->c->obj.ns, p->c->obj.name, NULL,
                     "cold-create");
    op->guarded = true;
    op->reserve_for = xstrdup(p->c->obj.uid);
    r = plan_patch_end(p->plan, &w, &body, error);
    if (r < 0)
        return r;
    plan_note(p->plan, "sandbox created for a claim", p->c->obj.name, p->c->obj.name,
              "no member of pool \"%s\" could be had", p->pool->obj.name);
    if (p->in->config->claim_events)
        plan_add_event(p->plan, &p->c->obj, false, "SandboxProvisioned", "Provisioning",
                       "Created Sandbox \"%s\"", p->c->obj.name);
    return claim_add_annotations(p, NULL, false, error);
}

/* Sets key to value where the claim has another one; NULL removes. Returns whether it did. */
static bool put_annotation(StrPair *pairs, size_t *n, const char *key, const char *was,
                           const char *value)
{
    if (str_eq(was, value))
        return false;
    pairs[(*n)++] = (StrPair){key, value};
    return true;
}

/* A claim that became Ready before this process looked has no known date. */
static const char *first_ready_text(const ClaimPass *p, bool becomes_ready, char *buf)
{
    if (!becomes_ready && !claim_is_ready(p->c))
        return NULL;
    if (!becomes_ready && p->c->ready_seen_ms == TIME_NONE)
        return "unknown";
    format_nano(becomes_ready ? p->in->now_ms : p->c->ready_seen_ms, buf);
    return buf;
}

int claim_add_annotations(ClaimPass *p, const char *sandbox, bool becomes_ready, Error **error)
{
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    char observed[RFC3339_MAX], ready[RFC3339_MAX];
    const Claim *c = p->c;
    StrPair pairs[3];
    size_t n = 0;
    JsonWriter w;

    if (c->obj.inflight > 0)
        return 0;
    if (p->in->config->observability_annotations) {
        format_nano(c->first_seen_ms, observed);
        if (!c->first_observed)
            put_annotation(pairs, &n, ANNOTATION_FIRST_OBSERVED, NULL, observed);
        if (!c->first_ready)
            put_annotation(pairs, &n, ANNOTATION_FIRST_READY, NULL,
                           first_ready_text(p, becomes_ready, ready));
    }
    if (sandbox || p->reference_dead || p->bound)
        put_annotation(pairs, &n, ANNOTATION_SANDBOX_NAME, c->assigned, sandbox);
    if (n == 0 && !c->legacy_sandbox)
        return 0;
    plan_add_op_to(p->plan, PLAN_PATCH, &c->obj, "claim-annotations");
    w = plan_patch_begin_metadata(&body, &c->obj, false);
    if (c->legacy_sandbox)
        jw_kv_raw(&w, "labels", "{\"" LABEL_SANDBOX_NAME "\":null}");
    plan_write_map(&w, "annotations", pairs, n);
    jw_object_end(&w);
    return plan_patch_end(p->plan, &w, &body, error);
}

int claim_add_drift(ClaimPass *p, Error **error)
{
    _cleanup_pod_metadata_ PodTemplateMetadata m = {0};
    _cleanup_pairs_ PairSet labels = {0};
    _cleanup_buf_ Buf body = BUF_INIT(PLAN_BODY_MAX);
    Sandbox *s = p->bound;
    char text[CLAIM_ERROR_MAX];
    JsonWriter w;

    if (!p->template || s->obj.inflight > 0 || s->obj.deleting ||
        !claim_metadata_compatible(p->c, p->template, text, sizeof(text)))
        return 0;
    claim_pod_template_metadata(p->c, p->template, &m);
    pair_set_put_map(&labels, s->labels);
    if (!pair_set_get(&labels, LABEL_LAUNCH_TYPE))
        pair_set_put(&labels, LABEL_LAUNCH_TYPE,
                     str_eq(s->obj.name, p->c->obj.name) ? "cold" : "warm");
    pair_set_put(&labels, LABEL_CLAIM_UID, p->c->obj.uid);
    pair_set_put(&labels, LABEL_TEMPLATE_REF, m.template_ref.s);
    pair_set_put(&labels, LABEL_CREATED_BY, p->c->created_by);
    if (!pair_set_differs(s->labels, &labels) && !pair_set_differs(s->pod_labels, &m.labels) &&
        !pair_set_differs(s->pod_annotations, &m.annotations))
        return 0;
    plan_add_op_to(p->plan, PLAN_PATCH, &s->obj, "sandbox-metadata");
    w = plan_patch_begin_metadata(&body, &s->obj, false);
    (void)pair_set_write_diff(&w, "labels", s->labels, &labels);
    jw_object_end(&w);
    write_template_diff(&w, s, &m);
    return plan_patch_end(p->plan, &w, &body, error);
}
