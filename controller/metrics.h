/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's metrics: the table behind /metrics. */
#pragma once

#include "common/obs/metrics.h"

typedef enum ControllerMetric {
    METRIC_API_WRITES,
    METRIC_PLANS,
    METRIC_LIVE_READS,
    METRIC_EVENTS,
    METRIC_EVENTS_DROPPED,
    METRIC_BAD_OBJECTS,
    METRIC_OBJECTS,
    METRIC_QUEUE_DEPTH,
    METRIC_QUEUE_DELAYED,
    METRIC_INFLIGHT,
    METRIC_WATCH_CONNECTED,
    METRIC_SPINS,
    METRIC_BUILD_INFO,
    CONTROLLER_METRIC_MAX,
} ControllerMetric;

Metrics *controller_metrics_new(void);
