/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Schema of a dispatch table. */
#include "common/json/dispatch.h"

#include <string.h>

static void put_type(JsonWriter *w, const JsonField *f)
{
    static const char *const names[JSON_FIELD_TYPE_MAX] = {
        [JSON_FIELD_STRING] = "string",     [JSON_FIELD_BOOL] = "boolean",
        [JSON_FIELD_INT] = "integer",       [JSON_FIELD_ENUM] = "string",
        [JSON_FIELD_STRING_MAP] = "object", [JSON_FIELD_BYTES] = "string",
    };

    jw_key(w, "type");
    if (!(f->flags & JSON_FIELD_NULLABLE)) {
        jw_str(w, names[f->type]);
        return;
    }
    jw_array(w);
    jw_str(w, names[f->type]);
    jw_str(w, "null");
    jw_array_end(w);
}

/* maxLength counts characters; a byte limit is never below it, so it holds as an upper bound. */
static void put_string_limits(JsonWriter *w, const JsonField *f)
{
    if (f->min > 0)
        jw_kv_int(w, "minLength", 1); /* characters that fill min bytes may be fewer */
    if (f->max > 0)
        jw_kv_int(w, "maxLength", f->max);
}

static void put_int_limits(JsonWriter *w, const JsonField *f)
{
    if (f->min == 0 && f->max == 0)
        return;
    jw_kv_int(w, "minimum", f->min);
    jw_kv_int(w, "maximum", f->max);
}

static void put_words(JsonWriter *w, const JsonField *f)
{
    jw_key(w, "enum");
    jw_array(w);
    for (const char *p = f->words; *p;) {
        size_t len = strcspn(p, " ");

        if (len > 0)
            jw_strn(w, p, len);
        p += len + strspn(p + len, " ");
    }
    if (f->flags & JSON_FIELD_NULLABLE)
        jw_null(w);
    jw_array_end(w);
}

static void put_map_values(JsonWriter *w, const JsonField *f)
{
    jw_kv_int(w, "maxProperties", JSON_FIELD_MAP_ENTRIES);
    jw_key(w, "additionalProperties");
    jw_object(w);
    jw_kv_str(w, "type", "string");
    put_string_limits(w, f);
    jw_object_end(w);
}

static void put_nothing(_unused_ JsonWriter *w, _unused_ const JsonField *f) {}

static void put_property(JsonWriter *w, const JsonField *f)
{
    static void (*const limits[JSON_FIELD_TYPE_MAX])(JsonWriter *, const JsonField *) = {
        [JSON_FIELD_STRING] = put_string_limits,  [JSON_FIELD_BOOL] = put_nothing,
        [JSON_FIELD_INT] = put_int_limits,        [JSON_FIELD_ENUM] = put_words,
        [JSON_FIELD_STRING_MAP] = put_map_values, [JSON_FIELD_BYTES] = put_nothing,
    };

    jw_key(w, f->name);
    jw_object(w);
    put_type(w, f);
    jw_kv_str_opt(w, "description", f->help);
    limits[f->type](w, f);
    if (f->def)
        jw_kv_raw(w, "default", f->def);
    jw_object_end(w);
}

static void put_required(JsonWriter *w, const JsonField *fields, size_t n_fields)
{
    bool begun = false;

    for (size_t i = 0; i < n_fields; i++) {
        if (!(fields[i].flags & JSON_FIELD_REQUIRED))
            continue;
        if (!begun) {
            jw_key(w, "required");
            jw_array(w);
            begun = true;
        }
        jw_str(w, fields[i].name);
    }
    if (begun)
        jw_array_end(w);
}

void json_dispatch_schema(JsonWriter *w, const JsonField *fields, size_t n_fields)
{
    jw_object(w);
    jw_kv_str(w, "type", "object");
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < n_fields; i++)
        if (!(fields[i].flags & JSON_FIELD_HIDDEN))
            put_property(w, &fields[i]);
    jw_object_end(w);
    put_required(w, fields, n_fields);
    jw_kv_bool(w, "additionalProperties", false);
    jw_object_end(w);
}
