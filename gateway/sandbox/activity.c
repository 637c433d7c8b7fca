/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/activity.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/write.h"
#include "gateway/sandbox/names.h"

static int64_t max_ms(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

ActivityPlan activity_plan(const ClaimModel *claim, int64_t now_ms, int64_t until_ms)
{
    ActivityPlan plan = {.last_activity_ms = now_ms};
    int64_t period = max_ms(ACTIVITY_PERIOD_MIN_MS, claim->idle_timeout_s * 1000 / 4);
    /* A stamp from the future is somebody's mistake; it must not silence this one. */
    int64_t since = now_ms - claim->last_activity_ms;

    if (claim->idle_timeout_s <= 0 || now_ms < claim->activity_retry_ms)
        return plan;
    plan.write = since < 0 || since >= period || (until_ms > 0 && claim->exec_lease_ms < until_ms);
    if (plan.write && until_ms > 0) {
        plan.exec_lease_ms = until_ms + ACTIVITY_PERIOD_MIN_MS;
        if (plan.exec_lease_ms > now_ms + ACTIVITY_LEASE_MAX_MS)
            plan.exec_lease_ms = now_ms + ACTIVITY_LEASE_MAX_MS;
        plan.exec_lease_ms = max_ms(plan.exec_lease_ms, claim->exec_lease_ms);
    }
    return plan;
}

static void patch_body(Buf *out, const char *uid, const ActivityPlan *plan)
{
    JsonWriter w = json_writer(out);
    char text[RFC3339_MAX];

    jw_object(&w);
    jw_key(&w, "metadata");
    jw_object(&w);
    jw_kv_str(&w, "uid", uid); /* a namesake of the claim answers with a conflict */
    jw_key(&w, "annotations");
    jw_object(&w);
    time_format_rfc3339(plan->last_activity_ms, text);
    jw_kv_str(&w, ANNOTATION_LAST_ACTIVITY, text);
    if (plan->exec_lease_ms > 0) {
        time_format_rfc3339(plan->exec_lease_ms, text);
        jw_kv_str(&w, ANNOTATION_EXEC_LEASE, text);
    }
    jw_object_end(&w);
    jw_object_end(&w);
    jw_object_end(&w);
}

struct Activity {
    SandboxCache *cache;
    List stamps;
    uint64_t patches;
};

/* A patch under way, and what to go back to where it fails. */
typedef struct Stamp {
    List node;
    Activity *activity;
    KubeCall *call;
    char *ns, *name, *uid;
    int64_t before_activity_ms, before_lease_ms;
} Stamp;

static int64_t activity_now_ms(const Activity *a)
{
    return clock_realtime_ms(loop_clock(kube_client_loop(sandbox_cache_kube(a->cache))));
}

static void stamp_free(Stamp *s)
{
    list_remove(&s->node);
    (void)kube_call_cancel(s->call);
    free(s->ns);
    free(s->name);
    free(s->uid);
    free(s);
}

Activity *activity_new(SandboxCache *cache)
{
    Activity *a = xnew(Activity);

    a->cache = cache;
    list_init(&a->stamps);
    return a;
}

Activity *activity_free(Activity *a)
{
    if (!a)
        return NULL;
    while (!list_empty(&a->stamps))
        stamp_free(LIST_ENTRY(a->stamps.next, Stamp, node));
    free(a);
    return NULL;
}

uint64_t activity_patches(const Activity *a)
{
    return a->patches;
}

/* A use some time later may try again; not each one, since what was refused is refused again. */
static void stamp_undo(const Stamp *s)
{
    ClaimModel *claim = store_claim(sandbox_cache_store(s->activity->cache), s->ns, s->name);

    if (!claim || !str_eq(claim->uid, s->uid))
        return;
    claim->last_activity_ms = s->before_activity_ms;
    claim->exec_lease_ms = s->before_lease_ms;
    claim->activity_retry_ms = activity_now_ms(s->activity) + ACTIVITY_PERIOD_MIN_MS;
}

static void stamp_failed(const Stamp *s, const Error *error)
{
    stamp_undo(s);
    if (error->kind != ERROR_NOT_FOUND && error->kind != ERROR_CONFLICT)
        log_warn("activity could not be recorded", LOGF_STR("namespace", s->ns),
                 LOGF_STR("claim", s->name), LOGF_STR("error", error_message(error)));
}

static void on_patched(_unused_ JsonValue *object, const Error *error, void *userdata)
{
    Stamp *s = userdata;

    s->call = NULL;
    if (error)
        stamp_failed(s, error);
    stamp_free(s);
}

static void stamp_send(Stamp *s, const ActivityPlan *plan)
{
    _cleanup_buf_ Buf body = BUF_INIT(4096);
    _cleanup_free_ char *path = kube_path_dup(&resource_claims, s->ns, s->name, NULL);
    _cleanup_error_ Error *error = NULL;

    patch_body(&body, s->uid, plan);
    KubeRequest request = {
        .verb = "patch",
        .path = path,
        .patch = KUBE_PATCH_MERGE,
        .body = buf_str(&body),
        .body_len = body.len,
        .ignore_object = true,
        .on_done = on_patched,
        .userdata = s,
    };
    s->activity->patches++;
    if (kube_send(sandbox_cache_kube(s->activity->cache), &request, &s->call, &error) < 0) {
        stamp_failed(s, error);
        stamp_free(s);
    }
}

void activity_note(Activity *a, ClaimModel *claim, const char *ns, const char *name,
                   int64_t until_ms)
{
    ActivityPlan plan = activity_plan(claim, activity_now_ms(a), until_ms);
    Stamp *s;

    if (!plan.write)
        return;
    s = xnew(Stamp);
    s->activity = a;
    s->ns = xstrdup(ns);
    s->name = xstrdup(name);
    s->uid = xstrdup(claim->uid);
    s->before_activity_ms = claim->last_activity_ms;
    s->before_lease_ms = claim->exec_lease_ms;
    list_push(&a->stamps, &s->node);
    claim->last_activity_ms = plan.last_activity_ms;
    claim->exec_lease_ms = max_ms(claim->exec_lease_ms, plan.exec_lease_ms);
    stamp_send(s, &plan);
}
