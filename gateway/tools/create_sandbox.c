/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_sandbox: writes a claim, waits until the sandbox behind it is ready. Whatever goes wrong
 * after the claim was sent, and also when the caller goes away meanwhile, the claim is deleted
 * again; where that fails, its shutdown time, which is in its first revision, still ends it.
 */
#include "common/base/str.h"
#include "gateway/sandbox/api_error.h"
#include "gateway/sandbox/claim.h"
#include "gateway/sandbox/names.h"
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

#include <string.h>

#define CLAIM_MAX_BYTES (1024 * 1024)
#define NAME_TRIES 3
#define LOOK_AGAIN_MS 5000
#define TEN_YEARS_S 315360000

static const JsonField fields[] = {
    {.name = "warmpool",
     .type = JSON_FIELD_STRING,
     .flags = JSON_FIELD_REQUIRED,
     .offset = offsetof(CreateArgs, warmpool),
     .help = "Name of a SandboxWarmPool in the namespace"},
    TOOL_FIELD_NAMESPACE(CreateArgs, "Kubernetes namespace"),
    {.name = "sandbox_ready_timeout",
     .type = JSON_FIELD_INT,
     .flags = TOOL_OPTIONAL,
     .offset = offsetof(CreateArgs, ready_timeout_s),
     .def = "180",
     .min = 1,
     .max = 3600,
     .help = "Seconds to wait until it is ready"},
    {.name = "labels",
     .type = JSON_FIELD_STRING_MAP,
     .flags = JSON_FIELD_NULL_IS_ABSENT,
     .offset = offsetof(CreateArgs, labels),
     .help = "Labels of the claim"},
    {.name = "shutdown_after_seconds",
     .type = JSON_FIELD_INT,
     .flags = JSON_FIELD_LAX | JSON_FIELD_NULLABLE,
     .offset = offsetof(CreateArgs, shutdown_after_s),
     .def = "300",
     .min = 1,
     .max = TEN_YEARS_S,
     .help = "Lifetime from now on, use does not extend it; null: until deleted"},
    {.name = "pod_labels",
     .type = JSON_FIELD_STRING_MAP,
     .flags = JSON_FIELD_NULL_IS_ABSENT,
     .offset = offsetof(CreateArgs, pod_labels),
     .help = "Labels of the pod (keys such as sandbox.users.io/x)"},
    {.name = "pod_annotations",
     .type = JSON_FIELD_STRING_MAP,
     .flags = JSON_FIELD_NULL_IS_ABSENT,
     .offset = offsetof(CreateArgs, pod_annotations),
     .help = "Annotations of the pod"},
};

static const ToolOutput outputs[] = {
    {"sandbox_claim_name", "string", NULL, false, "Names the sandbox in all other tools", NULL},
    {"expires_at", "string", NULL, true, "When it is deleted (RFC 3339)", NULL},
};

/* --- arguments --- */

static bool is_reserved_key(const char *key)
{
    static const char *const domains[] = {"agents.x-k8s.io", "k8s-agent-sandbox-mcp"};
    const char *slash = strchr(key, '/');
    size_t len = slash ? (size_t)(slash - key) : 0;

    for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
        size_t n = strlen(domains[i]);
        if (len >= n && memcmp(key + len - n, domains[i], n) == 0 &&
            (len == n || key[len - n - 1] == '.'))
            return true;
    }
    return false;
}

static int check_keys(const char *what, const JsonStringMap *map, Error **error)
{
    for (size_t i = 0; i < map->len; i++) {
        if (!str_is_label_key(map->keys[i]))
            return error_set(error, ERROR_INVALID,
                             "%s: \"%.64s\" is not a valid key (an optional DNS prefix and '/', "
                             "then at most 63 of A-Z a-z 0-9 . _ -)",
                             what, map->keys[i]);
        if (is_reserved_key(map->keys[i]))
            return error_set(error, ERROR_INVALID, "%s: the key \"%.64s\" is reserved", what,
                             map->keys[i]);
    }
    return 0;
}

static int check_labels(const char *what, const JsonStringMap *map, Error **error)
{
    int r = check_keys(what, map, error);

    for (size_t i = 0; i < map->len && r == 0; i++)
        if (!str_is_label_value(map->values[i]))
            r = error_set(error, ERROR_INVALID,
                          "%s: \"%.64s\" is not a valid value (at most 63 of A-Z a-z 0-9 . _ -, "
                          "alphanumeric at both ends)",
                          what, map->values[i]);
    return r;
}

static int check(const JsonValue *given, ToolArgs *base, _unused_ const ToolLimits *limits,
                 Error **error)
{
    CreateArgs *args = (CreateArgs *)base;
    int r;

    args->shutdown_never =
        json_has(given, "shutdown_after_seconds") && !json_get(given, "shutdown_after_seconds");
    if (!str_is_dns_subdomain(args->warmpool))
        return error_set(error, ERROR_INVALID,
                         "warmpool must be the name of a SandboxWarmPool (lower-case letters, "
                         "digits, '-' and '.'), not \"%.64s\"",
                         args->warmpool);
    if ((r = check_labels("labels", &args->labels, error)) < 0)
        return r;
    if ((r = check_labels("pod_labels", &args->pod_labels, error)) < 0)
        return r;
    return check_keys("pod_annotations", &args->pod_annotations, error);
}

/* --- the call --- */

typedef struct Create {
    SandboxCache *cache;
    Loop *loop;
    char name[CLAIM_NAME_MAX];
    int tries;
    int64_t shutdown_ms; /* 0: never */
    KubeCall *call;
    SandboxWaiter waiter;
    LoopTimer deadline;
    bool seen;    /* the cache has shown the claim */
    bool looked;  /* twice for a claim whose creation was not answered */
    Error *ended; /* why the claim is being deleted */
} Create;

static void state_free(void *state)
{
    Create *s = state;

    sandbox_cache_unwait(s->cache, &s->waiter);
    loop_timer_stop(s->loop, &s->deadline);
    (void)kube_call_cancel(s->call);
    (void)error_free(s->ended);
    free(s);
}

static void on_undone(_unused_ JsonValue *object, const Error *error, void *userdata)
{
    Call *c = userdata;
    Create *s = call_state(c);

    s->call = NULL;
    if (error && error->kind != ERROR_NOT_FOUND) {
        _cleanup_error_ Error *told = api_error_for_caller(error);
        _cleanup_free_ char *text = xasprintf("%s. Claim '%s' could not be deleted again (%s)",
                                              s->ended->message, s->name, error_message(told));
        str_replace(&s->ended->message, text);
    }
    call_fail(c, s->ended);
}

/* Deletes the claim, then fails the call with what is in s->ended. */
static void undo(Call *c)
{
    Create *s = call_state(c);
    _cleanup_free_ char *path = kube_path_dup(&resource_claims, call_args(c)->ns, s->name, NULL);
    _cleanup_error_ Error *error = NULL;
    KubeRequest request = {
        .verb = "delete", .path = path, .ignore_object = true, .on_done = on_undone, .userdata = c};

    sandbox_cache_unwait(s->cache, &s->waiter);
    loop_timer_stop(s->loop, &s->deadline);
    call_on_cancel(c, NULL);
    if (kube_send(call_services(c)->kube, &request, &s->call, &error) < 0)
        on_undone(NULL, error, c);
}

static void cancel_wait(Call *c)
{
    Create *s = call_state(c);

    (void)error_set(&s->ended, ERROR_CANCELLED, "the caller went away, the sandbox is deleted");
    undo(c);
}

static void succeed(Call *c)
{
    Create *s = call_state(c);
    _cleanup_buf_ Buf out = BUF_INIT(CALL_REPLY_MAX);
    JsonWriter w = json_writer(&out);
    char at[RFC3339_MAX];

    jw_object(&w);
    jw_kv_str(&w, "sandbox_claim_name", s->name);
    if (s->shutdown_ms > 0) {
        time_format_rfc3339(s->shutdown_ms, at);
        jw_kv_str(&w, "expires_at", at);
    }
    jw_object_end(&w);
    call_succeed(c, &out);
}

static const char quota_hint[] = "Call delete_sandbox for one that is not needed any more, then "
                                 "create_sandbox again";

static void end_failed(Call *c, const SandboxView *view)
{
    Create *s = call_state(c);
    bool quota = strstr(view->message, "exceeded quota") != NULL;

    (void)error_set(&s->ended, quota ? ERROR_EXHAUSTED : ERROR_INVALID,
                    "The sandbox cannot be made: %s (%s)", view->message, view->reason);
    if (quota)
        (void)error_hint(&s->ended, 0, "%s", quota_hint);
    else
        (void)error_hint(&s->ended, 0,
                         "Call create_sandbox with other arguments, or ask an administrator");
    undo(c);
}

static void end_deleted(Call *c)
{
    Create *s = call_state(c);

    (void)error_set(&s->ended, ERROR_GONE, "Claim '%s' was deleted before it was ready", s->name);
    (void)error_hint(&s->ended, 0, "Call create_sandbox again");
    undo(c);
}

static void on_change(void *userdata)
{
    Call *c = userdata;
    Create *s = call_state(c);
    SandboxView view;

    sandbox_resolve(sandbox_cache_store(s->cache), call_args(c)->ns, s->name, call_owner(c), &view);
    s->seen |= view.state != SANDBOX_MISSING;
    if (s->call)
        return; /* the watch may be quicker than the answer to the create */
    if (view.state == SANDBOX_READY) {
        call_set_pod(c, view.pod_name);
        succeed(c);
    } else if (view.failed) {
        end_failed(c, &view);
    } else if (view.state == SANDBOX_MISSING && s->seen) {
        end_deleted(c);
    }
}

static void on_deadline(void *userdata)
{
    Call *c = userdata;
    Create *s = call_state(c);
    const CreateArgs *args = (const CreateArgs *)call_args(c);
    SandboxView view;

    sandbox_resolve(sandbox_cache_store(s->cache), args->base.ns, s->name, call_owner(c), &view);
    (void)error_set(&s->ended, ERROR_TIMEOUT,
                    "Sandbox claim '%s' was not ready within %lld seconds and is deleted again. "
                    "Last seen: %s (%s)",
                    s->name, (long long)args->ready_timeout_s,
                    view.state == SANDBOX_MISSING ? "the gateway has not seen it yet"
                                                  : view.message,
                    view.reason);
    (void)error_hint(&s->ended, 0, "%s",
                     view.cannot_start
                         ? "Its container cannot be started, and a longer sandbox_ready_timeout "
                           "does not change that. Tell the administrator of the warm pool, or call "
                           "create_sandbox with another one"
                         : "Call create_sandbox again with a longer sandbox_ready_timeout");
    undo(c);
}

static void wait_ready(Call *c)
{
    Create *s = call_state(c);
    const CreateArgs *args = (const CreateArgs *)call_args(c);

    s->deadline.fn = on_deadline;
    s->deadline.userdata = c;
    loop_timer_set(s->loop, &s->deadline, args->ready_timeout_s * 1000);
    call_on_cancel(c, cancel_wait);
    on_change(c);
}

static void send_create(Call *c);
static void look(Call *c);

static void on_look_again(void *userdata)
{
    look(userdata);
}

/* Nothing ends a claim without a lifetime: where its creation may still be under way, it is looked
 * for once more. */
static bool look_again(Call *c, const Error *error)
{
    Create *s = call_state(c);

    if (error->kind != ERROR_NOT_FOUND || s->shutdown_ms > 0 || s->looked)
        return false;
    s->looked = true;
    s->deadline.fn = on_look_again;
    s->deadline.userdata = c;
    loop_timer_set(s->loop, &s->deadline, LOOK_AGAIN_MS);
    return true;
}

/* The API server's answer to the create was lost: asks whether the claim is there. */
static void on_confirmed(_unused_ JsonValue *object, const Error *error, void *userdata)
{
    Call *c = userdata;
    Create *s = call_state(c);

    s->call = NULL;
    if (!error) {
        s->ended = error_free(s->ended);
        if (call_is_cancelled(c))
            cancel_wait(c);
        else
            wait_ready(c);
        return;
    }
    if (!look_again(c, error))
        undo(c);
}

static void look(Call *c)
{
    Create *s = call_state(c);
    _cleanup_free_ char *path = kube_path_dup(&resource_claims, call_args(c)->ns, s->name, NULL);
    KubeRequest request = {
        .verb = "get", .path = path, .ignore_object = true, .on_done = on_confirmed, .userdata = c};
    _cleanup_error_ Error *error = NULL;

    if (kube_send(call_services(c)->kube, &request, &s->call, &error) < 0)
        undo(c);
}

static void confirm(Call *c, const Error *lost)
{
    Create *s = call_state(c);

    s->ended = api_error_for_caller(lost);
    call_on_cancel(c, NULL);
    look(c);
}

static void fail_create(Call *c, const Error *error)
{
    _cleanup_error_ Error *told = api_error_for_caller(error);
    const ToolArgs *args = call_args(c);

    if (api_error_is_quota(told))
        (void)error_hint(&told, 0, "%s", quota_hint);
    else if (told->kind == ERROR_NOT_FOUND)
        (void)error_hint(&told, 0, "Call create_sandbox with a namespace that exists, not '%s'",
                         args->ns);
    call_fail(c, told);
}

static void on_created(_unused_ JsonValue *object, const Error *error, void *userdata)
{
    Call *c = userdata;
    Create *s = call_state(c);

    s->call = NULL;
    if (error && error->kind == ERROR_EXISTS && ++s->tries < NAME_TRIES)
        send_create(c);
    else if (error && (error->kind == ERROR_TIMEOUT || error->kind == ERROR_UNAVAILABLE))
        confirm(c, error);
    else if (error)
        fail_create(c, error);
    else if (call_is_cancelled(c))
        cancel_wait(c);
    else
        wait_ready(c);
}

static void send_create(Call *c)
{
    Create *s = call_state(c);
    const CreateArgs *args = (const CreateArgs *)call_args(c);
    _cleanup_free_ char *path = kube_path_dup(&resource_claims, args->base.ns, NULL, NULL);
    _cleanup_free_ char *created_by =
        xasprintf("%s:%s", principal_issuer(call_principal(c)), principal_name(call_principal(c)));
    _cleanup_buf_ Buf body = BUF_INIT(CLAIM_MAX_BYTES);
    _cleanup_error_ Error *error = NULL;
    int64_t now_ms = clock_realtime_ms(loop_clock(s->loop));
    ClaimSpec spec = {
        .ns = args->base.ns,
        .name = s->name,
        .warmpool = args->warmpool,
        .owner = call_owner(c),
        .created_by = created_by,
        .now_ms = now_ms,
        .labels = &args->labels,
        .pod_labels = &args->pod_labels,
        .pod_annotations = &args->pod_annotations,
    };

    claim_make_name(s->name);
    call_set_claim(c, s->name);
    sandbox_cache_unwait(s->cache, &s->waiter);
    sandbox_cache_wait(s->cache, &s->waiter, args->base.ns, s->name, on_change, c);
    s->shutdown_ms = args->shutdown_never ? 0 : claim_shutdown_ms(now_ms, args->shutdown_after_s);
    spec.shutdown_ms = s->shutdown_ms;
    claim_write(&body, &spec);
    KubeRequest request = {
        .verb = "create",
        .path = path,
        .body = buf_str(&body),
        .body_len = body.len,
        .ignore_object = true,
        .on_done = on_created,
        .userdata = c,
    };
    if (buf_check(&body, "the claim", &error) < 0 ||
        kube_send(call_services(c)->kube, &request, &s->call, &error) < 0)
        call_fail(c, error);
}

static void run(Call *c)
{
    Create *s = xnew(Create);

    s->cache = call_services(c)->cache;
    s->loop = call_services(c)->loop;
    call_set_state(c, s);
    send_create(c);
}

const Tool tool_create_sandbox = {
    .name = "create_sandbox",
    .title = "Create a sandbox",
    .description =
        "Start a sandbox: an isolated Linux machine that keeps files and processes between calls. "
        "Waits until it is ready and returns sandbox_claim_name, which the other tools take "
        "together with the namespace. It is deleted after shutdown_after_seconds: ask for as "
        "long as the work takes.",
    .hints = 0,
    TOOL_FIELDS(fields),
    .args_size = sizeof(CreateArgs),
    TOOL_OUTPUTS(outputs),
    .verb = "create",
    .check = check,
    .run = run,
    .state_free = state_free,
};
