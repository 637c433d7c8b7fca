/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(CommandArgs),
    TOOL_FIELD_NAMESPACE(CommandArgs, TOOL_NAMESPACE_HELP),
    {.name = "command",
     .type = JSON_FIELD_STRING,
     .flags = JSON_FIELD_REQUIRED,
     .offset = offsetof(CommandArgs, command),
     .min = 1,
     .max = TOOL_COMMAND_MAX,
     .help = "Shell command line"},
    TOOL_FIELD_TIMEOUT(CommandArgs),
};

static const ToolOutput outputs[] = {
    {"exit_code", "integer", NULL, false, "128 + signal when killed", NULL},
    {"stdout", "string", NULL, false, NULL, "What it wrote to stdout, at most 64 KiB"},
    {"stderr", "string", NULL, false, NULL, "What it wrote to stderr, at most 64 KiB"},
    {"ended", "string",
     "\"enum\":[\"exited\",\"signaled\",\"timed_out\",\"oom\",\"cancelled\",\"lost\"]", true, NULL,
     "How it ended: see below"},
    {"duration_ms", "integer", NULL, true, NULL, "How long it ran"},
    {"stdout_bytes", "integer", NULL, true, "Written in all", NULL},
    {"stderr_bytes", "integer", NULL, true, "Written in all", NULL},
    {"truncated", "boolean", NULL, true, "The middle of an output is missing", NULL},
    {"invalid_utf8", "boolean", NULL, true, "Bytes were replaced by U+FFFD", NULL},
    {"note", "string", NULL, true, "What to know about the end", NULL},
};

/* What a model should know where an end is not an ordinary exit. */
static const char *const notes[COMMAND_END_MAX] = {
    [COMMAND_TIMED_OUT] = "Killed at the timeout. For longer work raise timeout (at most 600), or "
                          "start it in the background with nohup and poll.",
    [COMMAND_OOM] = "The sandbox ran out of memory and the kernel killed a process.",
    [COMMAND_LOST] = "The connection was lost before the end was seen: the command may have run "
                     "to its end, or may still run. Check its effects before running it again.",
};

/* And where the container ended with it. */
static const char *const ended_notes[COMMAND_END_MAX] = {
    [COMMAND_OOM] = "The sandbox ran out of memory and the kernel killed all of its container: "
                    "other processes and files outside of volumes are gone with it.",
    [COMMAND_LOST] = "The sandbox's container or pod was ended while the command ran (deleted, "
                     "expired or killed): the command ends with it, as do other processes and "
                     "files outside of volumes. Call get_sandbox_status to see what "
                     "is left. Check its effects before running it again.",
};

static void write_part(JsonWriter *w, const char *name, const OutputPart *part)
{
    jw_key(w, name);
    jw_strn(w, part->data ? part->data : "", part->len);
}

static int write_result(Call *c, TransportResult *r, Buf *out, _unused_ Error **error)
{
    JsonWriter w = json_writer(out);

    call_set_outcome(c, command_end_to_string(r->ended), r->exit_code);
    jw_object(&w);
    jw_kv_int(&w, "exit_code", r->exit_code);
    write_part(&w, "stdout", &r->out);
    write_part(&w, "stderr", &r->err);
    jw_kv_str(&w, "ended", command_end_to_string(r->ended));
    jw_kv_int(&w, "duration_ms", r->duration_ms);
    jw_kv_int(&w, "stdout_bytes", (int64_t)r->out.total_bytes);
    jw_kv_int(&w, "stderr_bytes", (int64_t)r->err.total_bytes);
    jw_kv_bool(&w, "truncated", r->out.truncated || r->err.truncated);
    if (!str_is_utf8(r->out.data, r->out.len) || !str_is_utf8(r->err.data, r->err.len))
        jw_kv_bool(&w, "invalid_utf8", true);
    jw_kv_str_opt(&w, "note", r->container_ended ? ended_notes[r->ended] : notes[r->ended]);
    jw_object_end(&w);
    return 0;
}

static void on_done(TransportResult *result, const Error *error, void *userdata)
{
    run_answer(userdata, result, error, write_result);
}

static int start(Call *c, const TransportTarget *target, TransportJob **ret, Error **error)
{
    const CommandArgs *args = (const CommandArgs *)call_args(c);

    return transport_command(call_services(c)->transport, target, args->command,
                             args->base.timeout_s * 1000, on_done, c, ret, error);
}

static void run(Call *c)
{
    run_in_sandbox(c, start);
}

static const char prose[] =
    "| `ended` | `exit_code` | what happened |\n"
    "|---|---|---|\n"
    "| `exited` | the shell's | The shell came to its end; any code, also 126 and 127 |\n"
    "| `signaled` | 128 + signal | A signal ended the shell or the command that it ran last |\n"
    "| `timed_out` | 124 | It was killed at `timeout` |\n"
    "| `oom` | 137 | The kernel killed a process of it, or its whole container, for lack of memory "
    "|\n"
    "| `cancelled` | 130 | It was killed as its caller closed the connection; the gateway's log "
    "has "
    "it |\n"
    "| `lost` | 255 | The end was not seen, as the connection or the container ended before; "
    "`note` "
    "says whether it may still run |\n"
    "\n"
    "The result comes when the shell ends. A background process (`cmd &`) lives on after its call, "
    "until it ends\n"
    "or the pod does; what it prints from then on is dropped, so send that to a file "
    "(`nohup cmd >log 2>&1 &`).\n"
    "At a timeout and when the call is cancelled, background processes of the same command are "
    "killed too.\n";

const Tool tool_execute_command = {
    .name = "execute_command",
    .title = "Run a command",
    .description =
        "Run a shell command (sh -c) in a sandbox and wait for its end. A non-zero exit_code is a "
        "normal result. stdin is closed. At the timeout it is killed (exit_code 124). Of longer "
        "output the first 48 and the last 16 KiB are kept.",
    .hints = TOOL_DESTRUCTIVE | TOOL_OPEN_WORLD,
    TOOL_FIELDS(fields),
    .args_size = sizeof(CommandArgs),
    TOOL_OUTPUTS(outputs),
    .verb = "create",
    .subresource = "exec",
    .prose = prose,
    .digest_offset = offsetof(CommandArgs, command),
    .run = run,
    .state_free = run_state_free,
};
