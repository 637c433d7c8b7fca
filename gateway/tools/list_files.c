/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tools/args.h"
#include "gateway/tools/run.h"

#include <string.h>

static const JsonField fields[] = {
    TOOL_FIELD_CLAIM(PathArgs),
    TOOL_FIELD_NAMESPACE(PathArgs, TOOL_NAMESPACE_HELP),
    TOOL_FIELD_PATH(PathArgs, TOOL_PATH_HELP),
    TOOL_FIELD_TIMEOUT(PathArgs),
    {.name = "max_entries",
     .type = JSON_FIELD_INT,
     .flags = TOOL_OPTIONAL,
     .offset = offsetof(PathArgs, max_entries),
     .def = "1000",
     .min = 1,
     .max = 10000,
     .help = "Entries to return"},
};

static const ToolOutput outputs[] = {
    {"entries", "array",
     "\"items\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"size\":{"
     "\"type\":\"integer\"},\"type\":{\"type\":\"string\",\"enum\":[\"file\",\"directory\"]},"
     "\"mod_time\":{\"type\":\"number\",\"description\":\"Unix time\"}},\"required\":[\"name\","
     "\"size\",\"type\",\"mod_time\"]}",
     false, NULL, "Objects with name, size (bytes), type (file or directory), mod_time"},
    {"total_entries", "integer", NULL, false, NULL, "Entries in the directory"},
    {"truncated", "boolean", NULL, false, NULL, "Not all of them were returned"},
};

static int check(_unused_ const JsonValue *given, ToolArgs *args, _unused_ const ToolLimits *limits,
                 Error **error)
{
    return tool_check_path(((const PathArgs *)args)->path, error);
}

/* Sockets, devices and the like are files to a caller. */
static void write_entry(JsonWriter *w, const FileEntry *e)
{
    jw_object(w);
    jw_key(w, "name");
    jw_strn(w, e->name, strlen(e->name));
    jw_kv_int(w, "size", (int64_t)e->size);
    jw_kv_str(w, "type", e->type == FILE_TYPE_DIRECTORY ? "directory" : "file");
    jw_key(w, "mod_time");
    jw_double(w, e->mod_time);
    jw_object_end(w);
}

static int write_result(Call *c, TransportResult *r, Buf *out, _unused_ Error **error)
{
    JsonWriter w = json_writer(out);

    call_set_outcome(c, "entries", (int64_t)r->total_entries);
    jw_object(&w);
    jw_key(&w, "entries");
    jw_array(&w);
    for (size_t i = 0; i < r->n_entries; i++)
        write_entry(&w, &r->entries[i]);
    jw_array_end(&w);
    jw_kv_int(&w, "total_entries", (int64_t)r->total_entries);
    jw_kv_bool(&w, "truncated", r->entries_truncated);
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

    return transport_list(call_services(c)->transport, target, args->path,
                          (uint64_t)args->max_entries, args->base.timeout_s * 1000, on_done, c, ret,
                          error);
}

static void run(Call *c)
{
    run_in_sandbox(c, start);
}

const Tool tool_list_files = {
    .name = "list_files",
    .title = "List a directory",
    .description = "List a directory of a sandbox, sorted by name.",
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
