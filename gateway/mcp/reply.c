/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/mcp/reply.h"

#include <string.h>

static void write_head(JsonWriter *w, const char *id)
{
    jw_object(w);
    jw_kv_str(w, "jsonrpc", "2.0");
    jw_kv_raw(w, "id", id);
}

void mcp_write_response(Buf *out, const char *id, const char *result, size_t result_len)
{
    (void)buf_append_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    (void)buf_append_str(out, id);
    (void)buf_append_str(out, ",\"result\":");
    (void)buf_append(out, result, result_len);
    (void)buf_append_char(out, '}');
}

void mcp_write_error(Buf *out, McpEra era, const char *id, const McpFailure *failure)
{
    JsonWriter w = json_writer(out);

    jw_object(&w);
    jw_kv_str(&w, "jsonrpc", "2.0");
    if (id || era == MCP_ERA_LEGACY)
        jw_kv_raw(&w, "id", id ? id : "null");
    jw_key(&w, "error");
    jw_object(&w);
    jw_kv_int(&w, "code", failure->code);
    jw_kv_str(&w, "message", failure->message);
    if (failure->data)
        jw_kv_raw(&w, "data", failure->data);
    jw_object_end(&w);
    jw_object_end(&w);
}

void mcp_write_server_info(JsonWriter *w)
{
    jw_object(w);
    jw_kv_str(w, "name", MCP_SERVER_NAME);
    jw_kv_str(w, "title", "Kubernetes agent sandboxes");
    jw_kv_str(w, "version", SANDBOX_VERSION);
    jw_object_end(w);
}

void mcp_write_result_members(JsonWriter *w, McpEra era)
{
    if (era != MCP_ERA_MODERN)
        return;
    jw_kv_str(w, "resultType", "complete");
    jw_key(w, "_meta");
    jw_object(w);
    jw_key(w, MCP_META_SERVER_INFO);
    mcp_write_server_info(w);
    jw_object_end(w);
}

static void write_text_content(JsonWriter *w, const char *text, size_t len)
{
    jw_key(w, "content");
    jw_array(w);
    jw_object(w);
    jw_kv_str(w, "type", "text");
    jw_key(w, "text");
    jw_strn(w, text, len);
    jw_object_end(w);
    jw_array_end(w);
}

void mcp_write_tool_result(Buf *out, McpEra era, const char *id, const Buf *structured,
                           const char *text)
{
    JsonWriter w = json_writer(out);

    write_head(&w, id);
    jw_key(&w, "result");
    jw_object(&w);
    if (structured) {
        write_text_content(&w, buf_str(structured), structured->len);
        jw_key(&w, "structuredContent");
        jw_raw(&w, buf_str(structured), structured->len);
    } else {
        write_text_content(&w, text, strlen(text));
    }
    mcp_write_result_members(&w, era);
    jw_object_end(&w);
    jw_object_end(&w);
}

void mcp_write_tool_error(Buf *out, McpEra era, const char *id, const char *text)
{
    JsonWriter w = json_writer(out);

    write_head(&w, id);
    jw_key(&w, "result");
    jw_object(&w);
    write_text_content(&w, text, strlen(text));
    jw_kv_bool(&w, "isError", true);
    mcp_write_result_members(&w, era);
    jw_object_end(&w);
    jw_object_end(&w);
}

void mcp_write_progress(Buf *out, const char *token, int64_t progress, int64_t total,
                        const char *message)
{
    JsonWriter w = json_writer(out);

    jw_object(&w);
    jw_kv_str(&w, "jsonrpc", "2.0");
    jw_kv_str(&w, "method", "notifications/progress");
    jw_key(&w, "params");
    jw_object(&w);
    jw_kv_raw(&w, "progressToken", token);
    jw_kv_int(&w, "progress", progress);
    if (total > 0)
        jw_kv_int(&w, "total", total);
    jw_kv_str_opt(&w, "message", message);
    jw_object_end(&w);
    jw_object_end(&w);
}

void mcp_write_event(Buf *out, const Buf *json)
{
    (void)buf_append_str(out, "event: message\ndata: ");
    (void)buf_append(out, buf_str(json), json->len);
    (void)buf_append_str(out, "\n\n");
}
