/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's side: requests are checked and queued per container, results are delivered. */
#include "gateway/transport/transport.h"

#include "common/base/contract.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "gateway/transport/failure.h"
#include "gateway/transport/script.h"
#include "gateway/transport/transport-internal.h"

#include <errno.h>
#include <string.h>

#define USER_AGENT "sandbox-gateway/" SANDBOX_VERSION
#define STREAMS_MAX 256
#define BOOTSTRAP_MAX 1024
#define SCAN_AGAIN_MS 10

static void queue_run(ContainerQueue *q);

/* --- jobs --- */

static void job_free(TransportJob *job)
{
    list_remove(&job->link);
    job->transport->n_jobs--;
    question_drop(job);
    if (job->token)
        explicit_bzero(job->token, strlen(job->token));
    free(job->token);
    session_free(job);
    transport_result_done(&job->result);
    error_free(job->error);
    free(job->ns);
    free(job->pod);
    free(job->container);
    free(job->container_id);
    free(job->subject);
    free(job->data);
    free(job);
}

static void job_settle(TransportJob *job)
{
    if (job->delivered && job->released)
        job_free(job);
}

/* Also where nobody was asked about a lost command, or a namesake of its pod has answered. */
static bool pod_has_ended(const TransportJob *job)
{
    return job->kind->is_command && job->result.ended == COMMAND_LOST &&
           atomic_load(&job->end_ms) != 0;
}

void job_deliver(TransportJob *job)
{
    job->delivered = true;
    if (pod_has_ended(job))
        job->result.container_ended = true;
    job->done(job->error ? NULL : &job->result, job->error, job->userdata);
    job_settle(job);
}

static void job_finished(TransportJob *job)
{
    if (!question_ask(job))
        job_deliver(job);
}

/* --- queues --- */

static ContainerQueue *queue_get(Transport *t, const TransportTarget *target)
{
    _cleanup_free_ char *key =
        xasprintf("%s/%s/%s", target->ns, target->pod, target->container ? target->container : "");
    ContainerQueue *q = hashmap_get(t->queues, key);

    if (!q) {
        q = xnew(ContainerQueue);
        list_init(&q->waiting);
        q->key = TAKE_PTR(key);
        (void)hashmap_put(t->queues, q->key, q);
    }
    return q;
}

static void queue_free(void *p)
{
    ContainerQueue *q = p;
    free(q->key);
    free(q);
}

static void queue_settle(Transport *t, ContainerQueue *q)
{
    if (q->running > 0 || q->n_waiting > 0)
        return;
    (void)hashmap_remove(t->queues, q->key);
    queue_free(q);
}

static void credentials_renew(Transport *t, const KubeConfig *config)
{
    _cleanup_error_ Error *error = NULL;

    if (str_eq(t->ca_pem, config->ca_pem))
        return;
    if (ws_client_set_tls(t->ws, config->ca_pem, config->client_cert_pem, config->client_key_pem,
                          &error) < 0) {
        log_error("cannot renew the trust of exec streams",
                  LOGF_STR("error", error_message(error)));
        return;
    }
    str_replace(&t->ca_pem, config->ca_pem);
}

static void job_start(TransportJob *job)
{
    Transport *t = job->transport;
    const KubeConfig *config = kube_client_config(t->kube);

    credentials_renew(t, config);
    str_replace(&job->token, config->token);
    if (ws_post(t->ws, session_start, job) == 0)
        return;
    error_set(&job->error, ERROR_UNAVAILABLE, "too many streams are waiting to be opened");
    completion_without_session(job);
}

static void queue_run(ContainerQueue *q)
{
    while (q->n_waiting > 0 && q->running < TRANSPORT_EXECS_PER_CONTAINER) {
        TransportJob *job = LIST_ENTRY(list_pop(&q->waiting), TransportJob, queued);
        q->n_waiting--;
        q->running++;
        job->slot = true;
        job_start(job);
    }
}

static void job_enqueue(TransportJob *job)
{
    ContainerQueue *q = job->queue;

    list_push(&q->waiting, &job->queued);
    q->n_waiting++;
    queue_run(q);
}

static void job_unslot(TransportJob *job)
{
    ContainerQueue *q = TAKE_PTR(job->queue);

    if (!q)
        return; /* it was dropped while it waited */
    if (job->slot)
        q->running--;
    job->slot = false;
    queue_run(q);
    queue_settle(job->transport, q);
}

void job_again(TransportJob *job)
{
    const TransportTarget target = {.ns = job->ns, .pod = job->pod, .container = job->container};

    job->restarted = true;
    job->ask_pod = false;
    job->error = error_free(job->error);
    job->again = !job->released;
    if (job->again)
        return; /* job_released() goes on */
    job->released = false;
    session_free(job);
    job->queue = queue_get(job->transport, &target);
    job_enqueue(job);
}

static void job_released(TransportJob *job)
{
    job->released = true;
    job_unslot(job);
    if (job->again)
        job_again(job);
    else
        job_settle(job);
}

void transport_drain(void *userdata)
{
    Transport *t = userdata;
    Completions ready;

    completions_take(t, &ready);
    for (List *l = NULL; (l = list_pop(&ready.finished));)
        job_finished(LIST_ENTRY(l, TransportJob, finished_link));
    for (List *l = NULL; (l = list_pop(&ready.released));)
        job_released(LIST_ENTRY(l, TransportJob, released_link));
}

/* A full queue of the other thread delays. */
static void scan_post(void *userdata)
{
    Transport *t = userdata;

    if (ws_post(t->ws, session_scan, t) == -ENOBUFS)
        loop_timer_set(t->loop, &t->scan, SCAN_AGAIN_MS);
}

/* --- life --- */

static int ws_open(Transport *t, Error **error)
{
    const KubeConfig *config = kube_client_config(t->kube);
    const WsClientOptions options = {
        .url = config->server,
        .ca_pem = config->ca_pem,
        .client_cert_pem = config->client_cert_pem,
        .client_key_pem = config->client_key_pem,
        .tls_server_name = config->tls_server_name,
        .insecure_skip_verify = config->insecure_skip_verify,
        .user_agent = USER_AGENT,
        .max_connections = STREAMS_MAX,
    };

    t->ca_pem = xstrdup_null(config->ca_pem);
    return ws_client_new(&options, &t->ws, error);
}

int transport_new(Loop *loop, KubeClient *kube, Transport **ret, Error **error)
{
    Transport *t = xnew(Transport);
    _cleanup_buf_ Buf bootstrap = BUF_INIT(BOOTSTRAP_MAX);

    t->loop = loop;
    t->kube = kube;
    t->queues = hashmap_new();
    t->drain = (LoopTimer){.fn = transport_drain, .userdata = t};
    t->scan = (LoopTimer){.fn = scan_post, .userdata = t};
    list_init(&t->jobs);
    list_init(&t->sessions);
    list_init(&t->finished);
    list_init(&t->released);
    pthread_mutex_init(&t->lock, NULL);
    script_bootstrap(&bootstrap);
    t->bootstrap = xstrdup(buf_str(&bootstrap));
    int r = ws_open(t, error);
    if (r < 0) {
        transport_free(t);
        return error_wrap(error, r, "exec streams");
    }
    *ret = t;
    return 0;
}

Transport *transport_free(Transport *t)
{
    if (!t)
        return NULL;
    t->ws = ws_client_free(t->ws); /* ends the sessions and their thread */
    loop_timer_stop(t->loop, &t->drain);
    loop_timer_stop(t->loop, &t->scan);
    while (!list_empty(&t->jobs))
        job_free(LIST_ENTRY(t->jobs.next, TransportJob, link));
    t->queues = hashmap_free_with(t->queues, queue_free);
    pthread_mutex_destroy(&t->lock);
    free(t->bootstrap);
    free(t->ca_pem);
    free(t);
    return NULL;
}

size_t transport_jobs(const Transport *t)
{
    return t->n_jobs;
}

/* --- requests --- */

static TransportJob *job_new(Transport *t, const JobKind *kind, const TransportTarget *target,
                             const char *subject, int64_t timeout_ms, TransportDoneFn done,
                             void *userdata)
{
    TransportJob *job = xnew(TransportJob);

    job->transport = t;
    job->kind = kind;
    job->ns = xstrdup(target->ns);
    job->pod = xstrdup(target->pod);
    job->container = xstrdup_null(target->container);
    job->container_id = xstrdup_null(target->container_id);
    job->subject = xstrdup(subject);
    job->timeout_ms = timeout_ms;
    job->done = done;
    job->userdata = userdata;
    list_push(&t->jobs, &job->link);
    t->n_jobs++;
    return job;
}

static int job_submit(TransportJob *job, const TransportTarget *target, TransportJob **ret,
                      Error **error)
{
    ContainerQueue *q = queue_get(job->transport, target);

    if (q->n_waiting >= TRANSPORT_QUEUE_PER_CONTAINER) {
        job_free(job);
        return error_set(error, ERROR_EXHAUSTED, "%d commands are waiting for this sandbox already",
                         TRANSPORT_QUEUE_PER_CONTAINER);
    }
    job->queue = q;
    *ret = job;
    job_enqueue(job);
    return 0;
}

int transport_command(Transport *t, const TransportTarget *target, const char *command,
                      int64_t timeout_ms, TransportDoneFn done, void *userdata, TransportJob **ret,
                      Error **error)
{
    CONTRACT(timeout_ms > 0);
    if (str_empty(command))
        return error_set(error, ERROR_INVALID, "the command is empty");
    if (strlen(command) > TRANSPORT_COMMAND_MAX)
        return error_set(error, ERROR_TOO_LARGE, "a command may have %d bytes, this one has %zu",
                         TRANSPORT_COMMAND_MAX, strlen(command));
    TransportJob *job = job_new(t, &kind_command, target, command, timeout_ms, done, userdata);
    return job_submit(job, target, ret, error);
}

static int path_check(const char *path, Error **error)
{
    if (str_empty(path))
        return error_set(error, ERROR_INVALID, "the path is empty");
    if (strlen(path) > TRANSPORT_PATH_MAX)
        return error_set(error, ERROR_INVALID, "a path may have %d bytes, this one has %zu",
                         TRANSPORT_PATH_MAX, strlen(path));
    return 0;
}

static int file_job(Transport *t, const JobKind *kind, const TransportTarget *target,
                    const char *path, int64_t timeout_ms, TransportDoneFn done, void *userdata,
                    TransportJob **ret_job, Error **error)
{
    CONTRACT(timeout_ms > 0);
    int r = path_check(path, error);
    if (r >= 0)
        *ret_job = job_new(t, kind, target, path, timeout_ms, done, userdata);
    return r;
}

/* Whatever is there or not: nothing but a directory has such a name. */
static int upload_path_check(const char *path, Error **error)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char shown[FAILURE_PATH_MAX];

    if (slash && str_empty(name))
        return error_set(error, ERROR_INVALID, "'%s': ends in '/', the name of the file is missing",
                         failure_path(path, shown));
    if (str_eq(name, ".") || str_eq(name, ".."))
        return error_set(error, ERROR_INVALID, "'%s': is a directory", failure_path(path, shown));
    return 0;
}

int transport_upload(Transport *t, const TransportTarget *target, const char *path,
                     const void *data, size_t len, int64_t timeout_ms, TransportDoneFn done,
                     void *userdata, TransportJob **ret, Error **error)
{
    TransportJob *job = NULL;
    int r;

    if (len > TRANSPORT_FILE_MAX)
        return error_set(error, ERROR_TOO_LARGE, "a file may have %d bytes, this one has %zu",
                         TRANSPORT_FILE_MAX, len);
    if ((r = upload_path_check(path, error)) < 0)
        return r;
    if ((r = file_job(t, &kind_upload, target, path, timeout_ms, done, userdata, &job, error)) < 0)
        return r;
    job->data = xmemdup(data, len);
    job->data_len = len;
    return job_submit(job, target, ret, error);
}

int transport_download(Transport *t, const TransportTarget *target, const char *path,
                       size_t max_bytes, int64_t timeout_ms, TransportDoneFn done, void *userdata,
                       TransportJob **ret, Error **error)
{
    TransportJob *job = NULL;
    int r = file_job(t, &kind_download, target, path, timeout_ms, done, userdata, &job, error);

    if (r < 0)
        return r;
    job->limit = max_bytes < TRANSPORT_FILE_MAX ? max_bytes : TRANSPORT_FILE_MAX;
    return job_submit(job, target, ret, error);
}

int transport_list(Transport *t, const TransportTarget *target, const char *path,
                   uint64_t max_entries, int64_t timeout_ms, TransportDoneFn done, void *userdata,
                   TransportJob **ret, Error **error)
{
    TransportJob *job = NULL;
    int r = file_job(t, &kind_list, target, path, timeout_ms, done, userdata, &job, error);

    if (r < 0)
        return r;
    job->limit = max_entries;
    return job_submit(job, target, ret, error);
}

int transport_exists(Transport *t, const TransportTarget *target, const char *path,
                     int64_t timeout_ms, TransportDoneFn done, void *userdata, TransportJob **ret,
                     Error **error)
{
    TransportJob *job = NULL;
    int r = file_job(t, &kind_exists, target, path, timeout_ms, done, userdata, &job, error);

    return r < 0 ? r : job_submit(job, target, ret, error);
}

/* In its container's queue, not started. */
static bool is_waiting(const TransportJob *job)
{
    return list_linked(&job->queued);
}

/* The queue is let go of at once: it may be gone before the job is. */
static void job_drop(TransportJob *job, ErrorKind kind, const char *why)
{
    ContainerQueue *q = TAKE_PTR(job->queue);

    list_remove(&job->queued);
    q->n_waiting--;
    queue_settle(job->transport, q);
    error_set(&job->error, kind, "cannot %s: %s", job->kind->verb, why);
    completion_without_session(job);
}

void transport_cancel(TransportJob *job)
{
    Transport *t = job->transport;

    if (atomic_exchange(&job->cancelled, true) || job->delivered)
        return;
    if (!is_waiting(job)) {
        scan_post(t);
        return;
    }
    job_drop(job, ERROR_CANCELLED, "it was cancelled");
}

void transport_pod_ends(Transport *t, const char *ns, const char *pod, int64_t grace_ms)
{
    long long end_ms = clock_monotonic_ms(&clock_system) + grace_ms;

    list_foreach (link, &t->jobs) {
        TransportJob *job = LIST_ENTRY(link, TransportJob, link);
        if (job->delivered || !str_eq(job->ns, ns) || !str_eq(job->pod, pod))
            continue;
        if (is_waiting(job))
            job_drop(job, ERROR_UNAVAILABLE, "the sandbox's pod ended");
        else
            atomic_store(&job->end_ms, end_ms);
    }
    scan_post(t);
}
