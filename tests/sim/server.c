/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/server.h"

#include "common/base/clock.h"
#include "common/base/contract.h"
#include "common/base/str.h"
#include "tests/sim/check.h"
#include "tests/sim/cluster.h"
#include "tests/sim/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct Server {
    Hashmap *objects[OBJ_KIND_MAX]; /* "ns/name" → Stored */
    Hashmap *by_uid;
    uint64_t rv;
    uint64_t next_uid;
};

#define TEXT_MAX (1024 * 1024)

static char *pair_key(const char *ns, const char *name)
{
    return xasprintf("%s/%s", ns, name);
}

Server *server_new(void)
{
    Server *s = xnew(Server);

    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++)
        s->objects[k] = hashmap_new();
    s->by_uid = hashmap_new();
    s->rv = 1000;
    return s;
}

static void stored_free(void *p)
{
    Stored *o = p;

    free(o->ns);
    free(o->name);
    free(o->uid);
    free(o->claimed_by);
    free(o->text);
    free(o->owner_uid);
    doc_free(o->doc);
    free(o);
}

Server *server_free(Server *s)
{
    for (ObjKind k = 0; k < OBJ_KIND_MAX; k++)
        hashmap_free_with(s->objects[k], stored_free);
    hashmap_free(s->by_uid);
    free(s);
    return NULL;
}

void reply_done(Reply *r)
{
    free(r->text);
    *r = (Reply){0};
}

static Reply reply_status(int code, const char *reason)
{
    Reply r = {.code = code, .reason = reason};

    r.text = xasprintf("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"%s\",\"reason\":"
                       "\"%s\",\"code\":%d}",
                       code < 400 ? "Success" : "Failure", reason ? reason : "", code);
    r.len = strlen(r.text);
    return r;
}

char *stored_text(Stored *o, size_t *ret_len)
{
    Buf text = BUF_INIT(TEXT_MAX);

    if (!o->text) {
        doc_print(o->doc, &text);
        o->text = buf_take(&text, &o->text_len);
    }
    *ret_len = o->text_len;
    return xmemdup(o->text, o->text_len + 1);
}

static Reply reply_object(int code, Stored *o)
{
    Reply r = {.code = code};

    r.text = stored_text(o, &r.len);
    return r;
}

Stored *server_find(const Sim *sim, ObjKind kind, const char *ns, const char *name)
{
    _cleanup_free_ char *key = pair_key(ns, name);

    return hashmap_get(sim->server->objects[kind], key);
}

Stored *server_find_uid(const Sim *sim, const char *uid)
{
    return uid ? hashmap_get(sim->server->by_uid, uid) : NULL;
}

uint64_t server_rv(const Sim *sim)
{
    return sim->server->rv;
}

size_t server_count(const Sim *sim, ObjKind kind)
{
    return hashmap_size(sim->server->objects[kind]);
}

const Doc *doc_controller(const Doc *doc)
{
    const Doc *refs = doc_path(doc, "metadata.ownerReferences");

    for (size_t i = 0; refs && i < refs->len; i++) {
        const Doc *flag = doc_get(refs->items[i], "controller");
        if (flag && str_eq(flag->text, "true"))
            return refs->items[i];
    }
    return NULL;
}

static void set_version(Sim *sim, Stored *o)
{
    char rv[24];

    o->rv = ++sim->server->rv;
    (void)snprintf(rv, sizeof(rv), "%" PRIu64, o->rv);
    doc_set(doc_make(o->doc, "metadata"), "resourceVersion", doc_string(rv));
    free(o->text);
    o->text = NULL;
    free(o->owner_uid);
    o->owner_uid = xstrdup_null(doc_str(doc_controller(o->doc), "uid"));
    o->deadline_ms = o->kind == OBJ_CLAIM ? facts_claim_deadline(o) : INT64_MAX;
}

static void announce(Sim *sim, Stored *o, const char *type, Writer who)
{
    if (who == WRITER_USER)
        o->user_ms = sim_mono_ms(sim);
    line_watch_event(sim, o, type);
    check_commit(sim, o, type, who);
    cluster_commit(sim, o, type);
}

void server_commit(Sim *sim, Stored *o, Writer who)
{
    set_version(sim, o);
    announce(sim, o, "MODIFIED", who);
}

void server_remove(Sim *sim, Stored *o, Writer who)
{
    _cleanup_free_ char *key = pair_key(o->ns, o->name);

    set_version(sim, o);
    (void)hashmap_remove(sim->server->objects[o->kind], key);
    (void)hashmap_remove(sim->server->by_uid, o->uid);
    announce(sim, o, "DELETED", who);
    stored_free(o);
}

/* The mark that tells who wrote the spec (managedFields, as far as it is looked at). */
static void mark_manager(Stored *o, Writer who)
{
    static const char *const fields[OBJ_KIND_MAX] = {
        [OBJ_SANDBOX] = "{\"f:spec\":{\"f:podTemplate\":{\"f:spec\":{}}}}",
        [OBJ_POD] = "{\"f:spec\":{\"f:containers\":{}}}",
    };
    const char *spec = fields[o->kind] ? fields[o->kind] : "{\"f:spec\":{}}";
    _cleanup_free_ char *text =
        xasprintf("[{\"manager\":\"%s\",\"operation\":\"Update\",\"fieldsV1\":%s}]",
                  who == WRITER_CONTROLLER ? "sandbox-controller" : "kubectl", spec);

    doc_set(doc_make(o->doc, "metadata"), "managedFields", doc_parse(text, strlen(text)));
}

static void fill_in(Sim *sim, Stored *o, Writer who)
{
    Doc *metadata = doc_make(o->doc, "metadata");
    char when[RFC3339_MAX];

    time_format_rfc3339(sim_wall_ms(sim), when);
    o->uid = xasprintf("uid-%" PRIu64, ++sim->server->next_uid);
    doc_set(metadata, "uid", doc_string(o->uid));
    doc_set(metadata, "creationTimestamp", doc_string(when));
    doc_set(metadata, "generation", doc_number(1));
    doc_remove(o->doc, "status");
    if (o->kind == OBJ_POD)
        doc_set(doc_make(o->doc, "status"), "phase", doc_string("Pending"));
    mark_manager(o, who);
}

Reply server_create(Sim *sim, ObjKind kind, const char *body, size_t len, Writer who)
{
    Doc *doc = doc_parse(body, len);
    const char *ns = doc_str(doc, "metadata.namespace"), *name = doc_str(doc, "metadata.name");
    Stored *o;

    CONTRACT(ns && name);
    if (!str_eq(doc_str(doc, "kind"), obj_resource(kind)->kind) ||
        !str_eq(doc_str(doc, "apiVersion"), obj_api_version(kind)) || !doc_get(doc, "spec"))
        sim_fail(sim, "create of a %s with a malformed body: %.*s", obj_resource(kind)->kind,
                 (int)len, body);
    if (server_find(sim, kind, ns, name)) {
        doc_free(doc);
        return reply_status(409, "AlreadyExists");
    }
    o = xnew(Stored);
    o->kind = kind;
    o->ns = xstrdup(ns);
    o->name = xstrdup(name);
    o->doc = doc;
    o->made_by = who;
    o->made_ms = sim_mono_ms(sim);
    fill_in(sim, o, who);
    set_version(sim, o);
    _cleanup_free_ char *key = pair_key(ns, name);
    (void)hashmap_put(sim->server->objects[kind], key, o);
    (void)hashmap_put(sim->server->by_uid, o->uid, o);
    announce(sim, o, "ADDED", who);
    return reply_object(201, o);
}

static bool is_custom(ObjKind kind)
{
    return kind == OBJ_SANDBOX || kind == OBJ_CLAIM || kind == OBJ_POOL || kind == OBJ_TEMPLATE;
}

/* 0, or the code of what forbids the write. uid_counts: a status write ignores the UID. */
static int precondition(const Stored *o, const char *uid, const char *rv, bool uid_counts)
{
    uint64_t wanted;

    if (uid && uid_counts && !str_eq(uid, o->uid))
        return 422;
    if (rv && (str_to_u64(rv, &wanted) < 0 || wanted != o->rv))
        return 409;
    return 0;
}

/* Main and status writes keep to their halves; preconditions are not part of the change. */
static bool merge(Stored *o, Doc *patch, bool status, bool *ret_spec_changed)
{
    Doc *metadata = doc_get(patch, "metadata");
    bool changed = false;

    if (metadata) {
        doc_remove(metadata, "uid");
        doc_remove(metadata, "resourceVersion");
    }
    if (status)
        doc_remove(patch, "metadata");
    for (size_t i = 0; i < patch->len; i++) {
        _cleanup_(doc_freep) Doc *one = NULL;
        bool is_status = str_eq(patch->keys[i], "status"), did;
        if (is_status != status)
            continue;
        one = doc_object();
        doc_set(one, patch->keys[i], patch->items[i]);
        patch->items[i] = doc_object();
        did = doc_merge(o->doc, one);
        if (str_eq(patch->keys[i], "spec"))
            *ret_spec_changed = did;
        changed = changed || did;
    }
    return changed;
}

static Reply stored_reply(Sim *sim, Stored *o, bool changed, bool spec_changed, Writer who)
{
    if (spec_changed && is_custom(o->kind))
        doc_set(doc_get(o->doc, "metadata"), "generation",
                doc_number(doc_int(o->doc, "metadata.generation", 0) + 1));
    if (changed)
        server_commit(sim, o, who);
    return reply_object(200, o);
}

Reply server_patch(Sim *sim, ObjKind kind, const char *ns, const char *name, bool status,
                   const char *body, size_t len, Writer who)
{
    Stored *o = server_find(sim, kind, ns, name);
    Doc *patch = doc_parse(body, len);
    bool changed = false, spec_changed = false;
    int code;

    if (!o) {
        doc_free(patch);
        return reply_status(404, "NotFound");
    }
    code = precondition(o, doc_str(patch, "metadata.uid"),
                        doc_str(patch, "metadata.resourceVersion"), !status);
    if (code == 0)
        changed = merge(o, patch, status, &spec_changed);
    doc_free(patch);
    return code == 0 ? stored_reply(sim, o, changed, spec_changed, who)
                     : reply_status(code, code == 409 ? "Conflict" : "Invalid");
}

/* As much of RFC 6902 as is used: test /metadata/uid, then replace /spec. */
Reply server_patch_json(Sim *sim, ObjKind kind, const char *ns, const char *name, const char *body,
                        size_t len, Writer who)
{
    Stored *o = server_find(sim, kind, ns, name);
    Doc *patch = doc_parse(body, len);

    if (!o) {
        doc_free(patch);
        return reply_status(404, "NotFound");
    }
    CONTRACT(patch->type == DOC_ARRAY && patch->len == 2);
    if (!str_eq(doc_str(patch->items[0], "value"), o->uid)) {
        doc_free(patch);
        return reply_status(422, "Invalid");
    }
    doc_set(o->doc, "spec", doc_copy(doc_get(patch->items[1], "value")));
    doc_free(patch);
    return stored_reply(sim, o, true, true, who);
}

static void add_finalizer(Doc *doc, const char *name)
{
    Doc *metadata = doc_make(doc, "metadata"), *list = doc_parse("[]", 2);

    doc_append(list, doc_string(name));
    doc_set(metadata, "finalizers", list);
}

static void start_deleting(Sim *sim, Stored *o, const char *finalizer, Writer who)
{
    char when[RFC3339_MAX];

    if (doc_path(o->doc, "metadata.deletionTimestamp"))
        return;
    time_format_rfc3339(sim_wall_ms(sim), when);
    doc_set(doc_make(o->doc, "metadata"), "deletionTimestamp", doc_string(when));
    if (finalizer)
        add_finalizer(o->doc, finalizer);
    server_commit(sim, o, who);
}

Reply server_delete(Sim *sim, ObjKind kind, const char *ns, const char *name, const char *body,
                    size_t len, Writer who)
{
    Stored *o = server_find(sim, kind, ns, name);
    Doc *options = doc_parse(body, len);
    _cleanup_free_ char *policy = xstrdup_null(doc_str(options, "propagationPolicy"));
    int code =
        o ? precondition(o, NULL, doc_str(options, "preconditions.resourceVersion"), true) : 404;

    if (code == 0 && doc_path(options, "preconditions.uid") &&
        !str_eq(doc_str(options, "preconditions.uid"), o->uid))
        code = 409;
    doc_free(options);
    if (code != 0)
        return reply_status(code, code == 404 ? "NotFound" : "Conflict");
    check_delete(sim, o, who);
    if (str_eq(policy, "Foreground") || str_eq(policy, "Orphan") || kind == OBJ_POD) {
        const char *finalizer = kind == OBJ_POD                ? NULL
                                : str_eq(policy, "Foreground") ? "foregroundDeletion"
                                                               : "orphan";
        start_deleting(sim, o, finalizer, who);
        return reply_object(200, o);
    }
    server_remove(sim, o, who);
    return reply_status(200, NULL);
}

Reply server_get(const Sim *sim, ObjKind kind, const char *ns, const char *name)
{
    Stored *o = server_find(sim, kind, ns, name);

    return o ? reply_object(200, o) : reply_status(404, "NotFound");
}

void server_each(Sim *sim, ObjKind kind, StoredFn fn, void *arg)
{
    hashmap_foreach (it, sim->server->objects[kind]) {
        fn(sim, it.value, arg);
    }
}
