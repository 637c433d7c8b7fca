/* SPDX-License-Identifier: Apache-2.0 */
/* The tools, and what follows from their rows: arguments, tools/list, docs/tools.md. */
#include "gateway/tools/table.h"

#include "common/base/str.h"
#include "gateway/tools/tool.h"

const Tool *const tools[] = {
    &tool_create_sandbox, &tool_execute_command, &tool_upload_file,        &tool_download_file,
    &tool_list_files,     &tool_file_exists,     &tool_get_sandbox_status, &tool_delete_sandbox,
};
const size_t n_tools = ARRAY_SIZE(tools);

const Tool *tool_find(const char *name)
{
    for (size_t i = 0; i < n_tools; i++)
        if (str_eq(tools[i]->name, name))
            return tools[i];
    return NULL;
}

int tool_check_path(const char *path, Error **error)
{
    if (str_empty(path))
        return error_set(error, ERROR_INVALID, "path must not be empty");
    return 0;
}

static int check_names(const ToolArgs *args, Error **error)
{
    if (!str_is_dns_label(args->ns))
        return error_set(error, ERROR_INVALID,
                         "namespace must be at most 63 lower-case letters, digits and '-', not "
                         "\"%.64s\"",
                         args->ns);
    if (args->claim && !str_is_dns_subdomain(args->claim))
        return error_set(error, ERROR_INVALID,
                         "sandbox_claim_name must be a name that create_sandbox returned, not "
                         "\"%.64s\"",
                         args->claim);
    return 0;
}

int tool_parse_args(const Tool *tool, const JsonValue *given, const ToolLimits *limits,
                    ToolArgs **ret, Error **error)
{
    ToolArgs *args = xcalloc(1, tool->args_size);
    int r = json_dispatch(given, tool->fields, tool->n_fields, args, error);

    if (r < 0) {
        free(args);
        return r;
    }
    r = check_names(args, error);
    if (r == 0 && tool->check)
        r = tool->check(given, args, limits, error);
    if (r < 0)
        tool_args_free(tool, args);
    else
        *ret = args;
    return r;
}

void tool_args_free(const Tool *tool, ToolArgs *args)
{
    if (!args)
        return;
    json_dispatch_done(tool->fields, tool->n_fields, args);
    free(args);
}
