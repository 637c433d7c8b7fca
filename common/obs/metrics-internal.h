/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the registry and its exposition share. A series is made once and never freed before the
 * registry, its numbers are atomics; a metric's series are an open-addressing table of atomic
 * pointers, so that finding one needs no lock and making one is a single compare-and-swap.
 */
#pragma once

#include "common/obs/metrics.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Twice the ceiling and a power of two: a probe always ends at an empty slot. */
#define METRIC_SLOTS (2UL * METRIC_SERIES_MAX)
#define METRIC_LABEL_MAX 128 /* bytes of a label's value; the rest is cut */

typedef struct Series {
    char *value1, *value2;      /* NULL where the metric has no such label */
    _Atomic uint64_t number;    /* bits of a double: the value, or a histogram's sum */
    _Atomic uint64_t buckets[]; /* n_buckets + 1: observations in each, the last is +Inf */
} Series;

typedef struct Metric {
    const MetricSpec *spec;
    _Atomic(Series *) *slots; /* METRIC_SLOTS; NULL where there are no labels */
    atomic_size_t n_series;
    Series *single; /* of a metric without labels, or "other" */
} Metric;

struct Metrics {
    Metric *metrics;
    size_t n;
};

double metric_series_value(Series *s);
/* Appends process_cpu_seconds_total and its like, as far as /proc gives them. */
int metrics_print_process(Buf *out);
/* A number as the exposition format has it. */
int metrics_print_number(Buf *out, double value);
