/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/check.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/names.h"

static int64_t time_of(const char *text)
{
    int64_t ms;

    return text && time_parse_rfc3339(text, &ms, NULL) >= 0 ? ms : INT64_MAX;
}

static const Doc *condition(const Stored *o, const char *type)
{
    const Doc *list = doc_path(o->doc, "status.conditions");

    for (size_t i = 0; list && i < list->len; i++)
        if (str_eq(doc_str(list->items[i], "type"), type))
            return list->items[i];
    return NULL;
}

const char *facts_ready_reason(const Stored *o)
{
    return doc_str(condition(o, "Ready"), "reason");
}

bool facts_is_ready(const Stored *o)
{
    return str_eq(doc_str(condition(o, "Ready"), "status"), "True");
}

bool facts_deleting(const Stored *o)
{
    return doc_path(o->doc, "metadata.deletionTimestamp") != NULL;
}

const char *facts_owner_kind(const Stored *o)
{
    return doc_str(doc_controller(o->doc), "kind");
}

const char *facts_owner_uid(const Stored *o)
{
    return o->owner_uid;
}

const char *facts_label(const Stored *o, const char *key)
{
    const Doc *v = doc_get(doc_path(o->doc, "metadata.labels"), key);

    return v ? v->text : NULL;
}

static const char *annotation(const Stored *o, const char *key)
{
    const Doc *v = doc_get(doc_path(o->doc, "metadata.annotations"), key);

    return v ? v->text : NULL;
}

static int64_t idle_deadline(const Stored *claim)
{
    const char *idle = annotation(claim, ANNOTATION_IDLE_TIMEOUT);
    int64_t since = time_of(annotation(claim, ANNOTATION_LAST_ACTIVITY));
    int64_t ready = time_of(annotation(claim, ANNOTATION_FIRST_READY));
    int64_t created = time_of(doc_str(claim->doc, "metadata.creationTimestamp"));
    int64_t lease = time_of(annotation(claim, ANNOTATION_EXEC_LEASE)), at;

    if (!idle)
        return INT64_MAX;
    if (since == INT64_MAX)
        since = ready != INT64_MAX ? ready : created;
    if (since < created)
        since = created;
    at = since + strtoll(idle, NULL, 10) * 1000;
    return lease != INT64_MAX && lease > at ? lease : at;
}

static int64_t ttl_deadline(const Stored *claim)
{
    long long ttl = doc_int(claim->doc, "spec.lifecycle.ttlSecondsAfterFinished", -1);
    const Doc *finished = condition(claim, "Finished");

    if (ttl < 0 || !finished)
        return INT64_MAX;
    return time_of(doc_str(finished, "lastTransitionTime")) + ttl * 1000;
}

int64_t facts_claim_deadline(const Stored *claim)
{
    int64_t at = time_of(doc_str(claim->doc, "spec.lifecycle.shutdownTime"));
    int64_t ttl = ttl_deadline(claim), idle = idle_deadline(claim);

    if (ttl < at)
        at = ttl;
    return idle < at ? idle : at;
}

bool facts_sandbox_expired(const Stored *sandbox, int64_t wall_ms)
{
    return time_of(doc_str(sandbox->doc, "spec.shutdownTime")) <= wall_ms;
}

typedef struct OwnedCount {
    const char *uid;
    bool even_deleting;
    size_t n;
} OwnedCount;

static void count_owned(_unused_ Sim *sim, Stored *o, void *arg)
{
    OwnedCount *c = arg;

    if (str_eq(o->owner_uid, c->uid) && (c->even_deleting || !facts_deleting(o)))
        c->n++;
}

size_t facts_count_owned(Sim *sim, ObjKind kind, const char *owner_uid, bool even_deleting)
{
    OwnedCount c = {owner_uid, even_deleting, 0};

    server_each(sim, kind, count_owned, &c);
    return c.n;
}
