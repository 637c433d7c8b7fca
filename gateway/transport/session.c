/* SPDX-License-Identifier: Apache-2.0 */
/* One exec stream, from the request to its close. Everything here is on the WebSocket client's
 * thread. */
#include "common/base/str.h"
#include "common/kube/exec_url.h"
#include "common/net/crypto.h"
#include "gateway/transport/failure.h"
#include "gateway/transport/transport-internal.h"

#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES 4096 /* of the request line; the WebSocket client allows less */
#define CHUNK 32767         /* with the channel's byte: what the servers use */
#define AHEAD_MAX (256 * 1024)
#define HEAD_MAX (1024 * 1024) /* 128 KiB of command, five bytes for each, and the script */

static TransportJob *job_of(Session *s)
{
    return CONTAINER_OF(s, TransportJob, session);
}

static WsClient *ws_of(Session *s)
{
    return job_of(s)->transport->ws;
}

/* --- the end --- */

/* The stream is closed soon: by the server, as the script ends, else by us. */
static void session_linger(Session *s)
{
    ws_timer_stop(ws_of(s), &s->watch);
    if (!s->conn) {
        ws_timer_stop(ws_of(s), &s->deadline);
        return;
    }
    (void)ws_send(s->conn, exec_close_stdin, sizeof(exec_close_stdin));
    ws_timer_set(ws_of(s), &s->deadline, SESSION_LINGER_MS);
}

static void session_finish(Session *s)
{
    TransportJob *job = job_of(s);

    s->phase = SESSION_DONE;
    session_linger(s);
    completion_finished(job);
}

static void session_close(Session *s)
{
    if (s->conn)
        ws_close(s->conn);
}

static void session_end(Session *s)
{
    session_finish(s);
    session_close(s);
}

static void session_fail(Session *s, ErrorKind kind, const char *text)
{
    TransportJob *job = job_of(s);

    error_set(&job->error, kind, "cannot %s: %s", job->kind->verb, text);
    session_end(s);
}

static void flush_output(const char *data, size_t len, void *userdata)
{
    TransportJob *job = userdata;
    job->kind->output(job, data, len);
}

static void flush_messages(const char *data, size_t len, void *userdata)
{
    TransportJob *job = userdata;
    job->kind->messages(job, data, len);
}

static const TrailerDataFn stream_fns[2] = {flush_output, flush_messages};

/* The script was sent, and its end did not arrive. */
static void session_lost(Session *s, const char *why)
{
    TransportJob *job = job_of(s);

    if (!job->kind->is_command) {
        session_fail(s, ERROR_UNAVAILABLE, why);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        trailer_flush(&s->scans[i], stream_fns[i], job);
    kind_command_lost(job);
    job->ask_pod = job->container_id != NULL;
    session_end(s);
}

static void session_complete(Session *s)
{
    TransportJob *job = job_of(s);
    const char *line = s->scans[0].line + strspn(s->scans[0].line, " ");

    (void)job->kind->finish(job, line, &job->error);
    session_finish(s);
}

/* --- before the script --- */

/* Nothing ran: the Status says why, or nobody does. */
static void session_not_started(Session *s, const char *why)
{
    TransportJob *job = job_of(s);
    ExecStatus status = {.exit_code = -1};

    if (s->demux.status.len > 0 &&
        exec_status_parse(s->demux.status.data, s->demux.status.len, &status, NULL) == 0 &&
        !status.success) {
        (void)failure_of_status(&status, &job->error);
        job->ask_pod = job->error->kind == ERROR_UNAVAILABLE;
        session_end(s);
    } else {
        session_fail(s, ERROR_UNAVAILABLE, why);
    }
    exec_status_done(&status);
}

static void session_refused(Session *s, const Error *error)
{
    TransportJob *job = job_of(s);
    const TransportTarget target = {.ns = job->ns, .pod = job->pod, .container = job->container};

    if (error->http_status >= 400) {
        (void)failure_of_refusal(&target, error->http_status, &job->error);
        job->ask_pod = job->error->kind == ERROR_UNAVAILABLE || error->http_status == 400;
    } else {
        job->error = error_copy(error);
        (void)error_wrap(&job->error, 0, "cannot %s", job->kind->verb);
    }
    session_finish(s);
}

/* --- sending --- */

/* The next piece of the script, then of the upload. */
static size_t outgoing(const TransportJob *job, const char **ret)
{
    const Session *s = &job->session;
    bool head = s->sent < s->head.len;
    size_t offset = head ? s->sent : s->sent - s->head.len;
    size_t left = (head ? s->head.len : job->data_len) - offset;

    *ret = (head ? s->head.data : job->data) + offset;
    return left < CHUNK ? left : CHUNK;
}

static void session_pump(Session *s)
{
    char message[1 + CHUNK] = {EXEC_STDIN};
    const char *data = NULL;
    size_t len = 0;

    while (ws_queued(s->conn) < AHEAD_MAX && (len = outgoing(job_of(s), &data)) > 0) {
        memcpy(message + 1, data, len);
        if (ws_send(s->conn, message, len + 1) < 0)
            return; /* closing: closed() will tell */
        s->sent += len;
    }
}

/* Until then a line would become a part of the command. */
static bool script_is_sent(const Session *s)
{
    return s->sent >= s->head.len;
}

/* A line to the watchdog of a command, behind its script: "k" cancels, "t" is the time-out. */
static void session_stop_command(Session *s, const char *line)
{
    char message[4] = {EXEC_STDIN};

    if (s->stop_sent)
        return;
    s->stop_sent = true;
    (void)snprintf(message + 1, sizeof(message) - 1, "%s\n", line);
    (void)ws_send(s->conn, message, 1 + strlen(message + 1));
    ws_timer_set(ws_of(s), &s->watch, SESSION_KILL_MS);
}

static void session_run(Session *s)
{
    TransportJob *job = job_of(s);

    s->phase = SESSION_RUNNING;
    s->started_ms = clock_monotonic_ms(&clock_system);
    if (job->kind->is_command) {
        ws_timer_set(ws_of(s), &s->deadline, job->timeout_ms + COMMAND_LOST_MS);
        ws_timer_set(ws_of(s), &s->watch, job->timeout_ms + COMMAND_LATE_MS);
    } else {
        ws_timer_set(ws_of(s), &s->deadline, job->timeout_ms);
        ws_timer_set(ws_of(s), &s->watch, SESSION_PROGRESS_MS);
    }
    session_pump(s);
}

/* --- timers --- */

static void on_deadline(void *userdata)
{
    Session *s = userdata;
    TransportJob *job = job_of(s);

    if (s->phase == SESSION_DONE)
        session_close(s);
    else if (s->phase == SESSION_RUNNING && job->kind->is_command)
        session_lost(s, "");
    else if (s->phase == SESSION_RUNNING)
        session_fail(s, ERROR_TIMEOUT, "it took too long");
    else
        session_fail(s, ERROR_TIMEOUT, "no shell started in the sandbox in time");
}

static void on_watch(void *userdata)
{
    Session *s = userdata;

    if (s->phase == SESSION_DONE)
        return;
    if (s->phase < SESSION_RUNNING)
        session_not_started(s, "no shell started in the sandbox");
    else if (s->demux.status.len > 0)
        session_lost(s, "the script ended without its result");
    else if (!job_of(s)->kind->is_command || !script_is_sent(s))
        session_fail(s, ERROR_TIMEOUT, "nothing moves any more");
    else if (s->stop_sent)
        session_lost(s, "");
    else
        session_stop_command(s, "t");
}

/* The pod ends, and its grace is over. */
static void on_pod_end(void *userdata)
{
    Session *s = userdata;

    if (s->phase == SESSION_RUNNING)
        session_lost(s, "the sandbox's pod ended");
    else if (s->phase < SESSION_RUNNING)
        session_fail(s, ERROR_UNAVAILABLE, "the sandbox's pod ended");
}

/* --- what arrives --- */

static void hello_take(Session *s, const char *data, size_t len)
{
    size_t want = strlen(SCRIPT_HELLO) - s->hello_len, n = len < want ? len : want;

    if (memcmp(data, &SCRIPT_HELLO[s->hello_len], n) != 0 || len > want) {
        (void)failure_of_image(&job_of(s)->error,
                               "what runs as 'sh' in the sandbox's image is no POSIX shell");
        session_end(s);
        return;
    }
    s->hello_len += n;
    if (n == want)
        session_run(s);
}

static void on_stream(ExecChannel channel, const char *data, size_t len, void *userdata)
{
    Session *s = userdata;
    size_t i = channel == EXEC_STDOUT ? 0 : 1;

    if (s->phase == SESSION_DONE)
        return;
    if (s->phase == SESSION_GREETING) {
        if (i == 0)
            hello_take(s, data, len);
        return; /* what a shell prints to stderr before it runs anything is not the command's */
    }
    trailer_feed(&s->scans[i], data, len, stream_fns[i], job_of(s));
}

static void session_check(Session *s, bool message_ended)
{
    if (s->phase == SESSION_RUNNING && s->scans[0].complete && s->scans[1].complete)
        session_complete(s);
    else if (s->phase == SESSION_RUNNING && !job_of(s)->kind->is_command)
        ws_timer_set(ws_of(s), &s->watch, SESSION_PROGRESS_MS);
    if (s->phase < SESSION_DONE && s->demux.channel == EXEC_ERROR && message_ended)
        ws_timer_set(ws_of(s), &s->watch, SESSION_STATUS_MS); /* the close should follow */
}

static void on_message(WsConn *conn _unused_, const char *data, size_t len, bool first, bool last,
                       void *userdata)
{
    Session *s = userdata;
    _cleanup_error_ Error *error = NULL;

    if (s->phase == SESSION_DONE)
        return;
    if (exec_demux_feed(&s->demux, data, len, first, last, on_stream, s, &error) < 0) {
        if (s->phase == SESSION_RUNNING)
            session_lost(s, error->message);
        else if (s->phase < SESSION_DONE)
            session_fail(s, ERROR_UNAVAILABLE, error->message);
        return;
    }
    session_check(s, last);
}

static void on_opened(WsConn *conn _unused_, const char *subprotocol, void *userdata)
{
    Session *s = userdata;

    if (s->phase == SESSION_DONE) {
        session_close(s);
        return;
    }
    s->phase = SESSION_GREETING;
    ws_timer_set(ws_of(s), &s->deadline, SESSION_HELLO_MS);
    if (!str_eq(subprotocol, EXEC_SUBPROTOCOL))
        session_fail(s, ERROR_UNAVAILABLE, "the API server does not speak " EXEC_SUBPROTOCOL);
}

static void on_writable(WsConn *conn _unused_, void *userdata)
{
    Session *s = userdata;

    if (s->phase != SESSION_RUNNING)
        return;
    if (!job_of(s)->kind->is_command)
        ws_timer_set(ws_of(s), &s->watch, SESSION_PROGRESS_MS);
    session_pump(s);
}

static void session_release(Session *s)
{
    ws_timer_stop(ws_of(s), &s->deadline);
    ws_timer_stop(ws_of(s), &s->watch);
    ws_timer_stop(ws_of(s), &s->pod_end);
    list_remove(&s->link);
    completion_released(job_of(s));
}

static void on_closed(WsConn *conn _unused_, const Error *error, void *userdata)
{
    Session *s = userdata;
    const char *why = error ? error->message : "the stream ended early";

    s->conn = NULL;
    if (s->phase == SESSION_OPENING && error)
        session_refused(s, error);
    else if (s->phase < SESSION_RUNNING)
        session_not_started(s, why);
    else if (s->phase == SESSION_RUNNING)
        session_lost(s, why);
    session_release(s);
}

/* --- the start --- */

static const WsHandlers handlers = {
    .opened = on_opened, .message = on_message, .writable = on_writable, .closed = on_closed};

static void random_hex(char *out, size_t digits)
{
    unsigned char bytes[SCRIPT_NONCE_LEN / 2];

    crypto_random(bytes, digits / 2);
    str_hex(bytes, digits / 2, out);
}

static void session_init(TransportJob *job)
{
    Session *s = &job->session;
    char nonce[SCRIPT_NONCE_LEN + 1];

    *s = (Session){
        .demux = EXEC_DEMUX_INIT,
        .head = BUF_INIT(HEAD_MAX),
        .kept = {OUTPUT_KEEPER_INIT(TRANSPORT_OUTPUT_MAX),
                 OUTPUT_KEEPER_INIT(TRANSPORT_OUTPUT_MAX)},
        .content = BUF_INIT(job->limit + 1),
        .messages = BUF_INIT(MESSAGES_MAX),
        .deadline = {.fn = on_deadline, .userdata = s},
        .watch = {.fn = on_watch, .userdata = s},
        .pod_end = {.fn = on_pod_end, .userdata = s},
    };
    random_hex(nonce, SCRIPT_NONCE_LEN);
    random_hex(s->id, SCRIPT_ID_LEN);
    trailer_init(&s->scans[0], nonce);
    trailer_init(&s->scans[1], nonce);
    listing_init(&s->listing, s->id, job->limit);
    script_append(&s->head, job->kind->script);
    script_param(&s->head, nonce);
    script_param(&s->head, s->id);
    job->kind->params(job, &s->head);
    list_push(&job->transport->sessions, &s->link);
}

static int session_connect(Session *s, Error **error)
{
    TransportJob *job = job_of(s);
    const char *const command[] = {"sh", "-c", job->transport->bootstrap};
    const KubeExec exec = {
        .ns = job->ns,
        .pod = job->pod,
        .container = job->container,
        .command = command,
        .n_command = ARRAY_SIZE(command),
        .stdin_ = true,
        .stdout_ = true,
        .stderr_ = true,
    };
    _cleanup_buf_ Buf path = BUF_INIT(PATH_MAX_BYTES);

    kube_exec_path(&path, &exec);
    int r = buf_check(&s->head, "the script with its parameters", error);
    if (r >= 0)
        r = buf_check(&path, "the exec request", error);
    const WsConnectOptions options = {
        .path = buf_str(&path), .subprotocols = EXEC_SUBPROTOCOL, .bearer_token = job->token};
    return r < 0 ? r : ws_connect(job->transport->ws, &options, &handlers, s, &s->conn, error);
}

void session_start(void *userdata)
{
    TransportJob *job = userdata;
    Session *s = &job->session;
    _cleanup_error_ Error *error = NULL;

    session_init(job);
    if (atomic_load(&job->cancelled)) {
        session_fail(s, ERROR_CANCELLED, "it was cancelled");
        session_release(s);
    } else if (session_connect(s, &error) < 0) {
        session_refused(s, error);
        session_release(s);
    }
}

/* --- cancelling --- */

static void session_cancel(Session *s)
{
    TransportJob *job = job_of(s);

    if (s->phase == SESSION_RUNNING && job->kind->is_command && script_is_sent(s))
        session_stop_command(s, "k");
    else if (s->phase < SESSION_DONE) /* ends without effect as its stdin ends */
        session_fail(s, ERROR_CANCELLED, "it was cancelled");
}

static void session_end_by(Session *s, int64_t end_ms)
{
    int64_t left_ms = end_ms - clock_monotonic_ms(&clock_system);

    if (end_ms != 0 && s->phase < SESSION_DONE && !heap_has(&s->pod_end.heap))
        ws_timer_set(ws_of(s), &s->pod_end, left_ms);
}

void session_scan(void *userdata)
{
    Transport *t = userdata;

    list_foreach_safe (link, &t->sessions) {
        Session *s = LIST_ENTRY(link, Session, link);
        session_end_by(s, atomic_load(&job_of(s)->end_ms));
        if (atomic_load(&job_of(s)->cancelled))
            session_cancel(s);
    }
}

void session_free(TransportJob *job)
{
    Session *s = &job->session;

    exec_demux_done(&s->demux);
    buf_done(&s->head);
    output_done(&s->kept[0]);
    output_done(&s->kept[1]);
    buf_done(&s->content);
    buf_done(&s->messages);
    listing_done(&s->listing);
}
