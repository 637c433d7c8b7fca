/* SPDX-License-Identifier: Apache-2.0 */
/* A World made of short JSON, and plans made from it. Quotes are single in all fragments. */
#pragma once

#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/model_parse.h"
#include "controller/names.h"
#include "controller/plan.h"

#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#define FX_NOW INT64_C(1790000000000) /* 2026-09-21T14:13:20Z */

typedef struct Fixture {
    World *world;
    PlanConfig config;
    int64_t now_ms;
    bool synced;
    Plan plan;
    PlanLive live[PLAN_READS_MAX];
    size_t n_live;
    JsonValue **docs; /* freed at the end */
    size_t n_docs;
} Fixture;

static inline JsonValue *fx_json(const char *single_quoted)
{
    char *text = xstrdup(single_quoted);
    JsonValue *v = NULL;

    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    if (json_parse(text, strlen(text), JSON_DEPTH_CRD, JSON_PARSE_UNIQUE, &v, NULL) < 0)
        fail_msg("not JSON: %s", text);
    free(text);
    return v;
}

/* Kept until the test ends. */
static inline JsonValue *fx_keep(Fixture *fx, JsonValue *v)
{
    fx->docs = xreallocarray(fx->docs, fx->n_docs + 1, sizeof(JsonValue *));
    fx->docs[fx->n_docs++] = v;
    return v;
}

static inline int fx_setup(void **state)
{
    Fixture *fx = xnew(Fixture);

    fx->world = world_new();
    fx->config = plan_config_default;
    fx->now_ms = FX_NOW;
    fx->synced = true;
    fx->plan.wake_ms = TIME_NONE;
    *state = fx;
    return 0;
}

static inline int fx_teardown(void **state)
{
    Fixture *fx = *state;

    plan_done(&fx->plan);
    for (size_t i = 0; i < fx->n_docs; i++)
        json_free(fx->docs[i]);
    free(fx->docs);
    world_free(fx->world);
    free(fx);
    return 0;
}

/* meta: further members of metadata, with a leading comma; spec, status: members of those. */
static inline Obj *fx_put(Fixture *fx, ObjKind kind, const char *name, const char *uid, uint64_t rv,
                          const char *meta, const char *spec, const char *status)
{
    char *text = xasprintf("{'metadata':{'namespace':'ns','name':'%s','uid':'%s',"
                           "'resourceVersion':'%llu','generation':1,'creationTimestamp':"
                           "'2026-09-21T14:13:00Z'%s},'spec':{%s},'status':{%s}}",
                           name, uid, (unsigned long long)rv, meta, spec, status);
    JsonValue *doc = fx_json(text);
    Obj *view = NULL;

    assert_int_equal(obj_parse(world_interner(fx->world), kind, doc, fx->now_ms, &view, NULL), 0);
    (void)world_apply(fx->world, view, fx->now_ms);
    json_free(doc);
    free(text);
    return world_get(fx->world, kind, "ns", name);
}

static inline void fx_plan(Fixture *fx, KeyKind kind, const char *name)
{
    char *key = key_format(kind, "ns", name);
    const PlanInput in = {
        .world = fx->world,
        .config = &fx->config,
        .key = key,
        .now_ms = fx->now_ms,
        .random = 42,
        .synced = fx->synced,
        .live = fx->live,
        .n_live = fx->n_live,
    };

    plan_done(&fx->plan);
    assert_int_equal(plan_key(&in, &fx->plan, NULL), 0);
    free(key);
}

/* What the next plans find when they ask for it; doc NULL: absent. */
static inline void fx_live(Fixture *fx, ObjKind kind, const char *name, const char *doc)
{
    static char ns[] = "ns";
    JsonValue *v = doc ? fx_keep(fx, fx_json(doc)) : NULL;

    fx->live[fx->n_live++] = (PlanLive){.type = NEED_GET,
                                        .kind = kind,
                                        .ns = ns,
                                        .name = (char *)(uintptr_t)name,
                                        .found = v != NULL,
                                        .object = v};
}

static inline const PlanOp *fx_op(const Fixture *fx, const char *purpose)
{
    for (size_t i = 0; i < fx->plan.n_ops; i++)
        if (str_eq(fx->plan.ops[i].purpose, purpose))
            return &fx->plan.ops[i];
    return NULL;
}

/* The body of the op with this purpose, which must be there. */
static inline const JsonValue *fx_body(Fixture *fx, const char *purpose)
{
    const PlanOp *op = fx_op(fx, purpose);
    JsonValue *v = NULL;

    if (!op) {
        fail_msg("no op \"%s\" among %zu", purpose, fx->plan.n_ops);
        return NULL;
    }
    assert_int_equal(
        json_parse(op->body, op->body_len, JSON_DEPTH_CRD, JSON_PARSE_UNIQUE, &v, NULL), 0);
    return fx_keep(fx, v);
}

static inline const PlanEvent *fx_event(const Fixture *fx, const char *reason)
{
    for (size_t i = 0; i < fx->plan.n_events; i++)
        if (str_eq(fx->plan.events[i].reason, reason))
            return &fx->plan.events[i];
    return NULL;
}

/* The condition of that type in a status patch. */
static inline const JsonValue *fx_condition(const JsonValue *body, const char *type)
{
    const JsonValue *list = json_path(body, "status.conditions");

    for (size_t i = 0; i < json_array_len(list); i++)
        if (str_eq(json_str(json_array_at(list, i), "type"), type))
            return json_array_at(list, i);
    return NULL;
}

#define assert_str(a, b)                                                                           \
    do {                                                                                           \
        const char *_a = (a), *_b = (b);                                                           \
        if (!str_eq(_a, _b))                                                                       \
            fail_msg("\"%s\" is not \"%s\"", _a ? _a : "(null)", _b ? _b : "(null)");              \
    } while (0)

#define FX_TEST(fn) cmocka_unit_test_setup_teardown(fn, fx_setup, fx_teardown)
