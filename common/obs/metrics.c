/* SPDX-License-Identifier: Apache-2.0 */
#include "common/obs/metrics.h"

#include "common/base/str.h"
#include "common/obs/metrics-internal.h"

#include <assert.h>
#include <string.h>

#define OTHER "other"

static uint64_t double_to_bits(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static double bits_to_double(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

double metric_series_value(Series *s)
{
    return bits_to_double(atomic_load_explicit(&s->number, memory_order_relaxed));
}

static void series_add(Series *s, double delta)
{
    uint64_t old = atomic_load_explicit(&s->number, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(&s->number, &old,
                                                  double_to_bits(bits_to_double(old) + delta),
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

static Series *series_new(const MetricSpec *spec, const char *v1, const char *v2)
{
    size_t buckets = spec->type == METRIC_HISTOGRAM ? spec->n_buckets + 1 : 0;
    Series *s = xcalloc(1, sizeof(Series) + buckets * sizeof s->buckets[0]);

    s->value1 = spec->label1 ? xstrndup(v1 ? v1 : "", METRIC_LABEL_MAX) : NULL;
    s->value2 = spec->label2 ? xstrndup(v2 ? v2 : "", METRIC_LABEL_MAX) : NULL;
    return s;
}

static void series_free(Series *s)
{
    if (!s)
        return;
    free(s->value1);
    free(s->value2);
    free(s);
}

static void metric_init(Metric *m, const MetricSpec *spec)
{
    assert((spec->type == METRIC_COUNTER) == str_ends_with(spec->name, "_total"));
    m->spec = spec;
    m->single = series_new(spec, OTHER, OTHER);
    if (spec->label1)
        m->slots = xcalloc(METRIC_SLOTS, sizeof *m->slots);
}

Metrics *metrics_new(const MetricSpec *specs, size_t n_specs)
{
    Metrics *m = xnew(Metrics);

    m->n = n_specs;
    m->metrics = xcalloc(n_specs ? n_specs : 1, sizeof *m->metrics);
    for (size_t i = 0; i < n_specs; i++)
        metric_init(&m->metrics[i], &specs[i]);
    return m;
}

static void metric_done(Metric *m)
{
    for (size_t i = 0; m->slots && i < METRIC_SLOTS; i++)
        series_free(atomic_load(&m->slots[i]));
    free(m->slots);
    series_free(m->single);
}

Metrics *metrics_free(Metrics *m)
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < m->n; i++)
        metric_done(&m->metrics[i]);
    free(m->metrics);
    free(m);
    return NULL;
}

static bool label_matches(const char *have, const char *want)
{
    return !have || strncmp(have, want ? want : "", METRIC_LABEL_MAX) == 0;
}

static bool series_matches(const Series *s, const char *v1, const char *v2)
{
    return label_matches(s->value1, v1) && label_matches(s->value2, v2);
}

static size_t hash_label(size_t hash, const char *value)
{
    for (size_t i = 0; value && value[i] && i < METRIC_LABEL_MAX; i++)
        hash = (hash ^ (unsigned char)value[i]) * 1099511628211UL;
    return (hash ^ 0xff) * 1099511628211UL;
}

static size_t first_slot(const Metric *m, const char *v1, const char *v2)
{
    size_t hash = hash_label(14695981039346656037UL, v1);

    if (m->spec->label2)
        hash = hash_label(hash, v2);
    return (hash ^ (hash >> 32)) % METRIC_SLOTS;
}

/* A place among the ceiling's is taken first, so that the table never fills. */
static bool series_reserve(Metric *m)
{
    if (atomic_load_explicit(&m->n_series, memory_order_relaxed) >= METRIC_SERIES_MAX)
        return false;
    if (atomic_fetch_add(&m->n_series, 1) < METRIC_SERIES_MAX)
        return true;
    atomic_fetch_sub(&m->n_series, 1);
    return false;
}

/* The series that is in the slot afterwards: ours, or that of a thread that was faster. */
static Series *series_install(Metric *m, size_t slot, const char *v1, const char *v2)
{
    Series *expected = NULL;

    if (!series_reserve(m))
        return m->single;
    Series *s = series_new(m->spec, v1, v2);
    if (atomic_compare_exchange_strong(&m->slots[slot], &expected, s))
        return s;
    series_free(s);
    atomic_fetch_sub(&m->n_series, 1);
    return expected;
}

static Series *series_find(Metric *m, const char *v1, const char *v2, bool make)
{
    if (!m->slots)
        return m->single;
    for (size_t i = first_slot(m, v1, v2);; i = (i + 1) % METRIC_SLOTS) {
        Series *s = atomic_load_explicit(&m->slots[i], memory_order_acquire);
        if (!s && !make)
            return NULL;
        if (!s)
            s = series_install(m, i, v1, v2);
        if (s == m->single || series_matches(s, v1, v2))
            return s;
    }
}

static Metric *metric_at(Metrics *m, size_t metric)
{
    assert(metric < m->n);
    return &m->metrics[metric];
}

void metrics_add(Metrics *m, size_t metric, const char *v1, const char *v2, double delta)
{
    Metric *at = metric_at(m, metric);

    assert(at->spec->type != METRIC_HISTOGRAM);
    assert(at->spec->type != METRIC_COUNTER || delta >= 0);
    series_add(series_find(at, v1, v2, true), delta);
}

void metrics_raise(Metrics *m, size_t metric, const char *v1, const char *v2, double total)
{
    Metric *at = metric_at(m, metric);

    assert(at->spec->type == METRIC_COUNTER);
    Series *s = series_find(at, v1, v2, true);
    uint64_t old = atomic_load_explicit(&s->number, memory_order_relaxed);
    while (bits_to_double(old) < total &&
           !atomic_compare_exchange_weak_explicit(&s->number, &old, double_to_bits(total),
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void metrics_set(Metrics *m, size_t metric, const char *v1, const char *v2, double value)
{
    Metric *at = metric_at(m, metric);

    assert(at->spec->type == METRIC_GAUGE);
    atomic_store_explicit(&series_find(at, v1, v2, true)->number, double_to_bits(value),
                          memory_order_relaxed);
}

void metrics_observe(Metrics *m, size_t metric, const char *v1, const char *v2, double value)
{
    Metric *at = metric_at(m, metric);
    size_t bucket = 0;

    assert(at->spec->type == METRIC_HISTOGRAM);
    Series *s = series_find(at, v1, v2, true);
    while (bucket < at->spec->n_buckets && value > at->spec->buckets[bucket])
        bucket++;
    atomic_fetch_add_explicit(&s->buckets[bucket], 1, memory_order_relaxed);
    series_add(s, value);
}

static double observations(const Metric *m, Series *s)
{
    double count = 0;

    for (size_t i = 0; i <= m->spec->n_buckets; i++)
        count += (double)atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
    return count;
}

double metrics_get(Metrics *m, size_t metric, const char *v1, const char *v2)
{
    Metric *at = metric_at(m, metric);
    Series *s = series_find(at, v1, v2, false);

    if (!s && str_eq(v1, OTHER) && (!at->spec->label2 || str_eq(v2, OTHER)))
        s = at->single;
    if (!s)
        return 0;
    return at->spec->type == METRIC_HISTOGRAM ? observations(at, s) : metric_series_value(s);
}
