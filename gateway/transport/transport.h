/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and files in a sandbox. Callers live on the gateway's loop thread; the work happens on
 * the transport's own thread; done is called on the loop thread, exactly once per job, also after a
 * cancel. This implementation is plain pods/exec (v5.channel.k8s.io): one exec request per job,
 * nothing needed in the image but a POSIX shell and the usual file tools (busybox or GNU).
 *
 * What comes back is recorded in-band by the script that ran in the sandbox (lengths, sums, exit
 * code), so a lost stream is never taken for success: a command whose end was not recorded has
 * `ended` = COMMAND_LOST, exit code 255; a file operation fails with ERROR_UNAVAILABLE. Only a lost
 * command reads its pod, for at most four seconds: the kernel may have killed its whole container
 * for lack of memory, then it is COMMAND_OOM.
 * At most TRANSPORT_EXECS_PER_CONTAINER run in one container at a time, the rest queue in order.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/kube/client.h"
#include "common/net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRANSPORT_EXECS_PER_CONTAINER 8
#define TRANSPORT_QUEUE_PER_CONTAINER 64 /* beyond: ERROR_EXHAUSTED */
#define TRANSPORT_OUTPUT_MAX (64 * 1024) /* per stream: 3/4 head, 1/4 tail, a marker between */
#define TRANSPORT_FILE_MAX (16 * 1024 * 1024)
#define TRANSPORT_COMMAND_MAX (128 * 1024 - 1) /* the kernel's limit for one argument */
#define TRANSPORT_PATH_MAX 4095

typedef struct Transport Transport;
typedef struct TransportJob TransportJob;

typedef struct TransportTarget {
    const char *ns, *pod, *container; /* container NULL: the server's default */
    /* Of the container as it was last seen running (status.containerStatuses[].containerID). NULL:
     * nothing is asked about a lost command. */
    const char *container_id;
} TransportTarget;

typedef enum CommandEnd {
    COMMAND_EXITED,
    COMMAND_SIGNALED,  /* exit_code = 128 + signal, as the shell passes it on */
    COMMAND_TIMED_OUT, /* 124; the process group was killed */
    COMMAND_OOM,       /* 137 and the memory controller's kill counter rose, or the pod says so */
    COMMAND_CANCELLED, /* 130 */
    COMMAND_LOST,      /* 255; the end was not seen: see container_ended */
    COMMAND_END_MAX,
} CommandEnd;
const char *command_end_to_string(CommandEnd end);

typedef struct OutputPart {
    char
        *data; /* not NUL-safe: use len. Head, marker and tail where truncated. May be any bytes. */
    size_t len;
    uint64_t total_bytes; /* what the command wrote */
    bool truncated;
} OutputPart;

typedef enum FileType {
    FILE_TYPE_FILE,
    FILE_TYPE_DIRECTORY,
    FILE_TYPE_OTHER,
    FILE_TYPE_MAX
} FileType;

typedef struct FileEntry {
    char *name; /* bytes as they are, NUL-terminated */
    uint64_t size;
    FileType type;
    double mod_time; /* POSIX seconds */
} FileEntry;

/* Which fields are set depends on the job. Owned by the transport, valid during done; a consumer
 * may take pointers out with TAKE_PTR. */
typedef struct TransportResult {
    /* command */
    CommandEnd ended;
    int exit_code;
    /* Where the end was not seen: true: the container is gone, or going; false: it may still run.
     */
    bool container_ended;
    OutputPart out, err;
    int64_t duration_ms;
    /* upload */
    uint64_t bytes_written;
    /* download: sha256-checked content */
    char *content;
    size_t content_len;
    /* list */
    FileEntry *entries;
    size_t n_entries;
    uint64_t total_entries;
    bool entries_truncated;
    /* exists */
    bool exists;
    FileType type;
} TransportResult;

/* error NULL: the job did what it was asked (for a command: it started; its end is in the result).
 * Otherwise nothing ran or the file is as it was: ERROR_NOT_FOUND (path; pod), ERROR_DENIED (the
 * right pods/exec is missing), ERROR_INVALID (directory where a file is wanted, no permission in
 * the sandbox, no shell in the image, …), ERROR_TOO_LARGE, ERROR_EXHAUSTED, ERROR_TIMEOUT,
 * ERROR_UNAVAILABLE. */
typedef void (*TransportDoneFn)(TransportResult *result, const Error *error, void *userdata);

int transport_new(Loop *loop, KubeClient *kube, Transport **ret, Error **error);
/* Ends all jobs; callbacks are not made, and what runs in sandboxes goes on until its time-out.
 * Call it after loop_run() returned: the loop is not run again. */
Transport *transport_free(Transport *t);

/* timeout_ms counts from the start of the command and is rounded up to seconds; it is enforced in
 * the sandbox, also where the stream is lost. The job's own deadline is 30 s more. At most
 * TRANSPORT_COMMAND_MAX bytes. Runs under `sh -c` in the container's working directory with an
 * empty stdin; its environment has SANDBOX_COMMAND_ID. The result comes when the shell ends:
 * background processes are not waited for, what they write later is dropped.
 *
 * A time-out or a cancel kills (SIGKILL) the command's process group and every process that has the
 * command's id in its environment, where /proc can be read. A process that changed both, or runs as
 * another user, is not reached. */
int transport_command(Transport *t, const TransportTarget *target, const char *command,
                      int64_t timeout_ms, TransportDoneFn done, void *userdata, TransportJob **ret,
                      Error **error);
/* Writes beside the target and renames, so a reader sees the old or the new file, whole. Parent
 * directories are made; mode and (where possible) owner of a file that was there are kept; links
 * are followed. data is copied. Length and SHA-256 are checked in the sandbox before the rename. */
int transport_upload(Transport *t, const TransportTarget *target, const char *path,
                     const void *data, size_t len, int64_t timeout_ms, TransportDoneFn done,
                     void *userdata, TransportJob **ret, Error **error);
/* Regular files only; links are followed. max_bytes at most TRANSPORT_FILE_MAX. */
int transport_download(Transport *t, const TransportTarget *target, const char *path,
                       size_t max_bytes, int64_t timeout_ms, TransportDoneFn done, void *userdata,
                       TransportJob **ret, Error **error);
/* Sorted by name (bytes); total_entries counts all, entries holds at most max_entries. Links show
 * what they lead to, loose ones themselves (FILE_TYPE_OTHER). */
int transport_list(Transport *t, const TransportTarget *target, const char *path,
                   uint64_t max_entries, int64_t timeout_ms, TransportDoneFn done, void *userdata,
                   TransportJob **ret, Error **error);
/* Links are followed: a loose one does not exist. Where it cannot be told (a folder that may not be
 * entered), an error. */
int transport_exists(Transport *t, const TransportTarget *target, const char *path,
                     int64_t timeout_ms, TransportDoneFn done, void *userdata, TransportJob **ret,
                     Error **error);
/* Asks for the end. A running command is killed and ends as COMMAND_CANCELLED (COMMAND_LOST where
 * the sandbox does not answer within five seconds); everything else with ERROR_CANCELLED. job must
 * not have been given to done yet; done follows, never from within this call. */
void transport_cancel(TransportJob *job);
/* The pod is being deleted, or gone: its jobs are ended (commands as COMMAND_LOST) where they are
 * not through within grace_ms. Without this a job lasts as long as its stream, which a pod's grace
 * period keeps open. */
void transport_pod_ends(Transport *t, const char *ns, const char *pod, int64_t grace_ms);
/* Jobs queued or running, for drain and metrics. */
size_t transport_jobs(const Transport *t);
