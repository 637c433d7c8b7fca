/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tools/run.h"

#include "common/base/str.h"

#include <string.h>

/* State of a call that works inside a sandbox. */
typedef struct Run {
    ToolStartFn start;
    Lookup *lookup;
    TransportJob *job;
} Run;

void run_state_free(void *state)
{
    Run *run = state;

    (void)lookup_cancel(run->lookup);
    free(run);
}

int run_unusable(const SandboxView *view, const ToolArgs *args, Error **error)
{
    int r;

    if (view->state == SANDBOX_MISSING) {
        r = error_set(error, ERROR_NOT_FOUND, "%s", view->message);
        return error_hint(error, r,
                          "It was deleted, or its lifetime has ended, or the name is wrong. Call "
                          "create_sandbox for a new one");
    }
    if (view->failed) {
        r = error_set(error, ERROR_GONE, "Sandbox claim '%s' cannot be used any more: %s (%s)",
                      args->claim, view->message, view->reason);
        return error_hint(error, r, "Call create_sandbox for a new one");
    }
    r = error_set(error, ERROR_UNAVAILABLE, "Sandbox claim '%s' is not ready: %s (%s)", args->claim,
                  view->message, view->reason);
    return error_hint(error, r, "Call get_sandbox_status to see when it is");
}

/* Wall-clock instant by which the job has ended, however it ends. */
static int64_t job_deadline_ms(const Call *c)
{
    return clock_realtime_ms(loop_clock(call_services(c)->loop)) + call_args(c)->timeout_s * 1000;
}

static void cancel_job(Call *c)
{
    Run *run = call_state(c);

    transport_cancel(run->job);
}

static void start_job(Call *c, const SandboxView *view)
{
    const ToolArgs *args = call_args(c);
    Run *run = call_state(c);
    TransportTarget target = {.ns = args->ns,
                              .pod = view->pod_name,
                              .container = view->pod->container,
                              .container_id = view->pod->container_id};
    _cleanup_error_ Error *error = NULL;

    call_set_pod(c, view->pod_name);
    if (run->start(c, &target, &run->job, &error) < 0) {
        call_fail(c, error);
        return;
    }
    call_on_cancel(c, cancel_job);
    activity_note(call_services(c)->activity, view->claim, args->ns, args->claim,
                  job_deadline_ms(c));
}

static void on_found(const SandboxView *view, const Error *failed, void *userdata)
{
    Call *c = userdata;
    Run *run = call_state(c);
    _cleanup_error_ Error *error = NULL;

    run->lookup = NULL;
    call_on_cancel(c, NULL);
    if (failed) {
        call_fail(c, failed);
        return;
    }
    if (!sandbox_is_usable(view)) {
        (void)run_unusable(view, call_args(c), &error);
        call_fail(c, error);
        return;
    }
    start_job(c, view);
}

static void cancel_lookup(Call *c)
{
    Run *run = call_state(c);
    _cleanup_error_ Error *error = NULL;

    run->lookup = lookup_cancel(run->lookup);
    (void)error_set(&error, ERROR_CANCELLED, "the caller went away");
    call_fail(c, error);
}

void run_in_sandbox(Call *c, ToolStartFn start)
{
    const ToolArgs *args = call_args(c);
    Run *run = xnew(Run);
    Lookup *lookup;

    run->start = start;
    call_set_state(c, run);
    call_on_cancel(c, cancel_lookup);
    /* The call may be answered and gone when this returns without a look-up under way. */
    lookup_start(call_services(c)->lookups, args->ns, args->claim, call_owner(c), LOOKUP_TO_USE,
                 on_found, c, &lookup);
    if (lookup)
        run->lookup = lookup;
}

static void job_ended(Call *c)
{
    const ToolArgs *args = call_args(c);
    Run *run = call_state(c);
    ClaimModel *claim =
        store_claim(sandbox_cache_store(call_services(c)->cache), args->ns, args->claim);

    run->job = NULL;
    call_on_cancel(c, NULL);
    if (claim && str_eq(claim->owner, call_owner(c)))
        activity_note(call_services(c)->activity, claim, args->ns, args->claim, 0);
}

void run_answer(Call *c, TransportResult *result, const Error *failed, ToolWriteFn write)
{
    _cleanup_buf_ Buf out = BUF_INIT(CALL_REPLY_MAX);
    _cleanup_error_ Error *error = NULL;

    job_ended(c);
    if (failed)
        call_fail(c, failed);
    else if (write(c, result, &out, &error) < 0)
        call_fail(c, error);
    else
        call_succeed(c, &out);
}
