/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/mcp/headers.h"

#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VALUE_MAX 4096
#define SENTINEL_BEGIN "=?base64?"
#define SENTINEL_END "?="

typedef struct Span {
    const char *data;
    size_t len;
} Span;

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static Span span_trim(Span s)
{
    while (s.len > 0 && is_space(s.data[0])) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.data[s.len - 1]))
        s.len--;
    return s;
}

static bool span_is(Span s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.data, word, s.len) == 0;
}

/* Cuts the part up to the separator off *rest. */
static Span span_next(Span *rest, char separator)
{
    const char *end = memchr(rest->data, separator, rest->len);
    Span part = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    size_t used = part.len + (end ? 1 : 0);

    rest->data += used;
    rest->len -= used;
    return span_trim(part);
}

static Span span_of(const char *s)
{
    return (Span){s, strlen(s)};
}

bool mcp_content_type_is_json(const char *content_type)
{
    if (!content_type)
        return false;
    Span rest = span_of(content_type);
    return span_is(span_next(&rest, ';'), "application/json");
}

/* "q=0", "q=0.", "q=0.000" */
static bool parameter_refuses(Span parameter)
{
    Span name = span_next(&parameter, '=');

    if (!span_is(name, "q") || parameter.len == 0 || parameter.data[0] != '0')
        return false;
    for (size_t i = 1; i < parameter.len; i++)
        if (parameter.data[i] != '.' && parameter.data[i] != '0')
            return false;
    return true;
}

static void accept_item(Span item, McpAccept *accept)
{
    Span type = span_next(&item, ';');

    while (item.len > 0)
        if (parameter_refuses(span_next(&item, ';')))
            return;
    bool any = span_is(type, "*/*") || span_is(type, "*");
    accept->json |= any || span_is(type, "application/json") || span_is(type, "application/*");
    accept->sse |= any || span_is(type, "text/event-stream") || span_is(type, "text/*");
}

McpAccept mcp_accept_parse(const char *accept)
{
    McpAccept result = {false, false};

    Span rest = span_trim(span_of(accept ? accept : ""));
    if (rest.len == 0)
        return (McpAccept){true, true};
    while (rest.len > 0)
        accept_item(span_next(&rest, ','), &result);
    return result;
}

static bool is_sentinel(Span s)
{
    size_t begin = strlen(SENTINEL_BEGIN);
    size_t end = strlen(SENTINEL_END);

    return s.len >= begin + end && memcmp(s.data, SENTINEL_BEGIN, begin) == 0 &&
           memcmp(s.data + s.len - end, SENTINEL_END, end) == 0;
}

bool mcp_header_matches(const char *header, const char *value, size_t value_len)
{
    _cleanup_buf_ Buf decoded = BUF_INIT(VALUE_MAX);
    Span s;

    if (!header || !value)
        return false;
    s = span_trim(span_of(header));
    if (s.len > VALUE_MAX)
        return false;
    if (is_sentinel(s)) {
        size_t begin = strlen(SENTINEL_BEGIN);
        if (str_base64_decode(&decoded, s.data + begin, s.len - begin - strlen(SENTINEL_END),
                              NULL) < 0)
            return false;
        s = (Span){buf_str(&decoded), decoded.len};
    }
    return s.len == value_len && memcmp(s.data, value, value_len) == 0;
}
