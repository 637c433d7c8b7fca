/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(FileArgs),
    TOOL_FIELD_NAMESPACE(FileArgs, TOOL_NAMESPACE_HELP),
    TOOL_FIELD_PATH(FileArgs, TOOL_PATH_HELP),
    {.name = "binary",
     .type = JSON_FIELD_BOOL,
     .flags = TOOL_OPTIONAL,
     .offset = offsetof(FileArgs, binary),
     .def = "false",
     .help = "Return base64; needed where the file is not UTF-8"},
    TOOL_FIELD_TIMEOUT(FileArgs),
};

static const ToolOutput outputs[] = {
    {"content", "string", NULL, false, NULL, "Text, or base64 where binary was asked for"},
    {"bytes_read", "integer", NULL, false, NULL, "Size of the file in bytes"},
};

static int check(_unused_ const JsonValue *given, ToolArgs *args, _unused_ const ToolLimits *limits,
                 Error **error)
{
    return tool_check_path(((const FileArgs *)args)->path, error);
}

/* Straight into the answer: base64 needs no escapes. */
static void write_base64(Buf *out, JsonWriter *w, const TransportResult *r)
{
    jw_raw(w, "\"", 1);
    (void)str_base64_encode(out, r->content ? r->content : "", r->content_len);
    (void)buf_append_char(out, '"');
}

static int write_result(Buf *out, const FileArgs *args, const TransportResult *r, Error **error)
{
    JsonWriter w = json_writer(out);

    if (!args->binary && !str_is_utf8(r->content, r->content_len)) {
        int refused = error_set(error, ERROR_INVALID, "File at '%.256s' contains non-UTF-8 bytes",
                                args->path);
        return error_hint(error, refused, "Call download_file again with binary=true");
    }
    jw_object(&w);
    jw_key(&w, "content");
    if (args->binary)
        write_base64(out, &w, r);
    else
        jw_strn(&w, r->content ? r->content : "", r->content_len);
    jw_kv_int(&w, "bytes_read", (int64_t)r->content_len);
    jw_object_end(&w);
    return 0;
}

static int answer(Call *c, TransportResult *result, Buf *out, Error **error)
{
    int r;

    call_set_outcome(c, "bytes", (int64_t)result->content_len);
    r = call_reserve_bytes(c, result->content_len * CONFIG_TRANSFER_FACTOR, error);
    if (r < 0)
        return r;
    r = write_result(out, (const FileArgs *)call_args(c), result, error);
    free(TAKE_PTR(result->content));
    return r;
}

static void on_done(TransportResult *result, const Error *error, void *userdata)
{
    run_answer(userdata, result, error, answer);
}

static int start(Call *c, const TransportTarget *target, TransportJob **ret, Error **error)
{
    const FileArgs *args = (const FileArgs *)call_args(c);
    size_t max_bytes = (size_t)call_services(c)->config->max_file_bytes;
    int r = call_reserve_bytes(c, max_bytes, error);

    if (r < 0)
        return r;
    return transport_download(call_services(c)->transport, target, args->path, max_bytes,
                              args->base.timeout_s * 1000, on_done, c, ret, error);
}

static void run(Call *c)
{
    run_in_sandbox(c, start);
}

const Tool tool_download_file = {
    .name = "download_file",
    .title = "Read a file",
    .description = "Read a file from a sandbox.",
    .hints = TOOL_READ_ONLY,
    TOOL_FIELDS(fields),
    .args_size = sizeof(FileArgs),
    TOOL_OUTPUTS(outputs),
    .verb = "create",
    .subresource = "files",
    .too_large = "Cut it into parts with execute_command (split or dd), then call %s for each of "
                 "them; with binary=true it takes the least room",
    .digest_offset = offsetof(FileArgs, path),
    .check = check,
    .run = run,
    .state_free = run_state_free,
};
