/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs jobs of the transport against a real pod and prints one line for each: for tests and for a
 * look at timings. Content goes from stdin (upload) and to stdout (download, command with -o).
 *
 *   exec_probe [-k KUBECONFIG] [-c CONTAINER] [-i CONTAINER_ID] [-t TIMEOUT_MS] [-n JOBS] \
 *       [-x CANCEL_MS] [-o] NAMESPACE POD run COMMAND | upload PATH | download PATH | list PATH |
 * exists PATH
 */
#include "common/base/log.h"
#include "common/base/str.h"
#include "gateway/transport/transport.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_READ_MAX (TRANSPORT_FILE_MAX + 1)
#define LIST_MAX 10000

typedef struct Probe {
    const char *kubeconfig, *verb, *subject;
    TransportTarget target;
    int64_t timeout_ms, cancel_ms;
    size_t jobs;
    bool print_output;
    Buf input;

    Loop *loop;
    Transport *transport;
    size_t open, failed;
    struct One *all;
    LoopTimer cancel;
} Probe;

typedef struct One {
    Probe *probe;
    TransportJob *job;
    int64_t start_ms;
} One;

static void print_list(const TransportResult *r)
{
    static const char *const types[FILE_TYPE_MAX] = {"file", "directory", "other"};

    for (size_t i = 0; i < r->n_entries; i++)
        printf("  %s %" PRIu64 " %.0f %s\n", types[r->entries[i].type], r->entries[i].size,
               r->entries[i].mod_time, r->entries[i].name);
}

static void print_result(const Probe *p, const TransportResult *r, int64_t took_ms)
{
    if (str_eq(p->verb, "run"))
        printf("ended=%s exit_code=%d out=%" PRIu64 "%s err=%" PRIu64 "%s duration_ms=%" PRId64
               " took_ms=%" PRId64 " container_ended=%d\n",
               command_end_to_string(r->ended), r->exit_code, r->out.total_bytes,
               r->out.truncated ? "+" : "", r->err.total_bytes, r->err.truncated ? "+" : "",
               r->duration_ms, took_ms, r->container_ended);
    else if (str_eq(p->verb, "upload"))
        printf("bytes_written=%" PRIu64 " took_ms=%" PRId64 "\n", r->bytes_written, took_ms);
    else if (str_eq(p->verb, "download"))
        fprintf(stderr, "bytes_read=%zu took_ms=%" PRId64 "\n", r->content_len, took_ms);
    else if (str_eq(p->verb, "list"))
        printf("total=%" PRIu64 " truncated=%d took_ms=%" PRId64 "\n", r->total_entries,
               r->entries_truncated, took_ms);
    else
        printf("exists=%d type=%d took_ms=%" PRId64 "\n", r->exists, (int)r->type, took_ms);
    if (!p->print_output)
        return;
    if (str_eq(p->verb, "list"))
        print_list(r);
    fwrite(r->out.data ? r->out.data : "", 1, r->out.len, stdout);
    fwrite(r->err.data ? r->err.data : "", 1, r->err.len, stderr);
    fwrite(r->content ? r->content : "", 1, r->content_len, stdout);
}

static void on_done(TransportResult *result, const Error *error, void *userdata)
{
    One *one = userdata;
    Probe *p = one->probe;
    int64_t took_ms = loop_now_ms(p->loop) - one->start_ms;

    one->job = NULL;
    if (error) {
        printf("error=%s took_ms=%" PRId64 " message=%s\n", error_kind_to_string(error->kind),
               took_ms, error->message);
        p->failed++;
    } else {
        print_result(p, result, took_ms);
    }
    if (--p->open == 0)
        loop_exit(p->loop, p->failed > 0);
}

static int submit(Probe *p, One *one, Error **error)
{
    TransportJob **job = &one->job;

    if (str_eq(p->verb, "run"))
        return transport_command(p->transport, &p->target, p->subject, p->timeout_ms, on_done, one,
                                 job, error);
    if (str_eq(p->verb, "upload"))
        return transport_upload(p->transport, &p->target, p->subject, buf_str(&p->input),
                                p->input.len, p->timeout_ms, on_done, one, job, error);
    if (str_eq(p->verb, "download"))
        return transport_download(p->transport, &p->target, p->subject, TRANSPORT_FILE_MAX,
                                  p->timeout_ms, on_done, one, job, error);
    if (str_eq(p->verb, "list"))
        return transport_list(p->transport, &p->target, p->subject, LIST_MAX, p->timeout_ms,
                              on_done, one, job, error);
    if (str_eq(p->verb, "exists"))
        return transport_exists(p->transport, &p->target, p->subject, p->timeout_ms, on_done, one,
                                job, error);
    return error_set(error, ERROR_INVALID, "unknown verb '%s'", p->verb);
}

static void cancel_all(void *userdata)
{
    Probe *p = userdata;

    for (size_t i = 0; i < p->jobs; i++)
        if (p->all[i].job)
            transport_cancel(p->all[i].job);
}

static int probe_run(Probe *p, Error **error)
{
    for (size_t i = 0; i < p->jobs; i++) {
        p->all[i] = (One){.probe = p, .start_ms = clock_monotonic_ms(&clock_system)};
        int r = submit(p, &p->all[i], error);
        if (r < 0)
            return r;
        p->open++;
    }
    p->cancel = (LoopTimer){.fn = cancel_all, .userdata = p};
    if (p->cancel_ms > 0)
        loop_timer_set(p->loop, &p->cancel, p->cancel_ms);
    return loop_run(p->loop);
}

static int probe_open(Probe *p, KubeClient **ret_kube, Error **error)
{
    const KubeClientOptions options = {
        .user_agent = "exec-probe", .field_manager = "exec-probe", .max_connections = 2};
    KubeConfig *config = NULL;
    int r = loop_new(&clock_system, &p->loop, error);

    if (r >= 0)
        r = kube_config_load(p->kubeconfig, NULL, &config, error);
    if (r >= 0)
        r = kube_client_new(p->loop, config, &options, ret_kube, error);
    if (r >= 0)
        r = transport_new(p->loop, *ret_kube, &p->transport, error);
    return r;
}

static void input_read(Probe *p)
{
    char block[65536];
    size_t n = 0;

    while ((n = fread(block, 1, sizeof(block), stdin)) > 0)
        if (buf_append(&p->input, block, n) < 0)
            break;
}

/* A number of the command line; what is none, or below zero, is refused. */
static int number_read(const char *s, int64_t *ret)
{
    return str_to_i64(s, ret) == 0 && *ret >= 0 ? 0 : -1;
}

static int options_read(Probe *p, int argc, char **argv)
{
    int64_t jobs = (int64_t)p->jobs;
    int c = 0, r = 0;

    while (r == 0 && (c = getopt(argc, argv, "k:c:i:t:n:x:o")) >= 0) {
        if (c == 'k')
            p->kubeconfig = optarg;
        else if (c == 'c')
            p->target.container = optarg;
        else if (c == 'i')
            p->target.container_id = optarg;
        else if (c == 't')
            r = number_read(optarg, &p->timeout_ms);
        else if (c == 'n')
            r = number_read(optarg, &jobs);
        else if (c == 'x')
            r = number_read(optarg, &p->cancel_ms);
        else if (c == 'o')
            p->print_output = true;
        else
            return -1;
    }
    if (r < 0 || argc - optind != 4)
        return -1;
    p->jobs = (size_t)jobs;
    p->target.ns = argv[optind];
    p->target.pod = argv[optind + 1];
    p->verb = argv[optind + 2];
    p->subject = argv[optind + 3];
    return 0;
}

int main(int argc, char **argv)
{
    Probe p = {.timeout_ms = 60000, .jobs = 1, .input = BUF_INIT(FILE_READ_MAX)};
    _cleanup_error_ Error *error = NULL;
    KubeClient *kube = NULL;

    if (options_read(&p, argc, argv) < 0) {
        fprintf(stderr,
                "usage: exec_probe [-k KUBECONFIG] [-c CONTAINER] [-i CONTAINER_ID] [-t MS] "
                "[-n JOBS] [-x CANCEL_MS] [-o] NAMESPACE POD VERB ARGUMENT\n");
        return 2;
    }
    log_init("probe", getenv("EXEC_PROBE_DEBUG") ? LOG_DEBUG : LOG_INFO, LOG_FORMAT_TEXT);
    if (str_eq(p.verb, "upload"))
        input_read(&p);
    p.all = xcalloc(p.jobs, sizeof(*p.all));
    int r = probe_open(&p, &kube, &error);
    if (r >= 0)
        r = probe_run(&p, &error);
    if (error)
        fprintf(stderr, "%s: %s\n", error_kind_to_string(error->kind), error->message);
    p.transport = transport_free(p.transport);
    kube_client_free(kube);
    loop_free(p.loop);
    buf_done(&p.input);
    free(p.all);
    return r == 0 ? 0 : 1;
}
