/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/cluster.h"

#include "common/base/str.h"

#include <stdio.h>

#define NODES 3

static bool is_deleting(const Stored *o)
{
    return doc_path(o->doc, "metadata.deletionTimestamp") != NULL;
}

static void set_phase(Stored *o, const char *phase)
{
    doc_set(doc_make(o->doc, "status"), "phase", doc_string(phase));
}

static void set_conditions(Stored *o, bool scheduled, bool ready)
{
    _cleanup_free_ char *text =
        xasprintf("[{\"type\":\"PodScheduled\",\"status\":\"%s\"%s},{\"type\":\"Ready\","
                  "\"status\":\"%s\"}]",
                  scheduled ? "True" : "False",
                  scheduled ? "" : ",\"reason\":\"Unschedulable\",\"message\":\"no node fits\"",
                  ready ? "True" : "False");

    doc_set(doc_make(o->doc, "status"), "conditions", doc_parse(text, __builtin_strlen(text)));
}

/* A Pod comes to an end by itself, or somebody deletes it. */
static void pod_dies(Sim *sim, void *arg)
{
    Stored *o = server_find_uid(sim, arg);

    if (!o || is_deleting(o) || sim->quiet)
        return;
    if (sim_chance(sim, 500)) {
        Reply r = server_delete(sim, OBJ_POD, o->ns, o->name, "{}", 2, WRITER_USER);
        reply_done(&r);
        return;
    }
    set_phase(o, sim_chance(sim, 500) ? "Failed" : "Succeeded");
    set_conditions(o, true, false);
    server_commit(sim, o, WRITER_SYSTEM);
}

static void pod_runs(Sim *sim, void *arg)
{
    Stored *o = server_find_uid(sim, arg);
    _cleanup_free_ char *ip = NULL;

    if (!o || is_deleting(o))
        return;
    if (sim_fault(sim, sim->faults.pod_fails)) {
        set_phase(o, "Failed");
        server_commit(sim, o, WRITER_SYSTEM);
        return;
    }
    set_phase(o, "Running");
    set_conditions(o, true, true);
    ip = xasprintf("[{\"ip\":\"10.0.%d.%d\"}]", (int)sim_random(sim, 250),
                   (int)sim_random(sim, 250));
    doc_set(doc_make(o->doc, "status"), "podIPs", doc_parse(ip, __builtin_strlen(ip)));
    server_commit(sim, o, WRITER_SYSTEM);
    if (sim_chance(sim, 300))
        sim_after(sim, sim_between(sim, 500, 120000), pod_dies, xstrdup(o->uid));
}

static void pod_is_scheduled(Sim *sim, void *arg)
{
    Stored *o = server_find_uid(sim, arg);
    _cleanup_free_ char *node = NULL;

    if (!o || is_deleting(o))
        return;
    if (sim_fault(sim, sim->faults.pod_fails)) {
        set_conditions(o, false, false);
        server_commit(sim, o, WRITER_SYSTEM);
        sim_after(sim, 5000, pod_is_scheduled, xstrdup(o->uid));
        return;
    }
    node = xasprintf("node-%d", (int)sim_random(sim, NODES));
    doc_set(doc_make(o->doc, "spec"), "nodeName", doc_string(node));
    set_conditions(o, true, false);
    server_commit(sim, o, WRITER_SYSTEM);
    sim_after(sim, sim_between(sim, 20, 1200), pod_runs, xstrdup(o->uid));
}

static void pod_stops(Sim *sim, void *arg)
{
    Stored *o = server_find_uid(sim, arg);

    if (o)
        server_remove(sim, o, WRITER_SYSTEM);
}

/* The dependants of one owner. */
typedef struct Dependants {
    const char *owner_uid;
    char *uids[512];
    size_t n;
} Dependants;

static void collect(_unused_ Sim *sim, Stored *o, void *arg)
{
    Dependants *d = arg;

    if (str_eq(o->owner_uid, d->owner_uid) && d->n < ARRAY_SIZE(d->uids))
        d->uids[d->n++] = xstrdup(o->uid);
}

static void find_dependants(Sim *sim, const char *owner_uid, Dependants *d)
{
    static const ObjKind kinds[] = {OBJ_SANDBOX, OBJ_POD, OBJ_POLICY};

    d->owner_uid = owner_uid;
    d->n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        server_each(sim, kinds[i], collect, d);
}

typedef void (*DependantFn)(Sim *sim, Stored *o);

static void each_dependant(Sim *sim, const char *owner_uid, DependantFn fn)
{
    Dependants *d = xnew(Dependants);

    find_dependants(sim, owner_uid, d);
    for (size_t i = 0; i < d->n; i++) {
        Stored *o = server_find_uid(sim, d->uids[i]);
        if (o)
            fn(sim, o);
        free(d->uids[i]);
    }
    free(d);
}

static void delete_as_system(Sim *sim, Stored *o, const char *policy)
{
    _cleanup_free_ char *body = xasprintf("{\"propagationPolicy\":\"%s\"}", policy);
    Reply r;

    if (is_deleting(o))
        return;
    r = server_delete(sim, o->kind, o->ns, o->name, body, __builtin_strlen(body), WRITER_SYSTEM);
    reply_done(&r);
}

static void delete_background(Sim *sim, Stored *o)
{
    delete_as_system(sim, o, "Background");
}

static void delete_foreground(Sim *sim, Stored *o)
{
    delete_as_system(sim, o, o->kind == OBJ_SANDBOX ? "Foreground" : "Background");
}

static void strip_owner(Sim *sim, Stored *o)
{
    doc_remove(doc_get(o->doc, "metadata"), "ownerReferences");
    server_commit(sim, o, WRITER_SYSTEM);
}

static void owner_gone(Sim *sim, void *arg)
{
    if (!server_find_uid(sim, arg))
        each_dependant(sim, arg, delete_background);
}

static void foreground_step(Sim *sim, void *arg)
{
    Stored *o = server_find_uid(sim, arg);
    Dependants *d;
    bool any;

    if (!o)
        return;
    each_dependant(sim, arg, delete_foreground);
    d = xnew(Dependants);
    find_dependants(sim, arg, d);
    any = d->n > 0;
    for (size_t i = 0; i < d->n; i++)
        free(d->uids[i]);
    free(d);
    if (any)
        sim_after(sim, sim_between(sim, 20, 200), foreground_step, xstrdup(arg));
    else
        server_remove(sim, o, WRITER_SYSTEM);
}

/* Now and then the garbage collector is busy, or has not heard of the kind yet. */
static int64_t collector_delay(Sim *sim)
{
    return sim_chance(sim, 300) ? sim_between(sim, 45000, 60000) : sim_between(sim, 5, 300);
}

static void orphan_step(Sim *sim, void *arg)
{
    Stored *o = server_find_uid(sim, arg);

    if (!o)
        return;
    each_dependant(sim, arg, strip_owner);
    server_remove(sim, o, WRITER_SYSTEM);
}

static void finish_deletion(Sim *sim, Stored *o)
{
    const Doc *finalizers = doc_path(o->doc, "metadata.finalizers");

    if (o->stopping || !is_deleting(o))
        return;
    o->stopping = true;
    if (o->kind == OBJ_POD)
        sim_after(sim, sim_between(sim, 5, 2000), pod_stops, xstrdup(o->uid));
    else if (finalizers && str_eq(finalizers->items[0]->text, "orphan"))
        sim_after(sim, sim_between(sim, 5, 100), orphan_step, xstrdup(o->uid));
    else
        sim_after(sim, sim_between(sim, 5, 100), foreground_step, xstrdup(o->uid));
}

/* Made for an owner that is gone already. */
static void check_owner(Sim *sim, const Stored *o)
{
    const Doc *ref = doc_controller(o->doc);

    if (ref && !server_find_uid(sim, doc_str(ref, "uid")))
        sim_after(sim, sim_between(sim, 50, 500), owner_gone, xstrdup(doc_str(ref, "uid")));
}

void cluster_commit(Sim *sim, Stored *o, const char *type)
{
    if (str_eq(type, "DELETED")) {
        sim_after(sim, collector_delay(sim), owner_gone, xstrdup(o->uid));
        return;
    }
    check_owner(sim, o);
    finish_deletion(sim, o);
    if (o->kind == OBJ_POD && str_eq(type, "ADDED"))
        sim_after(sim, sim_between(sim, 2, 200), pod_is_scheduled, xstrdup(o->uid));
}
