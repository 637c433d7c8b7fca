/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/mcp/protocol.h"

#include "common/base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const mcp_versions[] = {
    MCP_VERSION_MODERN, MCP_VERSION_LEGACY_NEWEST, "2025-06-18", "2025-03-26", "2024-11-05",
};
const size_t mcp_n_versions = ARRAY_SIZE(mcp_versions);

bool mcp_version_is_legacy(const char *version)
{
    for (size_t i = 1; i < mcp_n_versions; i++)
        if (str_eq(version, mcp_versions[i]))
            return true;
    return false;
}

static bool is_digit_at(const char *s, size_t i)
{
    return s[i] >= '0' && s[i] <= '9';
}

/* YYYY-MM-DD, as all revisions are named. */
static bool is_date(const char *s)
{
    if (strlen(s) != 10)
        return false;
    for (size_t i = 0; i < 10; i++)
        if (i == 4 || i == 7 ? s[i] != '-' : !is_digit_at(s, i))
            return false;
    return true;
}

bool mcp_version_looks_modern(const char *version)
{
    return version && is_date(version) && strcmp(version, MCP_VERSION_MODERN) >= 0;
}

const char *mcp_version_negotiate(const char *asked)
{
    for (size_t i = 1; i < mcp_n_versions; i++)
        if (str_eq(asked, mcp_versions[i]))
            return mcp_versions[i];
    return MCP_VERSION_LEGACY_NEWEST;
}

int mcp_fail(McpFailure *ret, int http_status, McpCode code, const char *fmt, ...)
{
    char text[ERROR_MESSAGE_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    mcp_failure_done(ret);
    ret->code = code;
    ret->http_status = http_status;
    ret->message = xstrdup(text);
    return -EINVAL;
}

void mcp_failure_done(McpFailure *f)
{
    free(TAKE_PTR(f->message));
    free(TAKE_PTR(f->data));
}
