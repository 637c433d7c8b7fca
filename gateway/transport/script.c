/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/script.h"

#include <inttypes.h>
#include <string.h>

static const char *const texts[SCRIPT_MAX] = {
    [SCRIPT_COMMAND] = script_text_command,   [SCRIPT_UPLOAD] = script_text_upload,
    [SCRIPT_DOWNLOAD] = script_text_download, [SCRIPT_LIST] = script_text_list,
    [SCRIPT_EXISTS] = script_text_exists,
};

/* Without comments, indentation and empty lines: the sandbox's shell reads it byte by byte. */
static void text_append(Buf *out, const char *text)
{
    while (*text) {
        text += strspn(text, " \t");
        size_t len = strcspn(text, "\n");
        if (len > 0 && *text != '#')
            (void)buf_printf(out, "%.*s\n", (int)len, text);
        text += len;
        if (*text == '\n')
            text++;
    }
}

void script_bootstrap(Buf *out)
{
    text_append(out, script_text_bootstrap);
}

void script_append(Buf *out, ScriptName name)
{
    text_append(out, script_text_common);
    text_append(out, texts[name]);
    (void)buf_append_str(out, ".\n");
}

void script_param(Buf *out, const char *value)
{
    for (const char *c = value; *c; c++) {
        if (*c >= 32 && *c < 127 && *c != '\\')
            (void)buf_append_char(out, *c);
        else
            (void)buf_printf(out, "\\0%03o", (unsigned char)*c);
    }
    (void)buf_append_char(out, '\n');
}

void script_param_u64(Buf *out, uint64_t value)
{
    (void)buf_printf(out, "%" PRIu64 "\n", value);
}
