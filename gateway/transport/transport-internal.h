/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the transport share. Two threads: the gateway's loop has the queues, the
 * callbacks and the life of jobs; the WebSocket client's thread has the sessions. A job is the
 * loop's until it is started, the session's until it is finished, then the loop's again; it lives
 * until its stream is closed as well.
 */
#pragma once

#include "common/base/hashmap.h"
#include "common/base/list.h"
#include "common/kube/exec.h"
#include "common/net/websocket.h"
#include "gateway/transport/listing.h"
#include "gateway/transport/output.h"
#include "gateway/transport/trailer.h"
#include "gateway/transport/transport.h"

#include <pthread.h>
#include <stdatomic.h>

#define SESSION_HELLO_MS 15000    /* from the open stream to the shell's hello */
#define SESSION_PROGRESS_MS 30000 /* a file that does not move for so long is stuck */
#define SESSION_KILL_MS 5000      /* from the kill to the command's end */
#define SESSION_STATUS_MS 2000    /* from the Status to the close */
#define SESSION_LINGER_MS 1000    /* from the result to our own close */
#define COMMAND_LATE_MS 2000      /* beyond the time-out: the sandbox's own watchdog failed */
#define COMMAND_LOST_MS 30000     /* beyond the time-out: the command is given up */
#define MESSAGES_MAX 16384        /* what tools print, of a file job */

typedef struct JobKind JobKind;

typedef enum SessionPhase {
    SESSION_OPENING,  /* nothing is sent */
    SESSION_GREETING, /* open, waiting for the shell's hello */
    SESSION_RUNNING,  /* the script is sent, or on its way */
    SESSION_DONE,     /* the job is finished, the stream is about to close */
} SessionPhase;

/* The WebSocket client's thread alone. */
typedef struct Session {
    List link; /* in Transport.sessions */
    SessionPhase phase;
    WsConn *conn;
    ExecDemux demux;
    size_t hello_len;
    char id[SCRIPT_ID_LEN + 1];
    TrailerScan scans[2]; /* stdout, stderr */
    Buf head;             /* script and parameters */
    size_t sent;          /* of the head, then of the upload */
    bool stop_sent;
    int64_t started_ms;
    LoopTimer deadline, watch, pod_end;
    /* what is collected; which of them depends on the kind */
    OutputKeeper kept[2];
    Buf content;
    Buf messages;
    Listing listing;
} Session;

typedef struct ContainerQueue {
    char *key;
    unsigned running;
    List waiting; /* of TransportJob.queued */
    size_t n_waiting;
} ContainerQueue;

struct TransportJob {
    /* fixed from the start */
    Transport *transport;
    const JobKind *kind;
    char *ns, *pod, *container, *container_id;
    char *subject; /* the command, or the path */
    char *data;    /* of an upload */
    size_t data_len;
    uint64_t limit; /* bytes of a download, entries of a list */
    int64_t timeout_ms;

    /* any thread */
    atomic_bool cancelled;
    atomic_llong end_ms; /* monotonic: ended by then, as the pod ends; 0: no such limit */

    /* the loop */
    List link; /* in Transport.jobs */
    List queued;
    ContainerQueue *queue;
    bool slot; /* counts in queue->running */
    bool restarted, delivered, released;
    bool again; /* once its stream is gone */
    TransportDoneFn done;
    void *userdata;
    KubeCall *question; /* what the pod says about a failure */
    LoopTimer ask_again;
    unsigned asked;
    int64_t answer_by_ms; /* monotonic */

    /* handed over with the job */
    char *token;
    TransportResult result;
    Error *error;
    bool ask_pod; /* the pod may know more about the error, or the lost end */

    /* under Transport.lock */
    List finished_link, released_link;

    Session session;
};

struct Transport {
    Loop *loop;
    KubeClient *kube;
    WsClient *ws;
    char *bootstrap;

    /* the loop */
    List jobs;
    size_t n_jobs;
    Hashmap *queues; /* of ContainerQueue by "ns/pod/container" */
    char *ca_pem;    /* as the WebSocket client has it */
    LoopTimer drain; /* for jobs that end without a session */
    LoopTimer scan;  /* again, where the other thread's queue was full */

    /* the WebSocket client's thread */
    List sessions;
    LoopTimer wake_again;

    pthread_mutex_t lock; /* finished, released, woken */
    List finished, released;
    bool woken;
};

/* --- kind.c --- */
struct JobKind {
    const char *verb; /* for messages: "cannot … the file" */
    ScriptName script;
    bool is_command;
    /* Appends the parameters. */
    void (*params)(TransportJob *job, Buf *out);
    /* stdout and stderr of the script. */
    void (*output)(TransportJob *job, const char *data, size_t len);
    void (*messages)(TransportJob *job, const char *data, size_t len);
    /* The trailer arrived: fills job->result. */
    int (*finish)(TransportJob *job, const char *trailer, Error **error);
};
extern const JobKind kind_command, kind_upload, kind_download, kind_list, kind_exists;
/* The command's end was not seen. */
void kind_command_lost(TransportJob *job);
/* The pod tells what that was. */
void kind_command_oom(TransportJob *job);
void transport_result_done(TransportResult *r);

/* --- session.c: the WebSocket client's thread --- */
void session_start(void *job);
/* Looks which running jobs were cancelled, and which got an end. */
void session_scan(void *transport);
void session_free(TransportJob *job);

/* --- completion.c --- */
/* From a session: the result is there; the stream is gone. */
void completion_finished(TransportJob *job);
void completion_released(TransportJob *job);
/* Both at once, from the loop, for a job that never had a session. */
void completion_without_session(TransportJob *job);
/* The loop: takes all that are ready. */
typedef struct Completions {
    List finished, released;
} Completions;
void completions_take(Transport *t, Completions *ret);

/* --- question.c: the loop --- */
/* Asks the pod where it may know more; job_deliver() or job_again() follows. False: nothing is
 * asked. */
bool question_ask(TransportJob *job);
void question_drop(TransportJob *job);

/* --- transport.c: the loop --- */
void job_deliver(TransportJob *job);
/* Nothing ran: the same job, once more. */
void job_again(TransportJob *job);
void transport_drain(void *transport);
