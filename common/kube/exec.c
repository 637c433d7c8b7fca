/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/exec.h"

#include "common/base/str.h"
#include "common/json/json.h"

#include <limits.h>

const char exec_close_stdin[2] = {(char)EXEC_CLOSE, EXEC_STDIN};

static int channel_take(ExecDemux *d, unsigned char c, Error **error)
{
    if (c != EXEC_STDOUT && c != EXEC_STDERR && c != EXEC_ERROR)
        return error_set(error, ERROR_INVALID, "the server wrote to channel %u", c);
    d->channel = c;
    return 0;
}

static int payload_take(ExecDemux *d, const char *data, size_t len, ExecDataFn fn, void *userdata,
                        Error **error)
{
    if (len == 0)
        return 0;
    if (d->channel != EXEC_ERROR) {
        fn((ExecChannel)d->channel, data, len, userdata);
        return 0;
    }
    (void)buf_append(&d->status, data, len);
    return buf_check(&d->status, "the exec status", error);
}

int exec_demux_feed(ExecDemux *d, const char *data, size_t len, bool first, bool last,
                    ExecDataFn fn, void *userdata, Error **error)
{
    int r = 0;

    if (first == d->in_message)
        return error_set(error, ERROR_INVALID, "the server's messages overlap");
    if (first)
        d->channel = -1;
    d->in_message = !last;
    if (len > 0 && d->channel < 0) {
        r = channel_take(d, (unsigned char)data[0], error);
        data++;
        len--;
    }
    return r < 0 ? r : payload_take(d, data, len, fn, userdata, error);
}

void exec_demux_done(ExecDemux *d)
{
    buf_done(&d->status);
}

static int exit_code_find(const JsonValue *status)
{
    const JsonValue *causes = json_path(status, "details.causes");

    for (size_t i = 0; i < json_array_len(causes); i++) {
        const JsonValue *cause = json_array_at(causes, i);
        const char *text = json_str(cause, "message");
        uint64_t code = 0;
        if (str_eq(json_str(cause, "reason"), "ExitCode") && text && str_to_u64(text, &code) == 0 &&
            code <= INT_MAX)
            return (int)code;
    }
    return -1;
}

int exec_status_parse(const char *text, size_t len, ExecStatus *ret, Error **error)
{
    _cleanup_json_ JsonValue *status = NULL;
    int r = json_parse(text, len, JSON_DEPTH_DEFAULT, JSON_PARSE_DEFAULT, &status, error);

    if (r < 0)
        return error_wrap(error, r, "exec status");
    const char *word = json_str(status, "status");
    if (!str_eq(word, "Success") && !str_eq(word, "Failure"))
        return error_set(error, ERROR_INVALID, "exec status: neither Success nor Failure");
    bool success = str_eq(word, "Success");
    *ret = (ExecStatus){
        .success = success,
        .exit_code = success ? 0 : exit_code_find(status),
        .reason = xstrdup_null(json_str(status, "reason")),
        .message = xstrdup_null(json_str(status, "message")),
    };
    return 0;
}

void exec_status_done(ExecStatus *s)
{
    free(TAKE_PTR(s->reason));
    free(TAKE_PTR(s->message));
}
