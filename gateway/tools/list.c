/* SPDX-License-Identifier: Apache-2.0 */
/* tools/list from the rows. */
#include "common/json/write.h"
#include "gateway/tools/tool.h"

static void write_hints(JsonWriter *w, unsigned hints)
{
    jw_key(w, "annotations");
    jw_object(w);
    jw_kv_bool(w, "readOnlyHint", hints & TOOL_READ_ONLY);
    if (!(hints & TOOL_READ_ONLY)) {
        jw_kv_bool(w, "destructiveHint", hints & TOOL_DESTRUCTIVE);
        jw_kv_bool(w, "idempotentHint", hints & TOOL_IDEMPOTENT);
    }
    jw_kv_bool(w, "openWorldHint", hints & TOOL_OPEN_WORLD);
    jw_object_end(w);
}

static void write_output(JsonWriter *w, const ToolOutput *o)
{
    jw_key(w, o->name);
    jw_object(w);
    jw_kv_str(w, "type", o->type);
    if (o->extra) {
        (void)buf_append_char(w->out, ',');
        (void)buf_append_str(w->out, o->extra);
    }
    jw_kv_str_opt(w, "description", o->help);
    jw_object_end(w);
}

/* Further fields may come with later versions, so the schema does not close the object. */
static void write_output_schema(JsonWriter *w, const Tool *t)
{
    if (t->n_outputs == 0)
        return;
    jw_key(w, "outputSchema");
    jw_object(w);
    jw_kv_str(w, "type", "object");
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < t->n_outputs; i++)
        write_output(w, &t->outputs[i]);
    jw_object_end(w);
    jw_key(w, "required");
    jw_array(w);
    for (size_t i = 0; i < t->n_outputs; i++)
        if (!t->outputs[i].optional)
            jw_str(w, t->outputs[i].name);
    jw_array_end(w);
    jw_object_end(w);
}

static void write_tool(JsonWriter *w, const Tool *t)
{
    jw_object(w);
    jw_kv_str(w, "name", t->name);
    jw_kv_str(w, "title", t->title);
    jw_kv_str(w, "description", t->description);
    jw_key(w, "inputSchema");
    json_dispatch_schema(w, t->fields, t->n_fields);
    write_output_schema(w, t);
    write_hints(w, t->hints);
    jw_object_end(w);
}

void tools_write_list(Buf *out)
{
    JsonWriter w = json_writer(out);

    jw_array(&w);
    for (size_t i = 0; i < n_tools; i++)
        write_tool(&w, tools[i]);
    jw_array_end(&w);
}
