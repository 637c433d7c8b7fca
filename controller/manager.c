/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/manager.h"

#include "common/kube/events.h"
#include "common/net/crypto.h"
#include "common/obs/server.h"
#include "controller/api_port.h"
#include "controller/metrics.h"
#include "controller/reconciler.h"
#include "controller/wallclock.h"
#include "controller/watches.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define STALL_MS 30000
#define HEARTBEAT_MS (STALL_MS / 6)

struct Manager {
    const Config *config;
    Loop *loop;
    KubeClient *kube;
    KubeEvents *events;
    ApiGate *gate;
    Reconciler *reconciler;
    Watches *watches;
    Metrics *metrics;
    ObsServer *obs;
    WallClock *wallclock;
    LoopTimer run_timer;
    LoopTimer heartbeat;
    ReconcilerStats counted; /* what the metrics know already */
    uint64_t events_dropped;
    bool ready;
};

static void publish_gauges(Manager *m)
{
    const World *w = reconciler_world(m->reconciler);
    for (ObjKind kind = 0; kind < OBJ_KIND_MAX; kind++)
        metrics_set(m->metrics, METRIC_OBJECTS, obj_resource(kind)->plural, NULL,
                    (double)world_count(w, kind));
}

static void count(Metrics *metrics, ControllerMetric metric, const char *label, uint64_t now,
                  uint64_t *before)
{
    if (now != *before)
        metrics_add(metrics, metric, label, NULL, (double)(now - *before));
    *before = now;
}

static void publish_stats(Manager *m)
{
    ReconcilerStats s = reconciler_stats(m->reconciler);
    count(m->metrics, METRIC_PLANS, NULL, s.plans, &m->counted.plans);
    count(m->metrics, METRIC_LIVE_READS, "get", s.gets, &m->counted.gets);
    count(m->metrics, METRIC_LIVE_READS, "list", s.lists, &m->counted.lists);
    count(m->metrics, METRIC_EVENTS, NULL, s.events, &m->counted.events);
    count(m->metrics, METRIC_SPINS, NULL, s.spins, &m->counted.spins);
    count(m->metrics, METRIC_EVENTS_DROPPED, NULL, kube_events_dropped(m->events),
          &m->events_dropped);
    metrics_set(m->metrics, METRIC_QUEUE_DEPTH, "reconciler", NULL, (double)s.queued);
    metrics_set(m->metrics, METRIC_QUEUE_DELAYED, NULL, NULL, (double)s.delayed);
    metrics_set(m->metrics, METRIC_INFLIGHT, NULL, NULL, (double)s.inflight);
}

static void run(void *userdata)
{
    Manager *m = userdata;
    const Clock *clock = loop_clock(m->loop);
    reconciler_set_time(m->reconciler, clock_realtime_ms(clock), clock_monotonic_ms(clock));
    reconciler_run(m->reconciler);
    publish_stats(m);
    if (!m->ready && reconciler_synced(m->reconciler)) {
        m->ready = true;
        obs_server_set_ready(m->obs, NULL);
        log_info("ready");
    }
    int64_t next_ms = reconciler_next_ms(m->reconciler);
    if (next_ms != INT64_MAX)
        loop_timer_set(m->loop, &m->run_timer, next_ms);
}

/* Everything that happens in one turn of the loop is planned together. */
static void changed(void *userdata)
{
    Manager *m = userdata;
    loop_timer_set(m->loop, &m->run_timer, 0);
}

static void beat(void *userdata)
{
    Manager *m = userdata;
    obs_server_alive(m->obs);
    publish_gauges(m);
    loop_timer_set(m->loop, &m->heartbeat, HEARTBEAT_MS);
}

static void on_signal(int signo, void *userdata)
{
    Manager *m = userdata;
    log_info("stopping", LOGF_INT("signal", signo));
    obs_server_set_ready(m->obs, "stopping");
    loop_exit(m->loop, 0);
}

static int connect_api(Manager *m, Error **error)
{
    KubeConfig *config = NULL;
    int r = kube_config_load(m->config->kubeconfig, NULL, &config, error);
    if (r < 0)
        return error_wrap(error, r, "no way to the API server");
    log_info("API server", LOGF_STR("server", config->server));
    const KubeClientOptions options = {
        .user_agent = CONTROLLER_NAME "/" SANDBOX_VERSION,
        .field_manager = CONTROLLER_NAME,
        .max_connections = (long)m->config->api_connections,
    };
    return kube_client_new(m->loop, config, &options, &m->kube, error);
}

static void make_reconciler(Manager *m)
{
    const char *instance = getenv("HOSTNAME");
    m->events = kube_events_new(m->kube, CONTROLLER_NAME, instance ? instance : CONTROLLER_NAME);
    m->gate = api_gate_new(m->kube, m->events, m->metrics, changed, m);
    ReconcilerOptions options = {
        .plan = config_plan(m->config),
        .sweep_interval_ms = m->config->sweep_interval_ms,
        .namespaces = (const char *const *)m->config->namespace_list,
        .n_namespaces = m->config->n_namespaces,
    };
    crypto_random(&options.seed, sizeof(options.seed));
    api_gate_port(m->gate, &options.port);
    m->reconciler = reconciler_new(&options);
    api_gate_connect(m->gate, m->reconciler);
}

static int start(Manager *m, Error **error)
{
    static const int signals[] = {SIGTERM, SIGINT};
    int r = loop_new(&clock_system, &m->loop, error);
    if (r < 0)
        return r;
    r = loop_signals(m->loop, signals, ARRAY_SIZE(signals), on_signal, m, error);
    if (r < 0)
        return r;
    m->metrics = controller_metrics_new();
    r = obs_server_new(m->config->obs_address, m->metrics, STALL_MS, &m->obs, error);
    if (r < 0)
        return error_wrap(error, r, "--obs-address %s", m->config->obs_address);
    obs_server_set_ready(m->obs, "the caches are not filled yet");
    r = connect_api(m, error);
    if (r < 0)
        return r;
    make_reconciler(m);
    r = wallclock_new(m->loop, changed, m, &m->wallclock, error);
    if (r < 0)
        return r;
    return watches_new(m->kube, m->reconciler, m->metrics, m->config, changed, m, &m->watches,
                       error);
}

int manager_new(const Config *config, Manager **ret, Error **error)
{
    Manager *m = xnew(Manager);
    m->config = config;
    m->run_timer = (LoopTimer){.fn = run, .userdata = m};
    m->heartbeat = (LoopTimer){.fn = beat, .userdata = m};
    int r = start(m, error);
    if (r < 0) {
        manager_free(m);
        return r;
    }
    beat(m);
    *ret = m;
    return 0;
}

int manager_run(Manager *m)
{
    return loop_run(m->loop);
}

Manager *manager_free(Manager *m)
{
    if (!m)
        return NULL;
    watches_free(m->watches);
    wallclock_free(m->wallclock);
    api_gate_free(m->gate);
    reconciler_free(m->reconciler);
    kube_events_free(m->events);
    kube_client_free(m->kube);
    obs_server_free(m->obs);
    metrics_free(m->metrics);
    loop_free(m->loop);
    free(m);
    return NULL;
}
