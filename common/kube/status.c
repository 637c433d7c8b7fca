/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "common/kube/client.h"

#include <stdio.h>
#include <string.h>

#define STATUS_PARSE_MAX ((size_t)1024 * 1024)
#define STATUS_DEPTH 32
#define PLAIN_TEXT_MAX 200

/* --- kinds --- */

typedef struct StatusKind {
    int status;
    const char *reason; /* NULL: any */
    ErrorKind kind;
} StatusKind;

static const StatusKind status_kinds[] = {
    {400, "Expired", ERROR_GONE},
    {400, NULL, ERROR_INVALID},
    {401, NULL, ERROR_UNAUTHENTICATED},
    {403, NULL, ERROR_DENIED},
    {404, NULL, ERROR_NOT_FOUND},
    {405, NULL, ERROR_INVALID},
    {406, NULL, ERROR_INVALID},
    {408, NULL, ERROR_TIMEOUT},
    {409, "AlreadyExists", ERROR_EXISTS},
    {409, NULL, ERROR_CONFLICT},
    {410, NULL, ERROR_GONE},
    {413, NULL, ERROR_TOO_LARGE},
    {415, NULL, ERROR_INVALID},
    {422, NULL, ERROR_INVALID},
    {429, NULL, ERROR_EXHAUSTED},
    {504, "Timeout", ERROR_TIMEOUT},
};

static ErrorKind status_to_kind(int status, const char *reason)
{
    for (size_t i = 0; i < ARRAY_SIZE(status_kinds); i++) {
        const StatusKind *k = &status_kinds[i];
        if (k->status == status && (!k->reason || str_eq(k->reason, reason)))
            return k->kind;
    }
    if (status >= 500)
        return ERROR_UNAVAILABLE;
    return status >= 400 ? ERROR_INVALID : ERROR_UNAVAILABLE;
}

/* --- what the path names --- */

typedef struct PathWords {
    char resource[256]; /* "pods/exec", "sandboxclaims.extensions.agents.x-k8s.io" */
    char ns[64];
} PathWords;

typedef struct Span {
    const char *at;
    size_t len;
} Span;

static Span next_part(const char **path)
{
    const char *at = *path + (**path == '/');
    size_t len = strcspn(at, "/?");
    *path = at + len;
    return (Span){at, len};
}

static bool span_eq(Span s, const char *word)
{
    return strlen(word) == s.len && memcmp(s.at, word, s.len) == 0;
}

static PathWords path_words(const char *path)
{
    PathWords words = {0};
    Span group = {"", 0};
    if (span_eq(next_part(&path), "apis"))
        group = next_part(&path);
    next_part(&path); /* the version */
    Span resource = next_part(&path);
    if (span_eq(resource, "namespaces") && *path == '/') {
        Span ns = next_part(&path);
        (void)snprintf(words.ns, sizeof(words.ns), "%.*s", (int)ns.len, ns.at);
        resource = next_part(&path);
        if (resource.len == 0) /* a namespace itself */
            resource = (Span){"namespaces", strlen("namespaces")};
    }
    next_part(&path); /* the name */
    Span sub = next_part(&path);
    (void)snprintf(words.resource, sizeof(words.resource), "%.*s%s%.*s%s%.*s", (int)resource.len,
                   resource.at, sub.len ? "/" : "", (int)sub.len, sub.at, group.len ? "." : "",
                   (int)group.len, group.at);
    return words;
}

/* --- messages --- */

static int set_denied(Error **error, const char *verb, const char *path, const char *message)
{
    PathWords words = path_words(path);
    int r = error_set(error, ERROR_DENIED, "may not %s %s%s%s: %s", verb, words.resource,
                      words.ns[0] ? " in namespace " : "", words.ns, message);
    bool admission = strstr(message, "admission webhook") || strstr(message, "violates ") ||
                     strstr(message, "is being terminated");
    if (admission)
        return r;
    return error_hint(error, r, "a Role or ClusterRole has to grant the verb \"%s\" on \"%s\"%s%s",
                      verb, words.resource, words.ns[0] ? " in namespace " : "", words.ns);
}

static int set_quota(Error **error, const char *verb, const char *message)
{
    int r = error_set(error, ERROR_EXHAUSTED, "%s: %s", verb, message);
    return error_hint(error, r, "delete what is not needed any more, or raise the ResourceQuota");
}

static void set_status(Error **error, const char *verb, const char *path, int http_status,
                       const char *reason, const char *message)
{
    ErrorKind kind = status_to_kind(http_status, reason);
    if (kind == ERROR_DENIED && strstr(message, "exceeded quota"))
        set_quota(error, verb, message);
    else if (kind == ERROR_DENIED)
        set_denied(error, verb, path, message);
    else
        error_set(error, kind, "%s: %s", verb, message);
}

/* The first line of an answer that is no Status, or a sentence about its status code. */
static char *plain_message(int http_status, const char *body, size_t len)
{
    size_t n = 0;
    while (n < len && n < PLAIN_TEXT_MAX && body[n] != '\n' && body[n] != '\0')
        n++;
    if (n == 0 || body[0] == '<')
        return xasprintf("the API server answered %d", http_status);
    return xasprintf("the API server answered %d: %.*s", http_status, (int)n, body);
}

static JsonValue *parse_status(const char *body, size_t len)
{
    JsonValue *status = NULL;
    if (len == 0 || len > STATUS_PARSE_MAX || body[0] != '{')
        return NULL;
    if (json_parse(body, len, STATUS_DEPTH, JSON_PARSE_DEFAULT, &status, NULL) < 0)
        return NULL;
    return status;
}

Error *kube_status_error(const char *verb, const char *path, int http_status, const char *body,
                         size_t len, int64_t retry_after_ms)
{
    Error *error = NULL;
    _cleanup_json_ JsonValue *status = parse_status(body, len);
    const char *reason = json_str(status, "reason");
    const char *said = json_str(status, "message");
    _cleanup_free_ char *plain =
        str_empty(said) ? plain_message(http_status, body, status ? 0 : len) : NULL;
    set_status(&error, verb, path, http_status, reason, plain ? plain : said);
    error->http_status = http_status;
    str_replace(&error->reason, reason);
    int64_t details_s = json_int(status, "details.retryAfterSeconds", 0);
    if (retry_after_ms <= 0 && details_s > 0 && details_s < INT32_MAX / 1000)
        retry_after_ms = details_s * 1000;
    error->retry_after_ms = retry_after_ms > INT32_MAX ? INT32_MAX : (int)retry_after_ms;
    return error;
}
