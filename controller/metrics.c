/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/metrics.h"

#include "common/base/cleanup.h"

static const MetricSpec specs[CONTROLLER_METRIC_MAX] = {
    [METRIC_API_WRITES] = {.name = "sandbox_controller_api_writes_total",
                           .type = METRIC_COUNTER,
                           .help = "Writes to the API server, by purpose and outcome.",
                           .label1 = "purpose",
                           .label2 = "outcome"},
    [METRIC_PLANS] = {.name = "sandbox_controller_plans_total",
                      .type = METRIC_COUNTER,
                      .help = "Keys planned."},
    [METRIC_LIVE_READS] = {.name = "sandbox_controller_live_reads_total",
                           .type = METRIC_COUNTER,
                           .help = "Objects or lists read live instead of from the cache.",
                           .label1 = "type"},
    [METRIC_EVENTS] = {.name = "sandbox_controller_events_total",
                       .type = METRIC_COUNTER,
                       .help = "Kubernetes Events handed to the recorder."},
    [METRIC_EVENTS_DROPPED] = {.name = "sandbox_controller_events_dropped_total",
                               .type = METRIC_COUNTER,
                               .help = "Kubernetes Events dropped by a limit."},
    [METRIC_BAD_OBJECTS] = {.name = "sandbox_controller_bad_objects_total",
                            .type = METRIC_COUNTER,
                            .help = "Objects skipped since they cannot be read.",
                            .label1 = "resource"},
    [METRIC_OBJECTS] = {.name = "sandbox_controller_objects",
                        .type = METRIC_GAUGE,
                        .help = "Objects in the cache.",
                        .label1 = "resource"},
    [METRIC_QUEUE_DEPTH] = {.name = "workqueue_depth",
                            .type = METRIC_GAUGE,
                            .help = "Keys that are due and not planned yet; 0 at rest.",
                            .label1 = "name"},
    [METRIC_QUEUE_DELAYED] = {.name = "sandbox_controller_delayed_keys",
                              .type = METRIC_GAUGE,
                              .help = "Keys that wait for a deadline or the end of a back-off."},
    [METRIC_INFLIGHT] = {.name = "sandbox_controller_requests_in_flight",
                         .type = METRIC_GAUGE,
                         .help = "Requests of the reconciler under way."},
    [METRIC_WATCH_CONNECTED] = {.name = "sandbox_controller_watch_connected",
                                .type = METRIC_GAUGE,
                                .help = "1 while the resource is listed and watched.",
                                .label1 = "resource"},
    [METRIC_SPINS] = {.name = "sandbox_controller_spins_total",
                      .type = METRIC_COUNTER,
                      .help = "Keys slowed down since their writes led nowhere."},
    [METRIC_BUILD_INFO] = {.name = "sandbox_controller_build_info",
                           .type = METRIC_GAUGE,
                           .help = "1, with the version.",
                           .label1 = "version"},
};

Metrics *controller_metrics_new(void)
{
    Metrics *m = metrics_new(specs, ARRAY_SIZE(specs));
    metrics_set(m, METRIC_BUILD_INFO, SANDBOX_VERSION, NULL, 1);
    return m;
}
