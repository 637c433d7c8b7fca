/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a claim ends: shutdownTime, the time after it finished, or idleness; the earliest counts,
 * and the instant itself counts as passed. The end has two steps, ClaimExpired in the status and
 * then the deletion, so that whoever watches the claim learns why.
 */
#include "controller/claim_pass.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/write.h"

#include <stdio.h>

static void keep_earliest(int64_t *at, DeadlineKind *kind, int64_t candidate, DeadlineKind what)
{
    if (candidate == TIME_NONE || (*at != TIME_NONE && *at <= candidate))
        return;
    *at = candidate;
    *kind = what;
}

static int64_t ttl_deadline(const Claim *c)
{
    const Condition *finished = conditions_get(c->conditions, "Finished");

    if (c->ttl_seconds < 0 || !finished || finished->status != CONDITION_TRUE ||
        finished->transition_ms == TIME_NONE)
        return TIME_NONE;
    return finished->transition_ms + c->ttl_seconds * 1000;
}

/* A running command (its lease) holds the claim; idleness counts from the last activity, else from
 * when it could first be used. */
static int64_t idle_deadline(const Claim *c, const PlanConfig *config)
{
    int64_t since = c->activity_ms, idle = c->idle_timeout_ms, at, ready;

    if (idle == TIME_NONE)
        return TIME_NONE;
    if (config->idle_max_ms > 0 && idle > config->idle_max_ms)
        idle = config->idle_max_ms;
    if (since == TIME_NONE && c->first_ready &&
        time_parse_rfc3339(c->first_ready, &ready, NULL) >= 0 && ready <= c->first_seen_ms + idle)
        since = ready;
    if (since == TIME_NONE || since < c->obj.created_ms)
        since = c->obj.created_ms;
    at = since + idle;
    return c->lease_ms != TIME_NONE && c->lease_ms > at ? c->lease_ms : at;
}

int64_t claim_deadline(const Claim *c, const PlanConfig *config, DeadlineKind *ret_kind)
{
    int64_t at = TIME_NONE;
    DeadlineKind kind = DEADLINE_NONE;

    keep_earliest(&at, &kind, c->shutdown_ms, DEADLINE_SHUTDOWN);
    keep_earliest(&at, &kind, ttl_deadline(c), DEADLINE_TTL);
    keep_earliest(&at, &kind, idle_deadline(c, config), DEADLINE_IDLE);
    if (ret_kind)
        *ret_kind = kind;
    return at;
}

static const struct {
    const char *word, *sentence;
} deadline_texts[] = {
    [DEADLINE_NONE] = {"", ""},
    [DEADLINE_SHUTDOWN] = {"shutdownTime", "its shutdownTime has passed"},
    [DEADLINE_TTL] = {"ttlSecondsAfterFinished", "its time to live after finishing is over"},
    [DEADLINE_IDLE] = {"idle", "nobody used it for its idle time-out"},
};

typedef struct Cause {
    char s[128];
} Cause;

/* Which deadline it was, and when. */
static Cause cause_of(DeadlineKind kind, int64_t deadline_ms)
{
    char when[RFC3339_MAX];
    Cause cause;

    time_format_rfc3339(deadline_ms, when);
    (void)snprintf(cause.s, sizeof(cause.s), "%s (%s)", deadline_texts[kind].sentence, when);
    return cause;
}

/* Says when, why and by whom; the gateway reads the owner's hash back. */
static void add_deletion_event(const ClaimPass *p, DeadlineKind kind, int64_t deadline_ms)
{
    _cleanup_buf_ Buf annotations = BUF_INIT(4096);
    JsonWriter w = json_writer(&annotations);
    PlanEvent *e;

    if (!p->in->config->claim_events)
        return;
    e = plan_add_event(p->plan, &p->c->obj, false, "ClaimExpired", "Deleting",
                       "Deleting Claim (ShutdownPolicy=%s): %s",
                       shutdown_policy_to_string(p->c->policy), cause_of(kind, deadline_ms).s);
    jw_object(&w);
    jw_kv_str(&w, ANNOTATION_RECLAIMED_FOR, deadline_texts[kind].word);
    jw_kv_str_opt(&w, ANNOTATION_OWNER_HASH, p->c->owner_hash);
    jw_object_end(&w);
    if (buf_check(&annotations, "the annotations of an event", NULL) == 0)
        e->annotations_json = buf_take(&annotations, NULL);
}

static int delete_claim(const ClaimPass *p, DeadlineKind kind, int64_t deadline_ms, Error **error)
{
    if (p->c->obj.inflight > 0)
        return 0;
    add_deletion_event(p, kind, deadline_ms);
    return plan_delete(p->plan, &p->c->obj, true, p->c->policy == SHUTDOWN_DELETE_FOREGROUND,
                       "claim-expire", error);
}

/* Retain: only the Sandbox goes. */
static int retire_sandbox(ClaimPass *p, Error **error)
{
    const Condition *ready = conditions_get(p->c->conditions, "Ready");
    const Sandbox *named = p->c->status_sandbox
                               ? world_sandbox(p->in->world, p->c->obj.ns, p->c->status_sandbox)
                               : NULL;
    char message[CLAIM_ERROR_MAX];
    int r;

    if (p->bound) {
        if (!p->bound->obj.deleting && p->bound->obj.inflight == 0) {
            r = plan_delete(p->plan, &p->bound->obj, false, false, "claim-expire-sandbox", error);
            if (r < 0)
                return r;
        }
        return claim_add_status_expired(p, NULL, false, error);
    }
    if (!named)
        return claim_add_status_expired(p, ready->message, true, error);
    (void)snprintf(message, sizeof(message),
                   "Claim expired. sandbox \"%s\" is not controlled by claim \"%s\"; deletion "
                   "skipped.",
                   named->obj.name, p->c->obj.name);
    return claim_add_status_expired(p, message, true, error);
}

/* With Retain this event is the only one of the end, so it has the cause, too. */
static int mark_expired(ClaimPass *p, DeadlineKind kind, int64_t deadline_ms, Error **error)
{
    Cause cause = cause_of(kind, deadline_ms);
    int r = claim_add_status_expired(p, NULL, false, error);

    if (r > 0)
        plan_note(p->plan, "claim expired", p->c->obj.name,
                  p->bound ? p->bound->obj.name : p->c->status_sandbox, "%s, shutdownPolicy %s",
                  cause.s, shutdown_policy_to_string(p->c->policy));
    if (r > 0 && p->in->config->claim_events)
        plan_add_event(p->plan, &p->c->obj, false, "ClaimExpired", "Claim Expired",
                       "Claim expired: %s", cause.s);
    return r < 0 ? r : 0;
}

int claim_plan_expired(ClaimPass *p, DeadlineKind kind, int64_t deadline_ms, Error **error)
{
    const Condition *ready = conditions_get(p->c->conditions, "Ready");
    int r;

    if (!ready || !str_eq(ready->reason, "ClaimExpired"))
        return mark_expired(p, kind, deadline_ms, error);
    if (p->c->policy != SHUTDOWN_RETAIN)
        return delete_claim(p, kind, deadline_ms, error);
    r = retire_sandbox(p, error);
    return r < 0 ? r : 0;
}
