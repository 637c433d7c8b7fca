/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/check_internal.h"

#include "common/base/str.h"
#include "controller/names.h"
#include "tests/sim/line.h"

/* A user's change may be on its way while a delete that it forbids is: such deletes are judged
 * only where the last change is older. */
#define IN_FLIGHT_MS 6000

Check *check_new(void)
{
    Check *c = xnew(Check);

    c->claims = hashmap_new();
    c->pool_max = hashmap_new();
    c->disturbed_ms = -1000000;
    return c;
}

Check *check_free(Check *c)
{
    hashmap_free_with(c->claims, claim_facts_free);
    hashmap_free_with(c->pool_max, free);
    free(c);
    return NULL;
}

void check_disturbed(Sim *sim)
{
    sim->check->disturbed_ms = sim_mono_ms(sim);
}

void check_restart(Sim *sim)
{
    sim->check->totals.restarts++;
    check_disturbed(sim);
}

void check_watch_cut(Sim *sim)
{
    sim->check->totals.watch_cuts++;
    check_disturbed(sim);
}

void check_totals(const Sim *sim, SimTotals *ret)
{
    *ret = sim->check->totals;
}

/* No Sandbox is ever given to a second claim, and no claim has two. */
static void check_ownership(Sim *sim, Stored *o)
{
    const char *uid = facts_owner_uid(o);

    if (!str_eq(facts_owner_kind(o), "SandboxClaim") || !uid)
        return;
    if (o->claimed_by && !str_eq(o->claimed_by, uid))
        sim_fail(sim, "sandbox %s/%s was given to claim %s and then to %s", o->ns, o->name,
                 o->claimed_by, uid);
    if (!o->claimed_by)
        o->claimed_by = xstrdup(uid);
    if (facts_count_owned(sim, OBJ_SANDBOX, uid, true) > 1)
        sim_fail(sim, "claim %s has two sandboxes, one is %s/%s", uid, o->ns, o->name);
}

/* Only what the controller made for a pool is handed out. */
static void check_transfer(Sim *sim, const Stored *o)
{
    if (str_eq(facts_owner_kind(o), "SandboxClaim") && o->made_by == WRITER_USER)
        sim_fail(sim, "sandbox %s/%s of a user was given to a claim", o->ns, o->name);
}

static void check_pool_size(Sim *sim, const Stored *o)
{
    const char *uid = facts_owner_uid(o);
    const uint64_t *max = uid ? hashmap_get(sim->check->pool_max, uid) : NULL;
    size_t n;

    if (!max || !str_eq(facts_owner_kind(o), "SandboxWarmPool"))
        return;
    n = facts_count_owned(sim, OBJ_SANDBOX, uid, true);
    if (n > *max)
        sim_fail(sim, "pool %s has %zu members, never more than %llu were asked for", uid, n,
                 (unsigned long long)*max);
}

static void note_pool(Sim *sim, const Stored *o)
{
    uint64_t *max = hashmap_get(sim->check->pool_max, o->uid);
    uint64_t replicas = (uint64_t)doc_int(o->doc, "spec.replicas", 1);

    if (!max) {
        max = xnew(uint64_t);
        (void)hashmap_put(sim->check->pool_max, o->uid, max);
    }
    if (replicas > *max)
        *max = replicas;
}

/* Whoever reads Ready=True may use the Sandbox named beside it. */
static void check_claim_status(Sim *sim, const Stored *o)
{
    const char *name = doc_str(o->doc, "status.sandbox.name");
    const Stored *s = name ? server_find(sim, OBJ_SANDBOX, o->ns, name) : NULL;

    if (!facts_is_ready(o))
        return;
    if (!name)
        sim_fail(sim, "claim %s/%s is Ready without a sandbox", o->ns, o->name);
    if (s && !str_eq(facts_owner_uid(s), o->uid))
        sim_fail(sim, "claim %s/%s is Ready with sandbox %s of somebody else", o->ns, o->name,
                 name);
}

static bool pod_may_be_changed(const Stored *o)
{
    return o->made_by == WRITER_CONTROLLER ||
           str_eq(facts_label(o, LABEL_NAME_HASH), name_hash_of(o->name).s) ||
           str_eq(facts_label(o, LABEL_ADOPTABLE), "true");
}

static void check_foreign(Sim *sim, const Stored *o)
{
    bool foreign = (o->kind == OBJ_POD && !pod_may_be_changed(o)) ||
                   (o->kind == OBJ_POLICY && o->made_by == WRITER_USER);

    if (foreign)
        sim_fail(sim, "foreign %s %s/%s was changed", obj_resource(o->kind)->kind, o->ns, o->name);
}

/* What it was known to own is to follow it. */
static void note_left(Sim *sim, Stored *o, void *owner)
{
    const Stored *gone = owner;

    if (str_eq(o->owner_uid, gone->uid) && sim_mono_ms(sim) - o->changed_ms > IN_FLIGHT_MS)
        o->left_ms = sim_mono_ms(sim);
}

void check_commit(Sim *sim, Stored *o, const char *type, Writer who)
{
    bool removed = str_eq(type, "DELETED");

    o->changed_ms = sim_mono_ms(sim);
    if (removed) {
        server_each(sim, OBJ_SANDBOX, note_left, o);
        server_each(sim, OBJ_POD, note_left, o);
    }
    if (o->kind == OBJ_POOL && !removed)
        note_pool(sim, o);
    budget_commit(sim, o, type, who);
    if (who != WRITER_CONTROLLER || removed)
        return;
    check_foreign(sim, o);
    if (o->kind == OBJ_SANDBOX) {
        check_ownership(sim, o);
        check_transfer(sim, o);
    }
    if (o->kind == OBJ_SANDBOX && str_eq(type, "ADDED"))
        check_pool_size(sim, o);
    if (o->kind == OBJ_CLAIM)
        check_claim_status(sim, o);
}

static bool recently_touched(const Sim *sim, const Stored *o)
{
    bool changed = doc_int(o->doc, "metadata.generation", 1) > 1 || o->kind != OBJ_CLAIM;
    bool idle = doc_get(doc_path(o->doc, "metadata.annotations"), ANNOTATION_IDLE_TIMEOUT);

    return (changed || idle) && o->user_ms != 0 && sim_mono_ms(sim) - o->user_ms < IN_FLIGHT_MS;
}

static bool just_jumped(const Sim *sim)
{
    return sim_mono_ms(sim) - sim->jumped_ms <= IN_FLIGHT_MS;
}

/* What is stamped as activity before the clock is put back lies in the future afterwards, and the
 * controller does not believe it: idleness cannot be foretold here then. */
static bool is_early(const Sim *sim, const Stored *claim)
{
    bool idle = doc_get(doc_path(claim->doc, "metadata.annotations"), ANNOTATION_IDLE_TIMEOUT);

    return facts_claim_deadline(claim) > sim_wall_ms(sim) && !(idle && claim->jumped) &&
           !just_jumped(sim);
}

static void mark_jumped(_unused_ Sim *sim, Stored *o, _unused_ void *arg)
{
    o->jumped = true;
}

void check_clock_jump(Sim *sim)
{
    server_each(sim, OBJ_CLAIM, mark_jumped, NULL);
    check_disturbed(sim);
}

static void delete_of_claim(Sim *sim, const Stored *o)
{
    if (is_early(sim, o))
        sim_fail(sim, "claim %s/%s was deleted %lld ms before its deadline", o->ns, o->name,
                 (long long)(facts_claim_deadline(o) - sim_wall_ms(sim)));
    if (!str_eq(facts_ready_reason(o), "ClaimExpired"))
        sim_fail(sim, "claim %s/%s was deleted before its status said so", o->ns, o->name);
    sim->check->totals.expired++;
}

typedef struct NameSearch {
    const char *ns, *hash;
    bool found;
} NameSearch;

static void match_name_hash(_unused_ Sim *sim, Stored *o, void *arg)
{
    NameSearch *s = arg;

    s->found = s->found || (str_eq(o->ns, s->ns) && str_eq(name_hash_of(o->name).s, s->hash));
}

static void delete_of_orphan(Sim *sim, const Stored *o, ObjKind owners, const char *hash)
{
    const Stored *claim =
        o->kind == OBJ_SANDBOX ? server_find_uid(sim, facts_label(o, LABEL_CLAIM_UID)) : NULL;
    NameSearch search = {o->ns, hash, false};

    if (o->made_by != WRITER_CONTROLLER)
        sim_fail(sim, "%s/%s of a user was collected", o->ns, o->name);
    if (hash)
        server_each(sim, owners, match_name_hash, &search);
    if (claim || search.found)
        sim_fail(sim, "%s/%s was collected though its owner lives", o->ns, o->name);
    sim->check->totals.orphans++;
}

static void delete_of_sandbox(Sim *sim, const Stored *o)
{
    const char *kind = facts_owner_kind(o);
    const Stored *owner = server_find_uid(sim, facts_owner_uid(o));

    if (str_eq(facts_ready_reason(o), "SandboxExpired") &&
        (facts_sandbox_expired(o, sim_wall_ms(sim)) || just_jumped(sim)))
        return;
    if (str_eq(kind, "SandboxWarmPool")) {
        if (o->made_by != WRITER_CONTROLLER)
            sim_fail(sim, "member %s/%s of a user was deleted", o->ns, o->name);
        return;
    }
    if (!kind) {
        bool of_claim = facts_label(o, LABEL_CLAIM_UID) != NULL;
        delete_of_orphan(sim, o, OBJ_POOL, of_claim ? NULL : facts_label(o, LABEL_WARM_POOL));
        return;
    }
    if (str_eq(kind, "SandboxClaim") && owner && is_early(sim, owner) &&
        !recently_touched(sim, owner))
        sim_fail(sim, "sandbox %s/%s was deleted %lld ms before its claim's end", o->ns, o->name,
                 (long long)(facts_claim_deadline(owner) - sim_wall_ms(sim)));
}

static void delete_of_pod(Sim *sim, const Stored *o)
{
    const Stored *owner = server_find_uid(sim, facts_owner_uid(o));

    if (!facts_owner_uid(o)) {
        delete_of_orphan(sim, o, OBJ_SANDBOX, facts_label(o, LABEL_NAME_HASH));
        return;
    }
    if (!owner || recently_touched(sim, owner) || facts_deleting(owner) || just_jumped(sim))
        return;
    if (!str_eq(doc_str(owner->doc, "spec.operatingMode"), "Suspended") &&
        !facts_sandbox_expired(owner, sim_wall_ms(sim)))
        sim_fail(sim, "the pod of sandbox %s/%s was deleted for no reason", o->ns, o->name);
}

static void delete_of_policy(Sim *sim, const Stored *o)
{
    const Stored *owner = server_find_uid(sim, facts_owner_uid(o));

    if (!owner || o->made_by == WRITER_USER)
        sim_fail(sim, "policy %s/%s was deleted, which is not the controller's", o->ns, o->name);
}

void check_delete(Sim *sim, const Stored *o, Writer who)
{
    static void (*const judges[OBJ_KIND_MAX])(Sim *, const Stored *) = {
        [OBJ_CLAIM] = delete_of_claim,
        [OBJ_SANDBOX] = delete_of_sandbox,
        [OBJ_POD] = delete_of_pod,
        [OBJ_POLICY] = delete_of_policy,
    };

    if (who != WRITER_CONTROLLER)
        return;
    if (!judges[o->kind])
        sim_fail(sim, "the controller deleted a %s", obj_resource(o->kind)->kind);
    judges[o->kind](sim, o);
}
