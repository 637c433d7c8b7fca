/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/dispatch.h"
#include "common/base/contract.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SHOWN_BYTES 64

/* Sets the field from a value that is not null; `given` is for errors. */
typedef int (*FieldSetter)(const JsonField *f, const JsonValue *v, void *place, Error **error);

static void *field_place(void *target, const JsonField *f)
{
    return (char *)target + f->offset;
}

static size_t max_bytes(const JsonField *f)
{
    return f->max > 0 ? (size_t)f->max : JSON_FIELD_STRING_BYTES;
}

/* What was given, for an error: scalars as they are, others by their type. */
static char *describe(const JsonValue *v)
{
    static const char *const names[JSON_TYPE_MAX] = {
        "null", "a boolean", "an integer", "a number", "a string", "an array", "an object",
    };
    _cleanup_buf_ Buf text = BUF_INIT(SHOWN_BYTES);
    JsonType type = json_type(v);

    if (type == JSON_ARRAY || type == JSON_OBJECT || json_print(v, &text) < 0)
        return xstrdup(names[type]);
    return buf_take(&text, NULL);
}

static int refuse(const JsonField *f, const JsonValue *v, Error **error, const char *allowed)
{
    _cleanup_free_ char *given = describe(v);

    return error_set(error, ERROR_INVALID, "%s must be %s, not %s", f->name, allowed, given);
}

static int check_length(const JsonField *f, size_t len, Error **error)
{
    if (len <= max_bytes(f) && (int64_t)len >= f->min)
        return 0;
    if (f->min == 0)
        return error_set(error, ERROR_INVALID, "%s must be a string of at most %zu bytes, not %zu",
                         f->name, max_bytes(f), len);
    return error_set(error, ERROR_INVALID,
                     "%s must be a string of %" PRId64 " to %zu bytes, not of %zu", f->name, f->min,
                     max_bytes(f), len);
}

/* A copy of a string value after the checks that each string has to pass. */
static int copy_string(const JsonField *f, const JsonValue *v, char **ret, Error **error)
{
    const char *s = json_value_str(v);
    size_t len = json_str_len(v);
    int r;

    if (!s)
        return refuse(f, v, error, "a string");
    r = check_length(f, len, error);
    if (r < 0)
        return r;
    if (memchr(s, '\0', len))
        return error_set(error, ERROR_INVALID, "%s must be a string without NUL", f->name);
    *ret = xstrndup(s, len);
    return 0;
}

static int set_string(const JsonField *f, const JsonValue *v, void *place, Error **error)
{
    return copy_string(f, v, place, error);
}

static bool lax_bool(const JsonValue *v, bool *ret)
{
    const char *s = json_value_str(v);
    int64_t i = json_value_int(v, -1);

    if (!str_eq(s, "true") && !str_eq(s, "false") && i != 0 && i != 1)
        return false;
    *ret = s ? str_eq(s, "true") : i == 1;
    return true;
}

static int set_bool(const JsonField *f, const JsonValue *v, void *place, Error **error)
{
    if (json_type(v) == JSON_BOOL)
        *(bool *)place = json_value_bool(v, false);
    else if (!(f->flags & JSON_FIELD_LAX) || !lax_bool(v, place))
        return refuse(f, v, error, "true or false");
    return 0;
}

static bool lax_int(const JsonValue *v, int64_t *ret)
{
    const char *s = json_value_str(v);
    double d = json_value_double(v, NAN);

    if (s)
        return str_to_i64(s, ret) == 0;
    /* Doubles hold each integer up to 2^53; beyond that it is not known what was meant. */
    if (!(fabs(d) <= 9007199254740992.0) || d != trunc(d))
        return false;
    *ret = (int64_t)d;
    return true;
}

static int set_int(const JsonField *f, const JsonValue *v, void *place, Error **error)
{
    bool limited = f->min != 0 || f->max != 0;
    _cleanup_free_ char *allowed = NULL;
    int64_t i = json_value_int(v, 0);
    bool known = json_type(v) == JSON_INT || ((f->flags & JSON_FIELD_LAX) && lax_int(v, &i));

    if (known && (!limited || (i >= f->min && i <= f->max))) {
        *(int64_t *)place = i;
        return 0;
    }
    if (limited)
        allowed = xasprintf("an integer from %" PRId64 " to %" PRId64, f->min, f->max);
    return refuse(f, v, error, allowed ? allowed : "an integer");
}

/* Finds word among the space separated words. */
static bool is_one_of(const char *words, const char *word)
{
    size_t len = strlen(word);

    if (len == 0 || strchr(word, ' '))
        return false;
    for (const char *p = words; (p = strstr(p, word)) != NULL; p += len)
        if ((p == words || p[-1] == ' ') && (p[len] == '\0' || p[len] == ' '))
            return true;
    return false;
}

static int set_enum(const JsonField *f, const JsonValue *v, void *place, Error **error)
{
    const char *s = json_value_str(v);
    _cleanup_free_ char *allowed = NULL;

    if (s && strlen(s) == json_str_len(v) && is_one_of(f->words, s)) {
        *(char **)place = xstrdup(s);
        return 0;
    }
    allowed = xasprintf("one of: %s;", f->words);
    allowed[strlen(allowed) - 1] = '\0';
    return refuse(f, v, error, allowed);
}

static int set_bytes(const JsonField *f, const JsonValue *v, void *place, Error **error)
{
    JsonBytes *bytes = place;
    const char *s = json_value_str(v);

    if (!s)
        return refuse(f, v, error, "a string");
    bytes->len = json_str_len(v);
    bytes->data = xmalloc(bytes->len + 1);
    memcpy(bytes->data, s, bytes->len);
    bytes->data[bytes->len] = '\0';
    return 0;
}

static bool is_scalar(const JsonValue *v)
{
    JsonType type = json_type(v);

    return type == JSON_BOOL || type == JSON_INT || type == JSON_DOUBLE;
}

static int copy_scalar_text(const JsonField *f, const JsonValue *v, char **ret, Error **error)
{
    _cleanup_buf_ Buf text = BUF_INIT(JSON_FIELD_STRING_BYTES);
    int r;

    (void)json_print(v, &text);
    r = buf_check(&text, f->name, error);
    if (r == 0)
        r = check_length(f, text.len, error);
    if (r == 0)
        *ret = buf_take(&text, NULL);
    return r;
}

static int copy_map_value(const JsonField *f, const JsonMember *m, char **ret, Error **error)
{
    _cleanup_free_ char *name = xasprintf("%s: the value of key \"%.64s\"", f->name, m->key);
    JsonField value = *f;

    value.name = name;
    if ((f->flags & JSON_FIELD_LAX) && is_scalar(m->value))
        return copy_scalar_text(&value, m->value, ret, error);
    return copy_string(&value, m->value, ret, error);
}

static int map_add(const JsonField *f, const JsonMember *m, JsonStringMap *map, Error **error)
{
    size_t key_len = strlen(m->key);
    char *value = NULL;
    int r;

    if (key_len == 0 || key_len > JSON_FIELD_MAP_KEY_BYTES)
        return error_set(error, ERROR_INVALID, "%s must have keys of 1 to %d bytes, not of %zu",
                         f->name, JSON_FIELD_MAP_KEY_BYTES, key_len);
    r = copy_map_value(f, m, &value, error);
    if (r < 0)
        return r;
    map->keys[map->len] = xstrdup(m->key);
    map->values[map->len++] = value;
    return 0;
}

static int set_string_map(const JsonField *f, const JsonValue *v, void *place, Error **error)
{
    JsonStringMap *map = place;
    size_t n = json_object_len(v);
    JsonMember m = json_members(v);

    if (json_type(v) != JSON_OBJECT)
        return refuse(f, v, error, "an object of strings");
    if (n > JSON_FIELD_MAP_ENTRIES)
        return error_set(error, ERROR_INVALID, "%s must have at most %d entries, not %zu", f->name,
                         JSON_FIELD_MAP_ENTRIES, n);
    map->keys = xcalloc(n, sizeof(char *));
    map->values = xcalloc(n, sizeof(char *));
    while (json_next(&m)) {
        int r = map_add(f, &m, map, error);

        if (r < 0)
            return r;
    }
    return 0;
}

static const FieldSetter setters[JSON_FIELD_TYPE_MAX] = {
    [JSON_FIELD_STRING] = set_string,
    [JSON_FIELD_BOOL] = set_bool,
    [JSON_FIELD_INT] = set_int,
    [JSON_FIELD_ENUM] = set_enum,
    [JSON_FIELD_STRING_MAP] = set_string_map,
    [JSON_FIELD_BYTES] = set_bytes,
};

static int set_default(const JsonField *f, void *target)
{
    _cleanup_json_ JsonValue *v = NULL;
    int r;

    if (!f->def)
        return 0;
    r = json_parse(f->def, strlen(f->def), JSON_DEPTH_DEFAULT, JSON_PARSE_DEFAULT, &v, NULL);
    if (r == 0 && v)
        r = setters[f->type](f, v, field_place(target, f), NULL);
    return r;
}

static int dispatch_field(const JsonValue *object, const JsonField *f, void *target, Error **error)
{
    const JsonValue *v = json_get(object, f->name);
    bool given = v || json_has(object, f->name);
    int r;

    if (!v && given && !(f->flags & (JSON_FIELD_NULLABLE | JSON_FIELD_NULL_IS_ABSENT)))
        return refuse(f, v, error, "given or left out");
    if (!v && (f->flags & JSON_FIELD_REQUIRED))
        return error_set(error, ERROR_INVALID, "%s is required", f->name);
    if (!v) {
        r = set_default(f, target);
        CONTRACT(r == 0); /* a row that refuses its own default */
        return r;
    }
    r = setters[f->type](f, v, field_place(target, f), error);
    if (r == 0 && f->present_offset > 0)
        *((bool *)target + f->present_offset) = true;
    return r;
}

static bool is_known(const JsonField *fields, size_t n_fields, const char *name)
{
    for (size_t i = 0; i < n_fields; i++)
        if (str_eq(fields[i].name, name))
            return true;
    return false;
}

static int refuse_unknown(const JsonField *fields, size_t n_fields, const char *name, Error **error)
{
    _cleanup_buf_ Buf known = BUF_INIT(ERROR_MESSAGE_MAX);

    for (size_t i = 0; i < n_fields; i++)
        if (!(fields[i].flags & JSON_FIELD_HIDDEN))
            (void)buf_printf(&known, "%s%s", known.len > 0 ? ", " : "", fields[i].name);
    return error_set(error, ERROR_INVALID, "unknown field \"%.64s\"; %s%s", name,
                     known.len > 0 ? "known are: " : "no fields are taken", buf_str(&known));
}

static int check_names(const JsonValue *object, const JsonField *fields, size_t n_fields,
                       Error **error)
{
    JsonMember m = json_members(object);

    while (json_next(&m))
        if (!is_known(fields, n_fields, m.key))
            return refuse_unknown(fields, n_fields, m.key, error);
    return 0;
}

int json_dispatch(const JsonValue *object, const JsonField *fields, size_t n_fields, void *target,
                  Error **error)
{
    int r;

    if (object && json_type(object) != JSON_OBJECT)
        return error_set(error, ERROR_INVALID, "an object is needed");
    r = check_names(object, fields, n_fields, error);
    for (size_t i = 0; i < n_fields && r == 0; i++)
        r = dispatch_field(object, &fields[i], target, error);
    if (r < 0)
        json_dispatch_done(fields, n_fields, target);
    return r;
}

void json_dispatch_done(const JsonField *fields, size_t n_fields, void *target)
{
    for (size_t i = 0; i < n_fields; i++) {
        void *place = field_place(target, &fields[i]);

        if (fields[i].type == JSON_FIELD_STRING || fields[i].type == JSON_FIELD_ENUM)
            str_replace(place, NULL);
        else if (fields[i].type == JSON_FIELD_STRING_MAP)
            json_string_map_done(place);
        else if (fields[i].type == JSON_FIELD_BYTES)
            free(TAKE_PTR(((JsonBytes *)place)->data));
    }
}

void json_string_map_done(JsonStringMap *m)
{
    for (size_t i = 0; i < m->len; i++) {
        free(m->keys[i]);
        free(m->values[i]);
    }
    free(m->keys);
    free(m->values);
    *m = (JsonStringMap){0};
}

const char *json_string_map_get(const JsonStringMap *m, const char *key)
{
    for (size_t i = 0; i < m->len; i++)
        if (str_eq(m->keys[i], key))
            return m->values[i];
    return NULL;
}
