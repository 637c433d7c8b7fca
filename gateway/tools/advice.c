/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tools/advice.h"

#include "common/base/str.h"

#include <string.h>

/* What to do next where the error itself does not say; %s is the tool. */
static const char *const next_steps[ERROR_KIND_MAX] = {
    [ERROR_INTERNAL] = "Call get_sandbox_status; if it goes on, tell an administrator",
    [ERROR_INVALID] = "Call %s with corrected arguments",
    [ERROR_UNAUTHENTICATED] = "Ask an administrator for a new token, then call %s again",
    [ERROR_DENIED] = "Ask an administrator for the right that is missing",
    [ERROR_NOT_FOUND] = "Call list_files on the directory to see what is there",
    [ERROR_CONFLICT] = "Call get_sandbox_status, then %s again",
    [ERROR_EXISTS] = "Call %s with another name",
    [ERROR_GONE] = "Call create_sandbox for a new sandbox",
    [ERROR_TOO_LARGE] = "Call %s with less at a time",
    [ERROR_EXHAUSTED] = "Call %s again in a few seconds",
    [ERROR_UNAVAILABLE] = "Call %s again in a few seconds",
    [ERROR_TIMEOUT] = "Call get_sandbox_status, then %s again",
    [ERROR_CANCELLED] = "Call %s again",
};

/* A sentence with exactly one full stop. */
static void write_sentence(Buf *out, const char *text)
{
    size_t len = strlen(text);

    while (len > 0 && (text[len - 1] == '.' || text[len - 1] == ' ' || text[len - 1] == '\n'))
        len--;
    (void)buf_append(out, text, len);
    (void)buf_append_str(out, ". ");
}

static void write_step(Buf *out, const Tool *tool, const char *step)
{
    const char *place = strstr(step, "%s");

    if (!place) {
        (void)buf_append_str(out, step);
    } else {
        (void)buf_append(out, step, (size_t)(place - step));
        (void)buf_append_str(out, tool->name);
        (void)buf_append_str(out, place + 2);
    }
}

static const char *next_step(const Tool *tool, ErrorKind kind)
{
    return kind == ERROR_TOO_LARGE && tool->too_large ? tool->too_large : next_steps[kind];
}

void tool_write_advice(Buf *out, const Tool *tool, const Error *error)
{
    const char *step = next_step(tool, error->kind);

    write_sentence(out, error->message);
    write_sentence(out, error_is_retryable(error) ? "The same call may succeed later"
                                                  : "Repeating the same call does not help");
    if (!str_empty(error->hint))
        write_sentence(out, error->hint);
    else if (step) {
        write_step(out, tool, step);
        (void)buf_append_str(out, ".");
    }
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}
