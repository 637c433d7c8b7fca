/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/metrics.h"

#include "common/base/cleanup.h"

static const double seconds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                 1,     2.5,    5,     10,   30,    60,   120, 300,  600};

static const MetricSpec specs[METRIC_GATEWAY_MAX] = {
    [METRIC_HTTP_REQUESTS] = {"sandbox_gateway_http_requests_total", METRIC_COUNTER,
                              "HTTP requests by status code", "code", NULL, NULL, 0},
    [METRIC_TOOL_CALLS] = {"sandbox_gateway_tool_calls_total", METRIC_COUNTER,
                           "Tool calls by tool and outcome (ok, or the kind of the error)", "tool",
                           "outcome", NULL, 0},
    [METRIC_TOOL_SECONDS] = {"sandbox_gateway_tool_seconds", METRIC_HISTOGRAM,
                             "Time from the arrival of a tool call to its answer", "tool", NULL,
                             seconds, ARRAY_SIZE(seconds)},
    [METRIC_CALLS_UNDER_WAY] = {"sandbox_gateway_calls", METRIC_GAUGE, "Tool calls under way", NULL,
                                NULL, NULL, 0},
    [METRIC_STREAMS] = {"sandbox_gateway_streams_total", METRIC_COUNTER,
                        "Answers that became a stream of server-sent events", NULL, NULL, NULL, 0},
    [METRIC_REVIEWS] = {"sandbox_gateway_reviews_total", METRIC_COUNTER,
                        "Reviews that the API server was asked for, by kind (token, access)",
                        "kind", NULL, NULL, 0},
    [METRIC_CACHE_OBJECTS] = {"sandbox_gateway_cache_objects", METRIC_GAUGE,
                              "Objects in the watch cache by resource", "resource", NULL, NULL, 0},
    [METRIC_LIVE_READS] = {"sandbox_gateway_live_reads_total", METRIC_COUNTER,
                           "Reads of claims that the cache did not show", NULL, NULL, NULL, 0},
    [METRIC_ACTIVITY_PATCHES] = {"sandbox_gateway_activity_patches_total", METRIC_COUNTER,
                                 "Patches that recorded activity on claims", NULL, NULL, NULL, 0},
    [METRIC_TRANSPORT_JOBS] = {"sandbox_gateway_transport_jobs", METRIC_GAUGE,
                               "Commands and file transfers queued or running", NULL, NULL, NULL,
                               0},
    [METRIC_BUILD_INFO] = {"sandbox_gateway_build_info", METRIC_GAUGE, "1, with the version",
                           "version", NULL, NULL, 0},
};

Metrics *gateway_metrics_new(void)
{
    Metrics *m = metrics_new(specs, METRIC_GATEWAY_MAX);

    metrics_set(m, METRIC_BUILD_INFO, SANDBOX_VERSION, NULL, 1);
    return m;
}
