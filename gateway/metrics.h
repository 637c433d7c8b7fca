/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's metrics: an index here for each row of the table. */
#pragma once

#include "common/obs/metrics.h"

typedef enum GatewayMetric {
    METRIC_HTTP_REQUESTS,
    METRIC_TOOL_CALLS,
    METRIC_TOOL_SECONDS,
    METRIC_CALLS_UNDER_WAY,
    METRIC_STREAMS,
    METRIC_REVIEWS,
    METRIC_CACHE_OBJECTS,
    METRIC_LIVE_READS,
    METRIC_ACTIVITY_PATCHES,
    METRIC_TRANSPORT_JOBS,
    METRIC_BUILD_INFO,
    METRIC_GATEWAY_MAX,
} GatewayMetric;

Metrics *gateway_metrics_new(void);
