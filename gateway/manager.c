/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/manager.h"

#include "common/obs/server.h"
#include "gateway/endpoint.h"
#include "gateway/sandbox/names.h"

#include <signal.h>
#include <stdio.h>

#define HEARTBEAT_MS 1000
#define STALL_MS 20000
#define DRAIN_POLL_MS 50
#define STOP_MS 5000 /* for calls that were told to end */
#define API_CONNECTIONS 16
#define POD_GRACE_MS 10000 /* for a command in a pod that is being deleted */
#define POD_GONE_MS 1000   /* for its last words */

typedef enum DrainPhase {
    SERVING,
    LEAVING,   /* still serving, told the world not to come any more */
    FINISHING, /* nothing new */
    STOPPING,  /* calls were told to end */
} DrainPhase;

struct Manager {
    const GatewayConfig *config;
    Loop *loop;
    Metrics *metrics;
    ObsServer *obs;
    KubeClient *kube;
    SandboxCache *cache;
    Lookups *lookups;
    Activity *activity;
    Transport *transport;
    Authenticator *authenticator;
    Authorizer *authorizer;
    Calls *calls;
    Endpoint *endpoint;
    LoopTimer heartbeat;
    LoopTimer drain;
    DrainPhase phase;
    int64_t phase_ends_ms;
    bool was_ready;
};

/* --- what is shown --- */

static void show_counts(Manager *m)
{
    static const char *const resources[STORE_KIND_MAX] = {"sandboxclaims", "sandboxes", "pods"};
    const Store *store = sandbox_cache_store(m->cache);

    for (int kind = 0; kind < STORE_KIND_MAX; kind++)
        metrics_set(m->metrics, METRIC_CACHE_OBJECTS, resources[kind], NULL,
                    (double)store_size(store, (StoreKind)kind));
    metrics_set(m->metrics, METRIC_CALLS_UNDER_WAY, NULL, NULL, (double)calls_pending(m->calls));
    metrics_set(m->metrics, METRIC_TRANSPORT_JOBS, NULL, NULL,
                (double)transport_jobs(m->transport));
    metrics_raise(m->metrics, METRIC_REVIEWS, "token", NULL,
                  (double)authenticator_asked(m->authenticator));
    metrics_raise(m->metrics, METRIC_REVIEWS, "access", NULL,
                  (double)authorizer_asked(m->authorizer));
    metrics_raise(m->metrics, METRIC_LIVE_READS, NULL, NULL,
                  (double)lookups_live_reads(m->lookups));
    metrics_raise(m->metrics, METRIC_ACTIVITY_PATCHES, NULL, NULL,
                  (double)activity_patches(m->activity));
}

/* Ready once the caches were filled; an API server that goes away later makes calls fail with a
 * clear error, which serves a caller better than no gateway at all. */
static void show_ready(Manager *m)
{
    bool ready = m->phase == SERVING && sandbox_cache_synced(m->cache);

    if (ready && !m->was_ready)
        log_info("ready", LOGF_INT("port", http_server_port(endpoint_server(m->endpoint))));
    m->was_ready = ready;
    if (m->phase != SERVING)
        obs_server_set_ready(m->obs, "draining");
    else
        obs_server_set_ready(m->obs, ready ? NULL : "the watch caches are not filled yet");
}

static void on_heartbeat(void *userdata)
{
    Manager *m = userdata;

    obs_server_alive(m->obs);
    show_ready(m);
    show_counts(m);
    loop_timer_set(m->loop, &m->heartbeat, m->was_ready ? HEARTBEAT_MS : HEARTBEAT_MS / 10);
}

/* --- the end --- */

static void enter_phase(Manager *m, DrainPhase phase, int64_t duration_ms)
{
    m->phase = phase;
    m->phase_ends_ms = loop_now_ms(m->loop) + duration_ms;
    show_ready(m);
}

static bool is_idle(const Manager *m)
{
    return calls_pending(m->calls) == 0 && http_server_pending(endpoint_server(m->endpoint)) == 0;
}

static void leave_phase(Manager *m)
{
    if (m->phase == LEAVING) {
        log_info("draining: nothing new is accepted", LOGF_INT("calls", calls_pending(m->calls)));
        http_server_quiesce(endpoint_server(m->endpoint));
        enter_phase(m, FINISHING, m->config->drain_grace_ms);
    } else if (m->phase == FINISHING) {
        log_warn("draining: calls are ended", LOGF_INT("calls", calls_pending(m->calls)));
        enter_phase(m, STOPPING, STOP_MS);
        calls_stop(m->calls, false);
    } else {
        loop_exit(m->loop, 0);
    }
}

static void on_drain(void *userdata)
{
    Manager *m = userdata;

    if (m->phase != LEAVING && is_idle(m)) {
        loop_exit(m->loop, 0);
        return;
    }
    if (loop_now_ms(m->loop) >= m->phase_ends_ms)
        leave_phase(m);
    loop_timer_set(m->loop, &m->drain, DRAIN_POLL_MS);
}

static void on_signal(int signo, void *userdata)
{
    Manager *m = userdata;

    if (m->phase != SERVING) {
        log_warn("stopping at once");
        loop_exit(m->loop, 1);
        return;
    }
    log_info("draining", LOGF_INT("signal", signo), LOGF_INT("calls", calls_pending(m->calls)));
    http_server_drain(endpoint_server(m->endpoint));
    enter_phase(m, LEAVING, signo == SIGINT ? 0 : m->config->drain_delay_ms);
    loop_timer_set(m->loop, &m->drain, 0);
}

/* --- making --- */

static int make_loop(Manager *m, Error **error)
{
    static const int signals[] = {SIGTERM, SIGINT};
    int r = loop_new(&clock_system, &m->loop, error);

    if (r < 0)
        return r;
    (void)signal(SIGPIPE, SIG_IGN);
    return loop_signals(m->loop, signals, ARRAY_SIZE(signals), on_signal, m, error);
}

static int make_kube(Manager *m, Error **error)
{
    KubeConfig *config = NULL;
    KubeClientOptions options = {
        .user_agent = USER_AGENT,
        .field_manager = FIELD_MANAGER,
        .max_connections = API_CONNECTIONS,
    };
    int r = kube_config_load(m->config->kubeconfig, m->config->context, &config, error);

    if (r < 0)
        return r;
    log_info("API server", LOGF_STR("server", config->server));
    return kube_client_new(m->loop, config, &options, &m->kube, error);
}

static void on_pod_end(const char *ns, const char *pod, bool gone, void *userdata)
{
    const Manager *m = userdata;

    if (m->transport)
        transport_pod_ends(m->transport, ns, pod, gone ? POD_GONE_MS : POD_GRACE_MS);
}

static int make_sandboxes(Manager *m, Error **error)
{
    int r = sandbox_cache_new(m->kube, m->config->namespaces, m->config->n_namespaces, &m->cache,
                              error);

    if (r < 0)
        return r;
    m->lookups = lookups_new(m->cache);
    m->activity = activity_new(m->cache);
    sandbox_cache_on_pod_end(m->cache, on_pod_end, m);
    return transport_new(m->loop, m->kube, &m->transport, error);
}

static int make_endpoint(Manager *m, Error **error)
{
    KubeClient *reviewer = m->config->authenticates ? m->kube : NULL;
    CallServices services = {
        .loop = m->loop,
        .kube = m->kube,
        .cache = m->cache,
        .lookups = m->lookups,
        .activity = m->activity,
        .transport = m->transport,
        .metrics = m->metrics,
        .config = m->config,
    };
    EndpointOptions options = {.config = m->config, .metrics = m->metrics, .loop = m->loop};

    m->authenticator = authenticator_new(reviewer, m->config->audience, m->config->review_ttl_ms);
    m->authorizer = authorizer_new(reviewer, m->config->review_ttl_ms);
    services.authorizer = m->authorizer;
    m->calls = calls_new(&services);
    options.authenticator = m->authenticator;
    options.calls = m->calls;
    return endpoint_new(&options, &m->endpoint, error);
}

static int make_parts(Manager *m, Error **error)
{
    int r;

    if ((r = make_loop(m, error)) < 0)
        return r;
    m->metrics = gateway_metrics_new();
    if ((r = obs_server_new(m->config->obs_address, m->metrics, STALL_MS, &m->obs, error)) < 0)
        return r;
    if ((r = make_kube(m, error)) < 0)
        return r;
    if ((r = make_sandboxes(m, error)) < 0)
        return r;
    return make_endpoint(m, error);
}

int manager_new(const GatewayConfig *config, Manager **ret, Error **error)
{
    Manager *m = xnew(Manager);
    int r;

    m->config = config;
    m->heartbeat.fn = on_heartbeat;
    m->heartbeat.userdata = m;
    m->drain.fn = on_drain;
    m->drain.userdata = m;
    r = make_parts(m, error);
    if (r < 0)
        (void)manager_free(m);
    else
        *ret = m;
    return r;
}

/* What server threads have handed over begins once more; then everything that callers wait for is
 * answered. The transport goes without another turn of the loop, so that no job comes back to a
 * call that is gone. */
static void stop_calls(Manager *m)
{
    authenticator_stop(m->authenticator);
    authorizer_stop(m->authorizer);
    loop_turn(m->loop, 0);
    calls_stop(m->calls, true);
    m->transport = transport_free(m->transport);
    endpoint_stop(m->endpoint);
}

Manager *manager_free(Manager *m)
{
    if (!m)
        return NULL;
    if (m->endpoint)
        stop_calls(m);
    m->endpoint = endpoint_free(m->endpoint);
    m->calls = calls_free(m->calls);
    m->authenticator = authenticator_free(m->authenticator);
    m->authorizer = authorizer_free(m->authorizer);
    m->transport = transport_free(m->transport);
    m->activity = activity_free(m->activity);
    m->lookups = lookups_free(m->lookups);
    m->cache = sandbox_cache_free(m->cache);
    m->kube = kube_client_free(m->kube);
    m->obs = obs_server_free(m->obs);
    m->loop = loop_free(m->loop);
    m->metrics = metrics_free(m->metrics);
    free(m);
    return NULL;
}

int manager_run(Manager *m)
{
    int status;

    log_info("serving", LOGF_STR("listen", m->config->listen),
             LOGF_INT("port", http_server_port(endpoint_server(m->endpoint))),
             LOGF_STR("auth", m->config->auth), LOGF_STR("version", SANDBOX_VERSION));
    loop_timer_set(m->loop, &m->heartbeat, 0);
    status = loop_run(m->loop);
    log_info("stopped", LOGF_INT("status", status));
    return status;
}
