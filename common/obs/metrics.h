/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics registry with Prometheus text exposition 0.0.4. Metrics are rows of a static table;
 * updating is lock-free and thread-safe. A metric has at most two labels; at most
 * METRIC_SERIES_MAX label sets per metric, further ones are counted under "other". Label values are
 * cut at 128 bytes. What only grows is a counter, and its name ends in _total.
 */
#pragma once

#include "common/base/buf.h"

#include <stdint.h>

#define METRIC_SERIES_MAX 256

typedef enum MetricType {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM,
    METRIC_TYPE_MAX
} MetricType;

typedef struct MetricSpec {
    const char *name; /* "sandbox_gateway_tool_calls_total" */
    MetricType type;
    const char *help;
    const char *label1, *label2; /* NULL: none */
    const double *buckets;       /* histogram: ascending upper bounds, without +Inf */
    size_t n_buckets;
} MetricSpec;

typedef struct Metrics Metrics;
/* specs must outlive the registry; a metric is addressed by its index in the table. */
Metrics *metrics_new(const MetricSpec *specs, size_t n_specs);
Metrics *metrics_free(Metrics *m);
void metrics_add(Metrics *m, size_t metric, const char *v1, const char *v2, double delta);
/* A counter that is kept elsewhere: raised to its total, never lowered. */
void metrics_raise(Metrics *m, size_t metric, const char *v1, const char *v2, double total);
void metrics_set(Metrics *m, size_t metric, const char *v1, const char *v2, double value);
void metrics_observe(Metrics *m, size_t metric, const char *v1, const char *v2, double value);
double metrics_get(Metrics *m, size_t metric, const char *v1, const char *v2); /* tests */
/* Appends the exposition, including process_* (RSS, CPU, fds, start time). */
int metrics_print(Metrics *m, Buf *out);
