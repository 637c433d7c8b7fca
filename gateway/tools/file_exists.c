/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(PathArgs),
    TOOL_FIELD_NAMESPACE(PathArgs, TOOL_NAMESPACE_HELP),
    TOOL_FIELD_PATH(PathArgs, TOOL_PATH_HELP),
    TOOL_FIELD_TIMEOUT(PathArgs),
};

static const ToolOutput outputs[] = {
    {"exists", "boolean", NULL, false, NULL, "There is a file or directory of that name"},
};

static int check(_unused_ const JsonValue *given, ToolArgs *args, _unused_ const ToolLimits *limits,
                 Error **error)
{
    return tool_check_path(((const PathArgs *)args)->path, error);
}

static int write_result(Call *c, TransportResult *result, Buf *out, _unused_ Error **error)
{
    JsonWriter w = json_writer(out);

    call_set_outcome(c, "exists", result->exists);
    jw_object(&w);
    jw_kv_bool(&w, "exists", result->exists);
    jw_object_end(&w);
    return 0;
}

static void on_done(TransportResult *result, const Error *error, void *userdata)
{
    run_answer(userdata, result, error, write_result);
}

static int start(Call *c, const TransportTarget *target, TransportJob **ret, Error **error)
{
    const PathArgs *args = (const PathArgs *)call_args(c);

    return transport_exists(call_services(c)->transport, target, args->path,
                            args->base.timeout_s * 1000, on_done, c, ret, error);
}

static void run(Call *c)
{
    run_in_sandbox(c, start);
}

const Tool tool_file_exists = {
    .name = "file_exists",
    .title = "Look for a path",
    .description = "Tell whether a file or directory exists in a sandbox.",
    .hints = TOOL_READ_ONLY,
    TOOL_FIELDS(fields),
    .args_size = sizeof(PathArgs),
    TOOL_OUTPUTS(outputs),
    .verb = "create",
    .subresource = "files",
    .digest_offset = offsetof(PathArgs, path),
    .check = check,
    .run = run,
    .state_free = run_state_free,
};
