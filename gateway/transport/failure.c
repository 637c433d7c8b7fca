/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/failure.h"

#include "common/base/clock.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

#define QUOTED_MAX 200       /* of a foreign text in a message */
#define CLOCKS_APART_MS 2000 /* finishedAt is in whole seconds, of another machine's clock */

/* --- what to do next --- */

/* Refused by the sandbox: for the caller to avoid, where ERROR_DENIED means a right in the cluster.
 */
#define ANOTHER_PATH                                                                               \
    "Take a path that the sandbox's user may use, such as one in /tmp or in the working directory"

static int path_error(Error **error, ErrorKind kind, const char *path, const char *meaning,
                      const char *next)
{
    int r = error_set(error, kind, "'%s': %s", path, meaning);

    return next ? error_hint(error, r, "%s", next) : r;
}

int failure_of_image(Error **error, const char *meaning)
{
    int r = error_set(error, ERROR_INVALID, "%s", meaning);

    return error_hint(error, r,
                      "It is the image that lacks it: call create_sandbox with another warm pool");
}

/* --- what tools print --- */

typedef struct ToolMessage {
    const char *ending; /* of the last line; the C locale's text */
    ErrorKind kind;
    const char *meaning;
    const char *next; /* or NULL */
} ToolMessage;

static const ToolMessage tool_messages[] = {
    {"No such file or directory", ERROR_NOT_FOUND, "there is no such file or directory", NULL},
    {"nonexistent directory", ERROR_NOT_FOUND, "there is no such directory", NULL},
    {"Directory nonexistent", ERROR_NOT_FOUND, "there is no such directory", NULL},
    {"Not a directory", ERROR_NOT_FOUND, "a part of the path is not a directory", NULL},
    {"File exists", ERROR_INVALID, "a part of the path is not a directory", NULL},
    {"Permission denied", ERROR_INVALID, "permission denied in the sandbox", ANOTHER_PATH},
    {"Operation not permitted", ERROR_INVALID, "the sandbox does not permit it", ANOTHER_PATH},
    {"Read-only file system", ERROR_INVALID, "the file system is read-only", ANOTHER_PATH},
    {"No space left on device", ERROR_EXHAUSTED, "no space is left in the sandbox", NULL},
    {"Disk quota exceeded", ERROR_EXHAUSTED, "the disk quota is exceeded", NULL},
    {"Quota exceeded", ERROR_EXHAUSTED, "the disk quota is exceeded", NULL},
    {"File too large", ERROR_TOO_LARGE, "the file system does not hold a file of this size", NULL},
    {"Is a directory", ERROR_INVALID, "is a directory", NULL},
    {"File name too long", ERROR_INVALID, "the name is too long", NULL},
    {"Filename too long", ERROR_INVALID, "the name is too long", NULL},
    {"Too many levels of symbolic links", ERROR_INVALID, "the links lead in a circle", NULL},
    {"Symbolic link loop", ERROR_INVALID, "the links lead in a circle", NULL},
    {"Device or resource busy", ERROR_INVALID, "a mounted file cannot be replaced", NULL},
    {"Resource busy", ERROR_INVALID, "a mounted file cannot be replaced", NULL},
    {"Input/output error", ERROR_UNAVAILABLE, "the disk reports an error", NULL},
    {"I/O error", ERROR_UNAVAILABLE, "the disk reports an error", NULL},
};

/* The last line that is not empty: in a path there may be any text, the reason comes at the end. */
static const char *last_line(const char *text, size_t *ret_len)
{
    size_t end = strlen(text);

    while (end > 0 && strchr(" \n\r", text[end - 1]))
        end--;
    const char *start = memrchr(text, '\n', end);
    start = start ? start + 1 : text;
    *ret_len = (size_t)(text + end - start);
    return start;
}

static const ToolMessage *tool_message_find(const char *messages)
{
    size_t len = 0;
    const char *line = last_line(messages, &len);

    for (size_t i = 0; i < ARRAY_SIZE(tool_messages); i++) {
        size_t n = strlen(tool_messages[i].ending);
        if (len >= n && memcmp(line + len - n, tool_messages[i].ending, n) == 0)
            return &tool_messages[i];
    }
    return NULL;
}

bool failure_is_absence(const char *messages)
{
    const ToolMessage *m = tool_message_find(messages);

    return m && (m->kind == ERROR_NOT_FOUND || str_ends_with(m->meaning, "in a circle"));
}

const char *failure_path(const char *path, char out[FAILURE_PATH_MAX])
{
    static const char cut[] = "...";
    size_t len = strlen(path), room = FAILURE_PATH_MAX - sizeof(cut);
    const char *end = len <= room ? path : path + len - room;

    while (end != path && ((unsigned char)*end & 0xC0) == 0x80)
        end++; /* not from within a character on */
    (void)snprintf(out, FAILURE_PATH_MAX, "%s%s", end == path ? "" : cut, end);
    return out;
}

static int failure_of_messages(const char *path, const char *messages, Error **error)
{
    const ToolMessage *m = tool_message_find(messages);
    size_t len = 0;
    const char *line = last_line(messages, &len);

    if (m)
        return path_error(error, m->kind, path, m->meaning, m->next);
    if (len == 0)
        return error_set(error, ERROR_UNAVAILABLE, "'%s': the sandbox's tools failed", path);
    return error_set(error, ERROR_INVALID, "'%s': the sandbox says: %.*s", path,
                     (int)(len < QUOTED_MAX ? len : QUOTED_MAX), line);
}

/* --- words of the scripts --- */

typedef struct Word {
    const char *word;
    ErrorKind kind;
    const char *meaning;
    const char *next; /* or NULL */
} Word;

static const Word words[] = {
    {"directory", ERROR_INVALID, "is a directory", NULL},
    {"not_directory", ERROR_INVALID, "is not a directory", NULL},
    {"special", ERROR_INVALID, "is not a regular file", NULL},
    {"loop", ERROR_INVALID, "the links lead in a circle", NULL},
    {"denied", ERROR_INVALID, "permission denied in the sandbox", ANOTHER_PATH},
    {"damaged", ERROR_UNAVAILABLE, "did not arrive whole; what was there before is unchanged",
     NULL},
};

static int no_tool(Error **error, const char *tool)
{
    int r = error_set(error, ERROR_INVALID, "the sandbox's image has no '%s'", tool);

    return error_hint(error, r,
                      "Call execute_command to do it with what the image has, or create_sandbox "
                      "with another warm pool");
}

int failure_of_word(const char *word, const char *whole_path, const char *messages, Error **error)
{
    char shown[FAILURE_PATH_MAX];
    const char *path = failure_path(whole_path, shown);

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_eq(words[i].word, word))
            return path_error(error, words[i].kind, path, words[i].meaning, words[i].next);
    if (str_starts_with(word, "large "))
        return error_set(error, ERROR_TOO_LARGE, "'%s': has %s bytes, that is too large", path,
                         word + strlen("large "));
    if (str_starts_with(word, "tool "))
        return no_tool(error, word + strlen("tool "));
    if (str_eq(word, "missing") || str_eq(word, "failed"))
        return failure_of_messages(path, messages, error);
    return error_set(error, ERROR_INTERNAL, "the sandbox answered '%.40s'", word);
}

/* --- the runtime --- */

#define NO_SHELL "the sandbox's image has no shell (sh), so nothing can be run in it"

typedef struct RuntimeMessage {
    const char *part, *also; /* both are in the message */
    ErrorKind kind;
    const char *meaning;
} RuntimeMessage;

static const RuntimeMessage runtime_messages[] = {
    {"executable file", "not found", ERROR_INVALID, NO_SHELL},
    {"exec: \"sh\"", "permission denied", ERROR_INVALID,
     "the sandbox's image has a shell that may not be executed"},
    {"stat sh", "no such file", ERROR_INVALID, NO_SHELL},
    {"chdir to cwd", "", ERROR_INVALID, "the image's working directory does not exist"},
    {"container not found", "", ERROR_UNAVAILABLE, "the sandbox's container is not running"},
    {"CONTAINER_EXITED", "", ERROR_UNAVAILABLE, "the sandbox's container has ended"},
    {"container is in", "state", ERROR_UNAVAILABLE, "the sandbox's container is not running"},
    {"is not running", "", ERROR_UNAVAILABLE, "the sandbox's container is not running"},
    {"error dialing backend", "", ERROR_UNAVAILABLE, "the sandbox's node does not answer"},
    {"cannot allocate memory", "", ERROR_UNAVAILABLE, "the sandbox has no memory left"},
    {"resource temporarily unavailable", "", ERROR_UNAVAILABLE,
     "the sandbox has reached its limit of processes"},
};

static int runtime_error(Error **error, const RuntimeMessage *m)
{
    if (m->kind == ERROR_INVALID)
        return failure_of_image(error, m->meaning);
    return error_set(error, m->kind, "%s", m->meaning);
}

int failure_of_status(const ExecStatus *status, Error **error)
{
    const char *message = status->message ? status->message : "";

    for (size_t i = 0; i < ARRAY_SIZE(runtime_messages); i++)
        if (strstr(message, runtime_messages[i].part) && strstr(message, runtime_messages[i].also))
            return runtime_error(error, &runtime_messages[i]);
    if (status->exit_code == 126 || status->exit_code == 127)
        return failure_of_image(error, NO_SHELL);
    if (status->exit_code == 137)
        return error_set(error, ERROR_UNAVAILABLE, "the shell was killed before it could start");
    return error_set(error, ERROR_UNAVAILABLE, "no shell could be started in the sandbox");
}

int failure_of_refusal(const TransportTarget *target, int http_status, Error **error)
{
    int r = 0;

    if (http_status == 403)
        r = error_set(error, ERROR_DENIED,
                      "the gateway may not get and create pods/exec in namespace '%s'", target->ns);
    else if (http_status == 404)
        r = error_set(error, ERROR_NOT_FOUND, "pod '%s/%s' is not there", target->ns, target->pod);
    else if (http_status == 401)
        r = error_set(error, ERROR_UNAVAILABLE,
                      "the API server does not accept the gateway's credentials");
    else if (http_status == 429)
        r = error_set(error, ERROR_EXHAUSTED, "the API server has too much to do");
    else
        r = error_set(error, ERROR_UNAVAILABLE,
                      "the API server could not start a command in pod '%s/%s' (HTTP %d)",
                      target->ns, target->pod, http_status);
    if (error && *error)
        (*error)->http_status = http_status;
    return r;
}

/* --- the pod --- */

static const JsonValue *container_status(const TransportTarget *target, const JsonValue *pod)
{
    const JsonValue *all = json_path(pod, "status.containerStatuses");

    for (size_t i = 0; i < json_array_len(all); i++) {
        const JsonValue *c = json_array_at(all, i);
        if (!target->container || str_eq(json_str(c, "name"), target->container))
            return c;
    }
    return NULL;
}

int failure_of_pod(const TransportTarget *target, const JsonValue *pod, Error **error)
{
    const char *phase = json_str(pod, "status.phase");
    const JsonValue *c = container_status(target, pod);
    const char *why = json_str(c, "state.waiting.reason");

    if (json_str(pod, "metadata.deletionTimestamp"))
        return error_set(error, ERROR_UNAVAILABLE, "pod '%s/%s' is being deleted", target->ns,
                         target->pod);
    if (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"))
        return error_set(error, ERROR_UNAVAILABLE, "pod '%s/%s' has ended (%s)", target->ns,
                         target->pod, phase);
    if (!why)
        why = json_str(c, "state.terminated.reason");
    if (why)
        return error_set(error, ERROR_UNAVAILABLE, "the sandbox's container is not running (%.60s)",
                         why);
    if (phase && !str_eq(phase, "Running"))
        return error_set(error, ERROR_UNAVAILABLE, "pod '%s/%s' is not running yet (%.20s)",
                         target->ns, target->pod, phase);
    if (!c && target->container)
        return error_set(error, ERROR_INVALID, "pod '%s/%s' has no container '%s'", target->ns,
                         target->pod, target->container);
    return 0;
}

/* How the container that the command ran in ended; NULL where that is not told. The id alone is not
 * enough: what is known of it may be older than the command, and the container as well. */
static const JsonValue *container_end(const TransportTarget *target, const JsonValue *pod,
                                      int64_t started_ms)
{
    static const char *const places[] = {"state.terminated", "lastState.terminated"};
    const JsonValue *c = container_status(target, pod);

    for (size_t i = 0; target->container_id && i < ARRAY_SIZE(places); i++) {
        const JsonValue *end = json_path(c, places[i]);
        const char *finished = json_str(end, "finishedAt");
        int64_t finished_ms = 0;
        if (str_eq(json_str(end, "containerID"), target->container_id) && finished &&
            time_parse_rfc3339(finished, &finished_ms, NULL) == 0 &&
            finished_ms > started_ms - CLOCKS_APART_MS)
            return end;
    }
    return NULL;
}

LossCause failure_of_loss(const TransportTarget *target, const JsonValue *pod, int64_t started_ms)
{
    const char *phase = json_str(pod, "status.phase");
    const JsonValue *end = container_end(target, pod, started_ms);

    if (str_eq(json_str(end, "reason"), "OOMKilled"))
        return LOSS_OOM;
    if (end || json_str(pod, "metadata.deletionTimestamp") || str_eq(phase, "Succeeded") ||
        str_eq(phase, "Failed"))
        return LOSS_ENDED;
    return LOSS_UNKNOWN;
}
