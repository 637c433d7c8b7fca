/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pod says about a job that could not start, or about a command whose end was not seen.
 * The first is asked once. The second a few times, as the kubelet writes the end of a container
 * into the status only after the streams have ended. Everything here is on the loop.
 */
#include "gateway/transport/failure.h"
#include "gateway/transport/transport-internal.h"

#define FAILURE_ANSWER_MS 5000
#define LOST_ASKS_MAX 4 /* at once and after 0.5, 1.5 and 3 s */
#define LOST_STEP_MS 500
#define LOST_ANSWER_MS 4000 /* from the first question, whatever the API server does */

static bool pod_ask(TransportJob *job, int64_t deadline_ms, HttpRetry retry);

static TransportTarget target_of(const TransportJob *job)
{
    return (TransportTarget){.ns = job->ns,
                             .pod = job->pod,
                             .container = job->container,
                             .container_id = job->container_id};
}

/* --- a failure --- */

static void failure_answered(TransportJob *job, const JsonValue *pod, const Error *error)
{
    const TransportTarget target = target_of(job);
    bool expired = job->error->http_status == 401;

    if (error && error->kind == ERROR_NOT_FOUND) {
        (void)failure_of_refusal(&target, 404, &job->error);
    } else if (!error && expired && !job->restarted) {
        job_again(job); /* the question was answered, so the credentials are good again */
        return;
    } else if (!error) {
        (void)failure_of_pod(&target, pod, &job->error);
    }
    job_deliver(job);
}

/* --- a lost command --- */

/* On the wall clock. */
static int64_t started_ms(const TransportJob *job)
{
    int64_t ago_ms = clock_monotonic_ms(&clock_system) - job->session.started_ms;

    return clock_realtime_ms(&clock_system) - ago_ms;
}

static bool lost_ask(TransportJob *job)
{
    int64_t left_ms = job->answer_by_ms - clock_monotonic_ms(&clock_system);

    job->asked++;
    return left_ms > 0 && !atomic_load(&job->cancelled) && pod_ask(job, left_ms, HTTP_RETRY_NEVER);
}

static void on_ask_again(void *userdata)
{
    if (!lost_ask(userdata))
        job_deliver(userdata);
}

static void lost_answered(TransportJob *job, const JsonValue *pod, const Error *error)
{
    const TransportTarget target = target_of(job);
    LossCause cause = LOSS_UNKNOWN;

    if (!error)
        cause = failure_of_loss(&target, pod, started_ms(job));
    else if (error->kind == ERROR_NOT_FOUND)
        cause = LOSS_ENDED;
    if (cause == LOSS_UNKNOWN && job->asked < LOST_ASKS_MAX && !atomic_load(&job->cancelled)) {
        job->ask_again = (LoopTimer){.fn = on_ask_again, .userdata = job};
        loop_timer_set(job->transport->loop, &job->ask_again, job->asked * LOST_STEP_MS);
        return;
    }
    if (cause == LOSS_OOM)
        kind_command_oom(job);
    job->result.container_ended = cause != LOSS_UNKNOWN;
    job_deliver(job);
}

/* --- the question --- */

static void on_pod(JsonValue *pod, const Error *error, void *userdata)
{
    TransportJob *job = userdata;

    job->question = NULL;
    if (job->error)
        failure_answered(job, pod, error);
    else
        lost_answered(job, pod, error);
}

static bool pod_ask(TransportJob *job, int64_t deadline_ms, HttpRetry retry)
{
    static const KubeResource pods = {
        .group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
    Transport *t = job->transport;
    _cleanup_free_ char *path = kube_path_dup(&pods, job->ns, job->pod, NULL);
    const KubeRequest request = {.verb = "get",
                                 .path = path,
                                 .deadline_ms = deadline_ms,
                                 .retry = retry,
                                 .on_done = on_pod,
                                 .userdata = job};

    return kube_send(t->kube, &request, &job->question, NULL) >= 0;
}

bool question_ask(TransportJob *job)
{
    if (!job->ask_pod || atomic_load(&job->cancelled))
        return false;
    if (job->error)
        return pod_ask(job, FAILURE_ANSWER_MS, HTTP_RETRY_SAFE);
    job->answer_by_ms = clock_monotonic_ms(&clock_system) + LOST_ANSWER_MS;
    return lost_ask(job);
}

void question_drop(TransportJob *job)
{
    if (job->question)
        job->question = kube_call_cancel(job->question);
    loop_timer_stop(job->transport->loop, &job->ask_again);
}
