/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/sandbox/api_error.h"
#include "gateway/sandbox/names.h"
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(SandboxArgs),
    TOOL_FIELD_NAMESPACE(SandboxArgs, TOOL_NAMESPACE_HELP),
};

/* How long the answer waits for this gateway to see the deletion itself, so that the next call does
 * not find what is gone. */
#define PATIENCE_MS 2000

typedef struct Delete {
    SandboxCache *cache;
    Loop *loop;
    Lookup *lookup;
    KubeCall *call;
    char *uid;
    SandboxWaiter waiter;
    LoopTimer deadline;
} Delete;

static void state_free(void *state)
{
    Delete *d = state;

    sandbox_cache_unwait(d->cache, &d->waiter);
    loop_timer_stop(d->loop, &d->deadline);
    (void)lookup_cancel(d->lookup);
    (void)kube_call_cancel(d->call);
    free(d->uid);
    free(d);
}

static void answer(void *userdata)
{
    Call *c = userdata;
    _cleanup_free_ char *text = xasprintf("Sandbox claim '%s' in namespace '%s' is deleted.",
                                          call_args(c)->claim, call_args(c)->ns);

    call_succeed_text(c, text);
}

static void on_change(void *userdata)
{
    Call *c = userdata;
    Delete *d = call_state(c);
    const ToolArgs *args = call_args(c);
    const ClaimModel *claim = store_claim(sandbox_cache_store(d->cache), args->ns, args->claim);

    if (!claim || claim->deleting || !str_eq(claim->uid, d->uid))
        answer(c);
}

static void wait_unseen(Call *c)
{
    Delete *d = call_state(c);

    d->deadline.fn = answer;
    d->deadline.userdata = c;
    loop_timer_set(d->loop, &d->deadline, PATIENCE_MS);
    sandbox_cache_wait(d->cache, &d->waiter, call_args(c)->ns, call_args(c)->claim, on_change, c);
    on_change(c);
}

/* Gone, or replaced by a namesake, is as good as deleted. */
static void on_deleted(_unused_ JsonValue *object, const Error *error, void *userdata)
{
    Call *c = userdata;
    Delete *d = call_state(c);

    d->call = NULL;
    if (error && error->kind != ERROR_NOT_FOUND && error->kind != ERROR_CONFLICT) {
        _cleanup_error_ Error *told = api_error_for_caller(error);
        call_fail(c, told);
    } else {
        wait_unseen(c);
    }
}

static void send_delete(Call *c, const ClaimModel *claim)
{
    const ToolArgs *args = call_args(c);
    Delete *d = call_state(c);
    _cleanup_free_ char *path = kube_path_dup(&resource_claims, args->ns, args->claim, NULL);
    _cleanup_buf_ Buf body = BUF_INIT(4096);
    _cleanup_error_ Error *error = NULL;

    d->uid = xstrdup(claim->uid);
    kube_delete_options(&body, claim->uid, NULL, NULL);
    KubeRequest request = {
        .verb = "delete",
        .path = path,
        .body = buf_str(&body),
        .body_len = body.len,
        .ignore_object = true,
        .on_done = on_deleted,
        .userdata = c,
    };
    if (kube_send(call_services(c)->kube, &request, &d->call, &error) < 0)
        call_fail(c, error);
}

static void on_found(const SandboxView *view, const Error *failed, void *userdata)
{
    Call *c = userdata;
    Delete *d = call_state(c);
    _cleanup_error_ Error *error = NULL;

    d->lookup = NULL;
    call_on_cancel(c, NULL); /* a deletion goes through, whether or not anybody waits */
    if (failed) {
        call_fail(c, failed);
        return;
    }
    if (view->state == SANDBOX_MISSING) {
        (void)run_unusable(view, call_args(c), &error);
        (void)error_hint(&error, 0,
                         "It may be deleted already, or its lifetime has ended: then nothing is "
                         "left to do. Otherwise check the name and the namespace");
        call_fail(c, error);
        return;
    }
    send_delete(c, view->claim);
}

static void run(Call *c)
{
    const ToolArgs *args = call_args(c);
    Delete *d = xnew(Delete);
    Lookup *lookup;

    d->cache = call_services(c)->cache;
    d->loop = call_services(c)->loop;
    call_set_state(c, d);
    lookup_start(call_services(c)->lookups, args->ns, args->claim, call_owner(c), LOOKUP_TO_LOOK,
                 on_found, c, &lookup);
    if (lookup)
        d->lookup = lookup;
}

const Tool tool_delete_sandbox = {
    .name = "delete_sandbox",
    .title = "Delete a sandbox",
    .description = "Delete a sandbox with everything in it. Call it when the work is done, also "
                   "after failures.",
    .hints = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
    TOOL_FIELDS(fields),
    .args_size = sizeof(SandboxArgs),
    .verb = "delete",
    .run = run,
    .state_free = state_free,
};
