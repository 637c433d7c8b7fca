/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/api_error.h"
#include "gateway/sandbox/names.h"
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(SandboxArgs),
    TOOL_FIELD_NAMESPACE(SandboxArgs, TOOL_NAMESPACE_HELP),
};

typedef struct Delete {
    Lookup *lookup;
    KubeCall *call;
} Delete;

static void state_free(void *state)
{
    Delete *d = state;

    (void)lookup_cancel(d->lookup);
    (void)kube_call_cancel(d->call);
    free(d);
}

static void answer(Call *c)
{
    _cleanup_free_ char *text = xasprintf("Sandbox claim '%s' in namespace '%s' is deleted.",
                                          call_args(c)->claim, call_args(c)->ns);

    call_succeed_text(c, text);
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
        answer(c);
    }
}

static void send_delete(Call *c, const ClaimModel *claim)
{
    const ToolArgs *args = call_args(c);
    Delete *d = call_state(c);
    _cleanup_free_ char *path = kube_path_dup(&resource_claims, args->ns, args->claim, NULL);
    _cleanup_buf_ Buf body = BUF_INIT(4096);
    _cleanup_error_ Error *error = NULL;

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
