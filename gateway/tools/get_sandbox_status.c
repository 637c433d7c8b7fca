/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(SandboxArgs),
    TOOL_FIELD_NAMESPACE(SandboxArgs, TOOL_NAMESPACE_HELP),
};

static const ToolOutput outputs[] = {
    {"status", "string", "\"enum\":[\"SandboxReady\",\"SandboxNotReady\",\"SandboxNotFound\"]",
     false, NULL, "See below"},
    {"ready", "boolean", NULL, false, NULL, "status is SandboxReady"},
    {"message", "string", NULL, false, NULL, "Why, in the controller's words"},
    {"reason", "string", NULL, true, NULL, "The same as one word"},
    {"expires_at", "string", NULL, true, "When it is deleted (RFC 3339)", NULL},
    {"transport", "string", NULL, true, NULL, "How commands reach it: exec (pods/exec)"},
};

static const char *status_of(const SandboxView *view)
{
    if (view->state == SANDBOX_MISSING)
        return "SandboxNotFound";
    return view->state == SANDBOX_READY ? "SandboxReady" : "SandboxNotReady";
}

static void write_result(Buf *out, const SandboxView *view)
{
    JsonWriter w = json_writer(out);
    char at[RFC3339_MAX];

    jw_object(&w);
    jw_kv_str(&w, "status", status_of(view));
    jw_kv_bool(&w, "ready", view->state == SANDBOX_READY);
    jw_kv_str(&w, "message", view->message);
    jw_kv_str(&w, "reason", view->reason);
    if (view->claim && view->claim->shutdown_ms > 0) {
        time_format_rfc3339(view->claim->shutdown_ms, at);
        jw_kv_str(&w, "expires_at", at);
    }
    if (sandbox_is_usable(view))
        jw_kv_str(&w, "transport", "exec");
    jw_object_end(&w);
}

static void on_found(const SandboxView *view, const Error *error, void *userdata)
{
    Call *c = userdata;
    _cleanup_buf_ Buf out = BUF_INIT(CALL_REPLY_MAX);

    call_set_state(c, NULL);
    call_on_cancel(c, NULL);
    if (error) {
        call_fail(c, error);
        return;
    }
    call_set_outcome(c, status_of(view), 0);
    write_result(&out, view);
    call_succeed(c, &out);
}

static void cancel(Call *c)
{
    _cleanup_error_ Error *error = NULL;

    (void)lookup_cancel(call_state(c));
    call_set_state(c, NULL);
    (void)error_set(&error, ERROR_CANCELLED, "the caller went away");
    call_fail(c, error);
}

static void run(Call *c)
{
    const ToolArgs *args = call_args(c);
    Lookup *lookup;

    call_on_cancel(c, cancel);
    lookup_start(call_services(c)->lookups, args->ns, args->claim, call_owner(c), LOOKUP_TO_LOOK,
                 on_found, c, &lookup);
    if (lookup) /* otherwise the call is answered and gone */
        call_set_state(c, lookup);
}

static void state_free(void *state)
{
    (void)lookup_cancel(state);
}

static const char prose[] =
    "| `status` | what it means |\n"
    "|---|---|\n"
    "| `SandboxReady` | It can be used |\n"
    "| `SandboxNotReady` | It is there, but starts, ends or cannot start: `reason` and `message` "
    "say "
    "which |\n"
    "| `SandboxNotFound` | It was deleted, its lifetime has ended, it never was, or it is somebody "
    "else's |\n";

const Tool tool_get_sandbox_status = {
    .name = "get_sandbox_status",
    .title = "Ask for a sandbox's state",
    .description = "Tell whether a sandbox is ready, and why not. Never waits for it.",
    .hints = TOOL_READ_ONLY,
    TOOL_FIELDS(fields),
    .args_size = sizeof(SandboxArgs),
    TOOL_OUTPUTS(outputs),
    .verb = "get",
    .prose = prose,
    .run = run,
    .state_free = state_free,
};
