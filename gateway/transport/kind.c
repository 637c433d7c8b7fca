/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of job sends, collects and makes of it. */
#include "common/base/str.h"
#include "common/net/crypto.h"
#include "gateway/transport/checksum.h"
#include "gateway/transport/failure.h"
#include "gateway/transport/transport-internal.h"

#include <stdio.h>
#include <string.h>

#define EXIT_TIMED_OUT 124
#define EXIT_CANCELLED 130
#define EXIT_KILLED 137
#define EXIT_LOST 255
#define SIGNALS_MAX 64

static const char *const end_names[COMMAND_END_MAX] = {
    [COMMAND_EXITED] = "exited",       [COMMAND_SIGNALED] = "signaled",
    [COMMAND_TIMED_OUT] = "timed_out", [COMMAND_OOM] = "oom",
    [COMMAND_CANCELLED] = "cancelled", [COMMAND_LOST] = "lost",
};

const char *command_end_to_string(CommandEnd end)
{
    return (unsigned)end < COMMAND_END_MAX ? end_names[end] : "invalid";
}

void transport_result_done(TransportResult *r)
{
    free(r->out.data);
    free(r->err.data);
    free(r->content);
    for (size_t i = 0; r->entries && i < r->n_entries; i++)
        free(r->entries[i].name);
    free(r->entries);
    *r = (TransportResult){.exit_code = 0};
}

/* --- command --- */

static void command_params(TransportJob *job, Buf *out)
{
    /* Whole seconds, rounded up: POSIX sleep takes no fractions. */
    script_param_u64(out, (uint64_t)(job->timeout_ms + 999) / 1000);
    script_param(out, job->subject);
}

static void command_output(TransportJob *job, const char *data, size_t len)
{
    output_add(&job->session.kept[0], data, len);
}

static void command_messages(TransportJob *job, const char *data, size_t len)
{
    output_add(&job->session.kept[1], data, len);
}

static void part_fill(OutputPart *part, OutputKeeper *kept)
{
    part->total_bytes = kept->total;
    part->data = output_take(kept, &part->len, &part->truncated);
}

static void command_end(TransportJob *job, CommandEnd end, int exit_code)
{
    TransportResult *r = &job->result;
    Session *s = &job->session;

    r->ended = end;
    r->exit_code = exit_code;
    r->duration_ms = s->started_ms ? clock_monotonic_ms(&clock_system) - s->started_ms : 0;
    part_fill(&r->out, &s->kept[0]);
    part_fill(&r->err, &s->kept[1]);
}

void kind_command_lost(TransportJob *job)
{
    command_end(job, COMMAND_LOST, EXIT_LOST);
}

void kind_command_oom(TransportJob *job)
{
    job->result.ended = COMMAND_OOM;
    job->result.exit_code = EXIT_KILLED;
}

/* A shell passes the signal of a command on as 128 + its number, so that is what the number means,
 * whether the shell itself died or a command in it. */
static CommandEnd end_of_code(uint64_t code, bool kills_rose)
{
    if (code == EXIT_KILLED && kills_rose)
        return COMMAND_OOM;
    return code > 128 && code <= 128 + SIGNALS_MAX ? COMMAND_SIGNALED : COMMAND_EXITED;
}

/* "WHY CODE KILLS" */
static int command_finish(TransportJob *job, const char *trailer, Error **error)
{
    char why[32] = "", code[8] = "", kills[32] = "";
    uint64_t value = 0;

    if (sscanf(trailer, "%31s %7s %31s", why, code, kills) != 3 || str_to_u64(code, &value) < 0 ||
        value > 255)
        return error_set(error, ERROR_INTERNAL, "the sandbox answered '%.40s'", trailer);
    if (str_eq(why, "timed_out"))
        command_end(job, COMMAND_TIMED_OUT, EXIT_TIMED_OUT);
    else if (str_eq(why, "cancelled"))
        command_end(job, COMMAND_CANCELLED, EXIT_CANCELLED);
    else
        command_end(job, end_of_code(value, !str_eq(kills, "same")), (int)value);
    return 0;
}

/* --- files --- */

/* Relative paths are sent with "./", so that none looks like an option. */
static void path_params(TransportJob *job, Buf *out)
{
    if (job->subject[0] != '/')
        (void)buf_append_str(out, "./");
    script_param(out, job->subject);
}

static void messages_add(TransportJob *job, const char *data, size_t len)
{
    Buf *messages = &job->session.messages;
    size_t room = MESSAGES_MAX - messages->len;

    (void)buf_append(messages, data, len < room ? len : room);
}

static void output_ignore(TransportJob *job _unused_, const char *data _unused_,
                          size_t len _unused_)
{
}

static int word_failure(TransportJob *job, const char *word, Error **error)
{
    return failure_of_word(word, job->subject, buf_str(&job->session.messages), error);
}

static void upload_params(TransportJob *job, Buf *out)
{
    char hex[2 * SHA256_LEN + 1];

    path_params(job, out);
    script_param_u64(out, job->data_len);
    crypto_sha256_hex(job->data, job->data_len, hex, sizeof(hex) - 1);
    script_param(out, hex);
    script_param_u64(out, checksum_posix(job->data, job->data_len));
}

static int upload_finish(TransportJob *job, const char *trailer, Error **error)
{
    if (!str_eq(trailer, "ok"))
        return word_failure(job, trailer, error);
    job->result.bytes_written = job->data_len;
    return 0;
}

static void download_params(TransportJob *job, Buf *out)
{
    path_params(job, out);
    script_param_u64(out, job->limit);
}

static void download_output(TransportJob *job, const char *data, size_t len)
{
    (void)buf_append(&job->session.content, data, len);
}

static int download_finish(TransportJob *job, const char *trailer, Error **error)
{
    Session *s = &job->session;
    char path[FAILURE_PATH_MAX];

    if (!str_starts_with(trailer, "sha256sum ") && !str_starts_with(trailer, "cksum "))
        return word_failure(job, trailer, error);
    if (s->messages.len > 0) /* a tool failed in the middle, so the sum proves nothing */
        return word_failure(job, "failed", error);
    if (s->content.failed || s->content.len > job->limit)
        return error_set(error, ERROR_TOO_LARGE, "'%s': has more than %llu bytes",
                         failure_path(job->subject, path), (unsigned long long)job->limit);
    if (!checksum_line_matches(trailer, s->content.data, s->content.len))
        return error_set(error, ERROR_UNAVAILABLE,
                         "'%s': did not arrive whole, or changed while it was read",
                         failure_path(job->subject, path));
    job->result.content = buf_take(&s->content, &job->result.content_len);
    return 0;
}

static void list_output(TransportJob *job, const char *data, size_t len)
{
    listing_feed(&job->session.listing, data, len);
}

static int list_finish(TransportJob *job, const char *trailer, Error **error)
{
    TransportResult *r = &job->result;
    char path[FAILURE_PATH_MAX];

    if (!str_eq(trailer, "ok"))
        return word_failure(job, trailer, error);
    if (!listing_finish(&job->session.listing, &r->entries, &r->n_entries, &r->total_entries))
        return error_set(error, ERROR_UNAVAILABLE, "'%s': the listing did not arrive whole",
                         failure_path(job->subject, path));
    r->entries_truncated = r->total_entries > r->n_entries;
    return 0;
}

static int exists_finish(TransportJob *job, const char *trailer, Error **error)
{
    TransportResult *r = &job->result;

    if (str_starts_with(trailer, "yes ")) {
        const char *type = trailer + strlen("yes ");
        r->exists = true;
        r->type = str_eq(type, "directory") ? FILE_TYPE_DIRECTORY
                  : str_eq(type, "file")    ? FILE_TYPE_FILE
                                            : FILE_TYPE_OTHER;
        return 0;
    }
    if (str_eq(trailer, "missing") && failure_is_absence(buf_str(&job->session.messages)))
        return 0;
    return word_failure(job, trailer, error);
}

const JobKind kind_command = {
    .verb = "run the command",
    .script = SCRIPT_COMMAND,
    .is_command = true,
    .params = command_params,
    .output = command_output,
    .messages = command_messages,
    .finish = command_finish,
};
const JobKind kind_upload = {
    .verb = "write the file",
    .script = SCRIPT_UPLOAD,
    .params = upload_params,
    .output = output_ignore,
    .messages = messages_add,
    .finish = upload_finish,
};
const JobKind kind_download = {
    .verb = "read the file",
    .script = SCRIPT_DOWNLOAD,
    .params = download_params,
    .output = download_output,
    .messages = messages_add,
    .finish = download_finish,
};
const JobKind kind_list = {
    .verb = "list the directory",
    .script = SCRIPT_LIST,
    .params = path_params,
    .output = list_output,
    .messages = messages_add,
    .finish = list_finish,
};
const JobKind kind_exists = {
    .verb = "look for the file",
    .script = SCRIPT_EXISTS,
    .params = path_params,
    .output = output_ignore,
    .messages = messages_add,
    .finish = exists_finish,
};
