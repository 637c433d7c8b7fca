/* SPDX-License-Identifier: Apache-2.0 */
/* Text exposition format 0.0.4. */
#include "common/base/str.h"
#include "common/obs/metrics-internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {
    [METRIC_COUNTER] = "counter",
    [METRIC_GAUGE] = "gauge",
    [METRIC_HISTOGRAM] = "histogram",
};
static_assert(ARRAY_SIZE(type_names) == METRIC_TYPE_MAX, "a type without a name");

int metrics_print_number(Buf *out, double value)
{
    char text[40];

    if (isnan(value))
        return buf_append_str(out, "NaN");
    if (isinf(value))
        return buf_append_str(out, value > 0 ? "+Inf" : "-Inf");
    /* The shortest of the two that reads back as the same number. */
    (void)snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        (void)snprintf(text, sizeof text, "%.17g", value);
    return buf_append_str(out, text);
}

static void print_escaped(Buf *out, char c, bool quotes)
{
    if (c == '\n')
        buf_append_str(out, "\\n");
    else if (c == '\\')
        buf_append_str(out, "\\\\");
    else if (c == '"' && quotes)
        buf_append_str(out, "\\\"");
    else
        buf_append_char(out, c);
}

/* Backslash, line feed and (in label values) the quote are escaped; what is not UTF-8 becomes '?',
 * as one bad byte would make the whole page unreadable. */
static void print_text(Buf *out, const char *s, bool quotes)
{
    for (size_t len = strlen(s); len > 0;) {
        size_t n = str_utf8_len(s, len);
        if (n > 1)
            buf_append(out, s, n);
        else
            print_escaped(out, n == 1 ? *s : '?', quotes);
        n = n ? n : 1;
        s += n;
        len -= n;
    }
}

static void print_label(Buf *out, bool *first, const char *name, const char *value)
{
    if (!name)
        return;
    buf_printf(out, "%c%s=\"", *first ? '{' : ',', name);
    print_text(out, value, true);
    buf_append_char(out, '"');
    *first = false;
}

static void print_sample(Buf *out, const Metric *m, const Series *s, const char *suffix,
                         const char *le, double value)
{
    bool first = true;

    buf_printf(out, "%s%s", m->spec->name, suffix);
    print_label(out, &first, m->spec->label1, s->value1);
    print_label(out, &first, m->spec->label2, s->value2);
    print_label(out, &first, le ? "le" : NULL, le);
    buf_append_str(out, first ? " " : "} ");
    metrics_print_number(out, value);
    buf_append_char(out, '\n');
}

/* To twelve digits: the ones behind are errors of adding, by and by. */
static double rounded(double value)
{
    char text[40];

    (void)snprintf(text, sizeof text, "%.12g", value);
    return strtod(text, NULL);
}

/* The count is the sum of the buckets as they were read, so that it agrees with the last one. */
static void print_histogram(Buf *out, const Metric *m, Series *s)
{
    uint64_t count = 0;

    for (size_t i = 0; i <= m->spec->n_buckets; i++) {
        Buf le = BUF_INIT(64);
        metrics_print_number(&le, i < m->spec->n_buckets ? m->spec->buckets[i] : INFINITY);
        count += atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
        print_sample(out, m, s, "_bucket", buf_str(&le), (double)count);
        buf_done(&le);
    }
    print_sample(out, m, s, "_sum", NULL, rounded(metric_series_value(s)));
    print_sample(out, m, s, "_count", NULL, (double)count);
}

static void print_series(Buf *out, const Metric *m, Series *s)
{
    if (m->spec->type == METRIC_HISTOGRAM)
        print_histogram(out, m, s);
    else
        print_sample(out, m, s, "", NULL, metric_series_value(s));
}

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_series(const void *a, const void *b)
{
    const Series *x = *(Series *const *)a, *y = *(Series *const *)b;
    int first = compare_text(x->value1, y->value1);

    return first ? first : compare_text(x->value2, y->value2);
}

static size_t collect(const Metric *m, Series **sorted)
{
    size_t n = 0;

    for (size_t i = 0; i < METRIC_SLOTS && n < METRIC_SERIES_MAX; i++) {
        Series *s = atomic_load_explicit(&m->slots[i], memory_order_acquire);
        if (s)
            sorted[n++] = s;
    }
    qsort(sorted, n, sizeof(Series *), compare_series);
    return n;
}

static bool is_used(const Metric *m, Series *s)
{
    if (m->spec->type != METRIC_HISTOGRAM)
        return metric_series_value(s) != 0;
    for (size_t i = 0; i <= m->spec->n_buckets; i++)
        if (atomic_load_explicit(&s->buckets[i], memory_order_relaxed))
            return true;
    return false;
}

static void print_metric(Buf *out, Metric *m)
{
    Series *sorted[METRIC_SERIES_MAX];

    buf_printf(out, "# HELP %s ", m->spec->name);
    print_text(out, m->spec->help, false);
    buf_printf(out, "\n# TYPE %s %s\n", m->spec->name, type_names[m->spec->type]);
    size_t n = m->slots ? collect(m, sorted) : 0;
    for (size_t i = 0; i < n; i++)
        print_series(out, m, sorted[i]);
    if (!m->slots || is_used(m, m->single))
        print_series(out, m, m->single);
}

int metrics_print(Metrics *m, Buf *out)
{
    for (size_t i = 0; i < m->n; i++)
        print_metric(out, &m->metrics[i]);
    metrics_print_process(out);
    return buf_check(out, "metrics", NULL);
}
