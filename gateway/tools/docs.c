/* SPDX-License-Identifier: Apache-2.0 */
/* docs/tools.md from the rows. */
#include "common/base/str.h"
#include "common/json/write.h"
#include "gateway/tools/tool.h"

#include <string.h>

static const char intro[] =
    "# Tools\n"
    "\n"
    "What the gateway offers at `POST /mcp`. This page is generated from the tool table\n"
    "(`sandbox-gateway --print-tools-markdown`); a test checks that it is current.\n"
    "\n"
    "Every result is given twice: as `structuredContent` and, as JSON text, in the first content\n"
    "block. A wrong argument, a missing right or a failure is a result with `isError: true` whose\n"
    "text says what happened, whether the same call may succeed later, and which call to make\n"
    "next. A command that ran is never an error, whatever its exit code. Numbers and booleans may\n"
    "come as strings (`\"60\"`, `\"true\"`); `null` for an optional argument is as good as "
    "leaving\n"
    "it out, where nothing else is said; unknown arguments are refused.\n"
    "\n"
    "A call that takes more than 5 seconds is answered as a stream of server-sent events where "
    "the\n"
    "client accepts that, with a comment every 15 seconds and, where the request has a\n"
    "`progressToken`, a progress notification every 30; the result is the last event. A client\n"
    "accepts it whose `Accept` names `text/event-stream`, is `*/*` (as curl's is) or is missing. "
    "With\n"
    "`Accept: application/json` the answer is plain JSON, however long it takes.\n"
    "\n"
    "Closing the connection cancels the call, in all revisions of the protocol: the command is "
    "killed,\n"
    "a sandbox under creation is deleted. There are no sessions, so `notifications/cancelled` "
    "cannot be\n"
    "matched with a call: it is answered with 202 and does nothing. An `Idempotency-Key` header "
    "is\n"
    "refused, since its promise is not kept yet; so are batches of JSON-RPC messages.\n"
    "\n"
    "Paths are absolute, or relative to the working directory of the sandbox's container; links "
    "are\n"
    "followed. Files may have 16 MiB at most (`--max-file-bytes`), content of more than a few MiB "
    "is\n"
    "better fetched from inside the sandbox. Commands and files reach the container that the "
    "pod's\n"
    "annotation `kubectl.kubernetes.io/default-container` names, else its first one.\n"
    "\n"
    "Files and processes live as long as the pod. A pod that is deleted (by hand, with a drained\n"
    "or lost node) is replaced under the same claim, and the new one starts empty but for its\n"
    "volumes. One that has failed or completed is not replaced: its sandbox is of no more use.\n"
    "\n"
    "Sandboxes belong to who created them. Somebody else's sandbox and one that does not exist\n"
    "look the same.\n"
    "\n"
    "## One call by hand\n"
    "\n"
    "In the stateless revision 2026-07-28 each request stands for itself. Three headers repeat "
    "what\n"
    "the body says, and `_meta` names the revision and what the client can do:\n"
    "\n"
    "```sh\n"
    "curl -sS \"$URL\" -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n"
    "  -H 'Accept: application/json' -H 'MCP-Protocol-Version: 2026-07-28' \\\n"
    "  -H 'Mcp-Method: tools/call' -H 'Mcp-Name: execute_command' \\\n"
    "  -d '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {\n"
    "        \"name\": \"execute_command\",\n"
    "        \"arguments\": {\"sandbox_claim_name\": \"sandbox-claim-0123\", \"namespace\": "
    "\"team-a\",\n"
    "                      \"command\": \"uname -a\"},\n"
    "        \"_meta\": {\"io.modelcontextprotocol/protocolVersion\": \"2026-07-28\",\n"
    "                  \"io.modelcontextprotocol/clientCapabilities\": {}}}}'\n"
    "```\n"
    "\n"
    "A client of an older revision (2025-11-25 and before) begins with `initialize` and sends\n"
    "`notifications/initialized`. No session comes of it, so a script may leave both out, and the "
    "header\n"
    "`MCP-Protocol-Version` as well:\n"
    "\n"
    "```sh\n"
    "curl -sS \"$URL\" -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n"
    "  -H 'Accept: application/json' \\\n"
    "  -d '{\"jsonrpc\": \"2.0\", \"id\": 0, \"method\": \"initialize\", \"params\": {\n"
    "        \"protocolVersion\": \"2025-11-25\", \"capabilities\": {},\n"
    "        \"clientInfo\": {\"name\": \"by-hand\", \"version\": \"1\"}}}'\n"
    "```\n"
    "\n"
    "```sh\n"
    "curl -sS \"$URL\" -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n"
    "  -H 'Accept: application/json' -H 'MCP-Protocol-Version: 2025-11-25' \\\n"
    "  -d '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {\n"
    "        \"name\": \"execute_command\",\n"
    "        \"arguments\": {\"sandbox_claim_name\": \"sandbox-claim-0123\", \"namespace\": "
    "\"team-a\",\n"
    "                      \"command\": \"uname -a\"}}}'\n"
    "```\n"
    "\n"
    "`$URL` ends in `/mcp`; `$TOKEN` is a Kubernetes token for the gateway's audience.\n";

static const char *type_of(const JsonField *f)
{
    static const char *const names[JSON_FIELD_TYPE_MAX] = {
        [JSON_FIELD_STRING] = "string", [JSON_FIELD_BOOL] = "boolean",
        [JSON_FIELD_INT] = "integer",   [JSON_FIELD_STRING_MAP] = "object of strings",
        [JSON_FIELD_ENUM] = "string",   [JSON_FIELD_BYTES] = "string",
    };

    return names[f->type];
}

static void write_length(Buf *out, const JsonField *f)
{
    long long max = f->max > 0 ? f->max : JSON_FIELD_STRING_BYTES;

    if (f->min > 0)
        (void)buf_printf(out, "%lld to %lld bytes", (long long)f->min, max);
    else
        (void)buf_printf(out, "at most %lld bytes", max);
}

static void write_argument(Buf *out, const JsonField *f)
{
    (void)buf_printf(out, "| `%s` | %s%s | ", f->name, type_of(f),
                     f->flags & JSON_FIELD_NULLABLE ? " or null" : "");
    if (f->flags & JSON_FIELD_REQUIRED)
        (void)buf_append_str(out, "required");
    else if (f->def)
        (void)buf_append_str(out, f->def);
    (void)buf_append_str(out, " | ");
    if (f->type == JSON_FIELD_INT)
        (void)buf_printf(out, "%lld to %lld", (long long)f->min, (long long)f->max);
    else if (f->type == JSON_FIELD_STRING)
        write_length(out, f);
    (void)buf_printf(out, " | %s |\n", f->help);
}

static void write_output(Buf *out, const ToolOutput *o)
{
    (void)buf_printf(out, "| `%s` | %s | %s | %s |\n", o->name, o->type,
                     o->optional ? "" : "always", o->doc ? o->doc : o->help);
}

static void write_hints(Buf *out, unsigned hints)
{
    static const struct {
        unsigned hint;
        const char *name;
    } names[] = {
        {TOOL_READ_ONLY, "read-only"},
        {TOOL_DESTRUCTIVE, "destructive"},
        {TOOL_IDEMPOTENT, "idempotent"},
        {TOOL_OPEN_WORLD, "open world"},
    };
    const char *separator = "Hints: ";

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!(hints & names[i].hint))
            continue;
        (void)buf_printf(out, "%s%s", separator, names[i].name);
        separator = ", ";
    }
    if (hints)
        (void)buf_append_str(out, ". ");
}

static void write_outputs(Buf *out, const Tool *t)
{
    if (t->n_outputs == 0) {
        (void)buf_append_str(out, "\nThe result is a sentence of text, without fields.\n");
        return;
    }
    (void)buf_append_str(out, "\n| result | type | given | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < t->n_outputs; i++)
        write_output(out, &t->outputs[i]);
}

static void write_tool(Buf *out, const Tool *t)
{
    (void)buf_printf(out, "\n## %s\n\n%s\n\n", t->name, t->description);
    write_hints(out, t->hints);
    (void)buf_printf(out, "Needs the right to `%s` `sandboxclaims%s%s`.\n\n", t->verb,
                     t->subresource ? "/" : "", t->subresource ? t->subresource : "");
    (void)buf_append_str(out, "| argument | type | default | limits | meaning |\n"
                              "|---|---|---|---|---|\n");
    for (size_t i = 0; i < t->n_fields; i++)
        write_argument(out, &t->fields[i]);
    write_outputs(out, t);
    if (t->prose)
        (void)buf_printf(out, "\n%s", t->prose);
}

void tools_write_markdown(Buf *out)
{
    (void)buf_append_str(out, intro);
    for (size_t i = 0; i < n_tools; i++)
        write_tool(out, tools[i]);
}
