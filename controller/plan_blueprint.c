/* SPDX-License-Identifier: Apache-2.0 */
/* The spec of a Sandbox that is made from a template (plan_internal.h). */
#include "controller/plan_internal.h"

void plan_write_blueprint(JsonWriter *w, const Template *t, const PairSet *labels,
                          const PairSet *annotations)
{
    jw_key(w, "spec");
    jw_object(w);
    jw_key(w, "podTemplate");
    jw_object(w);
    jw_key(w, "metadata");
    jw_object(w);
    plan_write_map(w, "labels", labels->items, labels->len);
    plan_write_map(w, "annotations", annotations->items, annotations->len);
    jw_object_end(w);
    jw_key(w, "spec");
    jw_raw(w, t->pod_spec, t->pod_spec_len);
    jw_object_end(w);
    if (t->service != SERVICE_UNSET)
        jw_kv_bool(w, "service", t->service == SERVICE_TRUE);
    jw_object_end(w);
}
