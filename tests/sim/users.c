/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/users.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/names.h"
#include "tests/sim/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define POOLS 3
#define CLAIM_NAMES 30
#define BARE_NAMES 6

static const char *const namespaces[] = {"ns0", "ns1"};

static const char *random_ns(Sim *sim)
{
    return namespaces[sim_random(sim, ARRAY_SIZE(namespaces))];
}

static char *name_of(Sim *sim, const char *prefix, uint64_t n)
{
    return xasprintf("%s%d", prefix, (int)sim_random(sim, n));
}

static void create(Sim *sim, ObjKind kind, const char *fmt, ...) _printf_(3, 4);
static void create(Sim *sim, ObjKind kind, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    Reply r;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        abort();
    va_end(ap);
    r = server_create(sim, kind, text, strlen(text), WRITER_USER);
    reply_done(&r);
    free(text);
}

static void patch(Sim *sim, ObjKind kind, const char *ns, const char *name, const char *fmt, ...)
    _printf_(5, 6);
static void patch(Sim *sim, ObjKind kind, const char *ns, const char *name, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    Reply r;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        abort();
    va_end(ap);
    r = server_patch(sim, kind, ns, name, false, text, strlen(text), WRITER_USER);
    reply_done(&r);
    free(text);
}

static void delete (Sim *sim, ObjKind kind, const char *ns, const char *name, const char *policy)
{
    _cleanup_free_ char *body = xasprintf("{\"propagationPolicy\":\"%s\"}", policy);
    Reply r = server_delete(sim, kind, ns, name, body, strlen(body), WRITER_USER);

    reply_done(&r);
}

static const char *random_policy(Sim *sim)
{
    static const char *const policies[] = {"Background", "Background", "Orphan", "Foreground"};

    return policies[sim_random(sim, ARRAY_SIZE(policies))];
}

#define META(kind_name)                                                                            \
    "\"kind\":\"" kind_name "\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\""
#define EXTENSION(kind_name)                                                                       \
    "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\"," META(kind_name)

static void make_template(Sim *sim, const char *ns, const char *name)
{
    create(sim, OBJ_TEMPLATE,
           EXTENSION("SandboxTemplate") "},\"spec\":{\"podTemplate\":{\"metadata\":{\"labels\":{"
                                        "\"team\":\"a\"}},\"spec\":{\"containers\":[{\"name\":"
                                        "\"main\",\"image\":\"img:%d\"}]}}%s}}",
           ns, name, (int)sim_random(sim, 4),
           sim_chance(sim, 200) ? ",\"networkPolicyManagement\":\"Unmanaged\"" : "");
}

static void make_pool(Sim *sim, const char *ns, const char *name)
{
    create(sim, OBJ_POOL,
           EXTENSION("SandboxWarmPool") "},\"spec\":{\"replicas\":%d,\"sandboxTemplateRef\":{"
                                        "\"name\":\"t%c\"}%s}}",
           ns, name, (int)sim_random(sim, 6), name[1],
           sim_chance(sim, 300) ? ",\"updateStrategy\":{\"type\":\"Recreate\"}" : "");
}

/* "key":"time", or nothing. */
static char *maybe_time(Sim *sim, unsigned per_mille, int64_t min_ms, int64_t max_ms)
{
    char when[RFC3339_MAX];

    if (!sim_chance(sim, per_mille))
        return xstrdup("");
    time_format_rfc3339(sim_wall_ms(sim) + sim_between(sim, min_ms, max_ms), when);
    return xasprintf("\"shutdownTime\":\"%s\",", when);
}

static const char *random_metadata(Sim *sim)
{
    static const char *const some[] = {
        "",
        "",
        "",
        "",
        (",\"additionalPodMetadata\":{\"labels\":{\"sandbox.users.io/x\":\"1\"},\"annotations\":{"
         "\"note\":\"n\"}}"),
        ",\"additionalPodMetadata\":{\"labels\":{\"evil.io/x\":\"1\"}}",
    };

    return some[sim_random(sim, ARRAY_SIZE(some))];
}

static void make_claim(Sim *sim)
{
    static const char *const policies[] = {"Retain", "Delete", "Delete", "DeleteForeground"};
    _cleanup_free_ char *name = name_of(sim, "c", CLAIM_NAMES);
    _cleanup_free_ char *pool = name_of(sim, "p", POOLS);
    _cleanup_free_ char *shutdown = maybe_time(sim, 400, -2000, 60000);
    _cleanup_free_ char *ttl = sim_chance(sim, 200) ? xasprintf("\"ttlSecondsAfterFinished\":%d,",
                                                                (int)sim_random(sim, 20))
                                                    : xstrdup("");
    _cleanup_free_ char *idle =
        sim_chance(sim, 250)
            ? xasprintf("\"" ANNOTATION_IDLE_TIMEOUT "\":\"%d\"", (int)sim_between(sim, 5, 60))
            : xstrdup("");

    create(sim, OBJ_CLAIM,
           EXTENSION("SandboxClaim") ",\"labels\":{\"" LABEL_CREATED_BY "\":\"go-client\"},"
                                     "\"annotations\":{%s}},\"spec\":{\"warmPoolRef\":{\"name\":"
                                     "\"%s\"},\"lifecycle\":{%s%s\"shutdownPolicy\":\"%s\"}%s}}",
           random_ns(sim), name, idle, pool, shutdown, ttl,
           policies[sim_random(sim, ARRAY_SIZE(policies))], random_metadata(sim));
}

static void delete_claim(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "c", CLAIM_NAMES);

    delete (sim, OBJ_CLAIM, random_ns(sim), name, random_policy(sim));
}

/* What the gateway does when a command starts. */
static void stamp_activity(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "c", CLAIM_NAMES);
    char now[RFC3339_MAX], lease[RFC3339_MAX];

    time_format_rfc3339(sim_wall_ms(sim), now);
    time_format_rfc3339(sim_wall_ms(sim) + sim_between(sim, 1000, 90000), lease);
    patch(sim, OBJ_CLAIM, random_ns(sim), name,
          "{\"metadata\":{\"annotations\":{\"" ANNOTATION_LAST_ACTIVITY
          "\":\"%s\",\"" ANNOTATION_EXEC_LEASE "\":\"%s\"}}}",
          now, lease);
}

static void extend_claim(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "c", CLAIM_NAMES);
    char when[RFC3339_MAX];

    time_format_rfc3339(sim_wall_ms(sim) + sim_between(sim, -5000, 60000), when);
    patch(sim, OBJ_CLAIM, random_ns(sim), name,
          "{\"spec\":{\"lifecycle\":{\"shutdownTime\":\"%s\"}}}", when);
}

static void scale_pool(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "p", POOLS);

    patch(sim, OBJ_POOL, random_ns(sim), name, "{\"spec\":{\"replicas\":%d}}",
          (int)sim_random(sim, 8));
}

static void delete_pool(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "p", POOLS);

    delete (sim, OBJ_POOL, random_ns(sim), name, random_policy(sim));
}

static void create_pool(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "p", POOLS);

    make_pool(sim, random_ns(sim), name);
}

static void edit_template(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "t", POOLS);

    check_disturbed(sim);
    if (sim_chance(sim, 500))
        patch(sim, OBJ_TEMPLATE, random_ns(sim), name,
              "{\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"main\","
              "\"image\":\"img:%d\"}]}}}}",
              (int)sim_random(sim, 4));
    else
        patch(sim, OBJ_TEMPLATE, random_ns(sim), name,
              "{\"spec\":{\"networkPolicyManagement\":\"%s\",\"podTemplate\":{\"metadata\":{"
              "\"labels\":{\"team\":\"%c\",\"extra\":%s}}}}}",
              sim_chance(sim, 300) ? "Unmanaged" : "Managed", (int)('a' + sim_random(sim, 3)),
              sim_chance(sim, 500) ? "\"x\"" : "null");
}

static void replace_template(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "t", POOLS);
    const char *ns = random_ns(sim);

    check_disturbed(sim);
    delete (sim, OBJ_TEMPLATE, ns, name, "Background");
    if (sim_chance(sim, 700))
        make_template(sim, ns, name);
}

static void create_template(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "t", POOLS);

    check_disturbed(sim);
    make_template(sim, random_ns(sim), name);
}

static void make_bare(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "b", BARE_NAMES);
    _cleanup_free_ char *shutdown = maybe_time(sim, 500, -1000, 30000);

    create(sim, OBJ_SANDBOX,
           "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\"," META(
               "Sandbox") "},\"spec\":{%s"
                          "\"shutdownPolicy\":\"%s\",\"podTemplate\":{\"metadata\":{\"labels\":{"
                          "\"l\":\"1\"}},"
                          "\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"bare\"}]}}}}",
           random_ns(sim), name, shutdown, sim_chance(sim, 500) ? "Delete" : "Retain");
}

static void switch_bare(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "b", BARE_NAMES);

    patch(sim, OBJ_SANDBOX, random_ns(sim), name,
          "{\"spec\":{\"operatingMode\":\"%s\",\"podTemplate\":{\"metadata\":{\"labels\":{\"l\":"
          "%s}}}}}",
          sim_chance(sim, 500) ? "Suspended" : "Running", sim_chance(sim, 500) ? "\"2\"" : "null");
}

static void delete_bare(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "b", BARE_NAMES);

    delete (sim, OBJ_SANDBOX, random_ns(sim), name, random_policy(sim));
}

/* Somebody else's Pod with a name that a Sandbox will want, or a claim. */
static void make_foreign_pod(Sim *sim)
{
    _cleanup_free_ char *name =
        sim_chance(sim, 500) ? name_of(sim, "b", BARE_NAMES) : name_of(sim, "c", CLAIM_NAMES);

    create(sim, OBJ_POD,
           "{\"apiVersion\":\"v1\"," META("Pod") ",\"labels\":{%s}},\"spec\":{\"containers\":[]}}",
           random_ns(sim), name,
           sim_chance(sim, 300) ? "\"" LABEL_NAME_HASH "\":\"00000000\"" : "");
}

static void delete_any_pod(Sim *sim)
{
    _cleanup_free_ char *name =
        sim_chance(sim, 500) ? name_of(sim, "b", BARE_NAMES) : name_of(sim, "c", CLAIM_NAMES);

    delete (sim, OBJ_POD, random_ns(sim), name, "Background");
}

/* A Sandbox that pretends to be a pool's member, or what a claim left behind. */
static void make_forgery(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "f", 4);
    _cleanup_free_ char *pool = name_of(sim, "p", POOLS);
    _cleanup_free_ char *owner =
        sim_chance(sim, 500)
            ? xasprintf(",\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-k8s.io/"
                        "v1beta1\",\"kind\":\"SandboxWarmPool\",\"name\":\"%s\",\"uid\":"
                        "\"uid-forged\",\"controller\":true}]",
                        pool)
            : xstrdup("");

    create(sim, OBJ_SANDBOX,
           "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\"," META(
               "Sandbox") ",\"labels\":{\"" LABEL_WARM_POOL "\":\"%s\",\"" LABEL_TEMPLATE_REF
                          "\":\"x\"%s}%s},\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[]}}"
                          "}}",
           random_ns(sim), name, name_hash_of(pool).s,
           sim_chance(sim, 300) ? ",\"" LABEL_CLAIM_UID "\":\"uid-nobody\"" : "", owner);
}

static void delete_forgery(Sim *sim)
{
    _cleanup_free_ char *name = name_of(sim, "f", 4);

    delete (sim, OBJ_SANDBOX, random_ns(sim), name, "Background");
}

static void tamper_policy(Sim *sim)
{
    _cleanup_free_ char *template = name_of(sim, "t", POOLS), *name = policy_name(template);

    if (sim_chance(sim, 500))
        delete (sim, OBJ_POLICY, random_ns(sim), name, "Background");
    else
        patch(sim, OBJ_POLICY, random_ns(sim), name,
              "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"hole\":\"yes\"}},\"egress\":null}}");
}

typedef struct MemberSearch {
    const char *ns;
    Stored *found;
    unsigned n;
} MemberSearch;

static void find_member(Sim *sim, Stored *o, void *arg)
{
    MemberSearch *s = arg;

    if (str_eq(o->ns, s->ns) && facts_is_ready(o) && !facts_deleting(o) &&
        str_eq(facts_owner_kind(o), "SandboxWarmPool") && sim_random(sim, ++s->n) == 0)
        s->found = o;
}

/* Another controller serves a claim, as upstream's does: first the claim says which Sandbox it
 * gets, then the Sandbox changes hands. */
static void rival_adopts(Sim *sim)
{
    MemberSearch search = {.ns = random_ns(sim)};
    _cleanup_free_ char *claim = name_of(sim, "r", 50), *pool = NULL;
    const Stored *o;

    if (sim->faults.lose == 0)
        return; /* where nothing goes wrong, writes are counted */
    server_each(sim, OBJ_SANDBOX, find_member, &search);
    if (!search.found || server_find(sim, OBJ_CLAIM, search.ns, claim))
        return;
    check_disturbed(sim);
    pool = xstrdup(doc_str(doc_controller(search.found->doc), "name"));
    create(sim, OBJ_CLAIM,
           EXTENSION("SandboxClaim") ",\"annotations\":{\"" ANNOTATION_SANDBOX_NAME
                                     "\":\"%s\"}},\"spec\":{\"warmPoolRef\":{\"name\":\"%s\"}}}",
           search.ns, claim, search.found->name, pool);
    o = server_find(sim, OBJ_CLAIM, search.ns, claim);
    search.found->claimed_by = xstrdup(o->uid);
    patch(sim, OBJ_SANDBOX, search.ns, search.found->name,
          "{\"metadata\":{\"labels\":{\"" LABEL_WARM_POOL "\":null,\"" LABEL_CLAIM_UID
          "\":\"%s\"},\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\","
          "\"kind\":\"SandboxClaim\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true,"
          "\"blockOwnerDeletion\":true}]}}",
          o->uid, claim, o->uid);
}

/* In the very moment others want the same: more claims, or a smaller pool. */
static void rival_in_a_crowd(Sim *sim)
{
    rival_adopts(sim);
    for (unsigned i = 0; i < 4; i++)
        make_claim(sim);
    scale_pool(sim);
    scale_pool(sim);
}

static void delete_rival_claim(Sim *sim)
{
    _cleanup_free_ char *claim = name_of(sim, "r", 50);

    delete (sim, OBJ_CLAIM, random_ns(sim), claim, random_policy(sim));
}

static const struct {
    unsigned weight;
    void (*act)(Sim *sim);
} deeds[] = {
    {300, make_claim},        {90, delete_claim},     {40, stamp_activity}, {25, extend_claim},
    {25, scale_pool},         {4, delete_pool},       {12, create_pool},    {8, edit_template},
    {2, replace_template},    {6, create_template},   {30, make_bare},      {30, switch_bare},
    {20, delete_bare},        {20, make_foreign_pod}, {30, delete_any_pod}, {4, make_forgery},
    {8, delete_forgery},      {8, tamper_policy},     {40, rival_adopts},   {20, rival_in_a_crowd},
    {80, delete_rival_claim},
};

void users_act(Sim *sim, _unused_ void *arg)
{
    uint64_t total = 0, pick;

    if (sim->quiet)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
        total += deeds[i].weight;
    pick = sim_random(sim, total);
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        if (pick < deeds[i].weight) {
            deeds[i].act(sim);
            break;
        }
        pick -= deeds[i].weight;
    }
    sim_after(sim, sim_chance(sim, 300) ? 0 : sim_between(sim, 1, 400), users_act, NULL);
}

void users_start(Sim *sim)
{
    for (size_t n = 0; n < ARRAY_SIZE(namespaces); n++)
        for (int i = 0; i < POOLS; i++) {
            _cleanup_free_ char *template = xasprintf("t%d", i), *pool = xasprintf("p%d", i);
            make_template(sim, namespaces[n], template);
            make_pool(sim, namespaces[n], pool);
        }
}
