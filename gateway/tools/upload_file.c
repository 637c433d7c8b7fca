/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

#include <string.h>

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(FileArgs),
    TOOL_FIELD_NAMESPACE(FileArgs, TOOL_NAMESPACE_HELP),
    TOOL_FIELD_PATH(FileArgs, TOOL_PATH_HELP),
    {.name = "content",
     .type = JSON_FIELD_BYTES,
     .flags = JSON_FIELD_REQUIRED,
     .offset = offsetof(FileArgs, content),
     .help = "Text, or base64 if binary"},
    {.name = "binary",
     .type = JSON_FIELD_BOOL,
     .flags = TOOL_OPTIONAL,
     .offset = offsetof(FileArgs, binary),
     .def = "false",
     .help = "content is base64"},
    TOOL_FIELD_TIMEOUT(FileArgs),
};

static const ToolOutput outputs[] = {
    {"bytes_written", "integer", NULL, false, NULL, "Bytes in the file now"},
};

/* base64 as people and tools wrap it: white space does not count. */
static void drop_white_space(JsonBytes *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        if (!strchr(" \t\r\n", b->data[i]) || b->data[i] == '\0')
            b->data[n++] = b->data[i];
    b->len = n;
}

static int decode(JsonBytes *b, Error **error)
{
    _cleanup_buf_ Buf decoded = BUF_INIT(b->len);
    int r;

    drop_white_space(b);
    r = str_base64_decode(&decoded, b->data, b->len, error);
    if (r < 0)
        return error_wrap(error, r, "content is not base64 (standard alphabet, padded)");
    free(b->data);
    b->data = buf_take(&decoded, &b->len);
    return 0;
}

static int check(_unused_ const JsonValue *given, ToolArgs *base, const ToolLimits *limits,
                 Error **error)
{
    FileArgs *args = (FileArgs *)base;
    int r;

    if ((r = tool_check_path(args->path, error)) < 0)
        return r;
    if (args->binary && (r = decode(&args->content, error)) < 0)
        return r;
    if (args->content.len <= limits->max_file_bytes)
        return 0;
    r = error_set(error, ERROR_TOO_LARGE, "content has %zu bytes; at most %zu can be uploaded",
                  args->content.len, limits->max_file_bytes);
    return error_hint(error, r,
                      "Let execute_command fetch it, or upload it in parts and join them there");
}

static int write_result(Call *c, TransportResult *result, Buf *out, _unused_ Error **error)
{
    JsonWriter w = json_writer(out);

    call_set_outcome(c, "bytes", (int64_t)result->bytes_written);
    jw_object(&w);
    jw_kv_int(&w, "bytes_written", (int64_t)result->bytes_written);
    jw_object_end(&w);
    return 0;
}

static void on_done(TransportResult *result, const Error *error, void *userdata)
{
    run_answer(userdata, result, error, write_result);
}

/* The arguments', and the one that is on its way. */
#define COPIES 2

static int start(Call *c, const TransportTarget *target, TransportJob **ret, Error **error)
{
    const FileArgs *args = (const FileArgs *)call_args(c);
    int r = call_reserve_bytes(c, COPIES * args->content.len, error);

    if (r < 0)
        return r;
    return transport_upload(call_services(c)->transport, target, args->path, args->content.data,
                            args->content.len, args->base.timeout_s * 1000, on_done, c, ret, error);
}

static void run(Call *c)
{
    run_in_sandbox(c, start);
}

const Tool tool_upload_file = {
    .name = "upload_file",
    .title = "Write a file",
    .description = "Write a file in a sandbox, whole or not at all. Makes parent directories, "
                   "replaces an existing file.",
    .hints = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
    TOOL_FIELDS(fields),
    .args_size = sizeof(FileArgs),
    TOOL_OUTPUTS(outputs),
    .verb = "create",
    .subresource = "files",
    .digest_offset = offsetof(FileArgs, path),
    .check = check,
    .run = run,
    .state_free = run_state_free,
};
