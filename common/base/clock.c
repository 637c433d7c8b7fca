/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"

#include <stdbool.h>
#include <time.h>

#define TIME_MIN_MS (INT64_C(-62135596800) * 1000)       /* 0001-01-01T00:00:00Z */
#define TIME_MAX_MS (INT64_C(253402300799) * 1000 + 999) /* 9999-12-31T23:59:59.999Z */

static int64_t read_clock_ms(clockid_t id)
{
    struct timespec ts = {0};

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t system_realtime_ms(_unused_ void *userdata)
{
    return read_clock_ms(CLOCK_REALTIME);
}

static int64_t system_monotonic_ms(_unused_ void *userdata)
{
    return read_clock_ms(CLOCK_MONOTONIC);
}

const Clock clock_system = {system_realtime_ms, system_monotonic_ms, NULL};

int64_t clock_realtime_ms(const Clock *c)
{
    return c->realtime_ms(c->userdata);
}

int64_t clock_monotonic_ms(const Clock *c)
{
    return c->monotonic_ms(c->userdata);
}

/* Splits into calendar fields and the milliseconds that are left. */
static struct tm split_time(int64_t ms, int *ret_ms)
{
    struct tm tm = {0};
    time_t seconds;
    int64_t rest;

    if (ms < TIME_MIN_MS)
        ms = TIME_MIN_MS;
    if (ms > TIME_MAX_MS)
        ms = TIME_MAX_MS;
    rest = ((ms % 1000) + 1000) % 1000;
    seconds = (time_t)((ms - rest) / 1000);
    (void)gmtime_r(&seconds, &tm);
    *ret_ms = (int)rest;
    return tm;
}

/* Writes v as n digits and the character behind them. */
static char *put_digits(char *p, int n, int v, char behind)
{
    p[n] = behind;
    for (int i = n - 1; i >= 0; i--, v /= 10)
        p[i] = (char)('0' + v % 10);
    return p + n + 1;
}

/* Returns the place behind the seconds, where `behind` stands. */
static char *put_seconds(char *p, const struct tm *tm, char behind)
{
    p = put_digits(p, 4, tm->tm_year + 1900, '-');
    p = put_digits(p, 2, tm->tm_mon + 1, '-');
    p = put_digits(p, 2, tm->tm_mday, 'T');
    p = put_digits(p, 2, tm->tm_hour, ':');
    p = put_digits(p, 2, tm->tm_min, ':');
    return put_digits(p, 2, tm->tm_sec, behind);
}

void time_format_rfc3339(int64_t realtime_ms, char *out)
{
    int ms;
    struct tm tm = split_time(realtime_ms, &ms);

    *put_seconds(out, &tm, 'Z') = '\0';
}

void time_format_rfc3339_micro(int64_t realtime_ms, char *out)
{
    int ms;
    struct tm tm = split_time(realtime_ms, &ms);

    out = put_seconds(out, &tm, '.');
    *put_digits(out, 6, ms * 1000, 'Z') = '\0';
}

/* Reads exactly n digits at *p and moves behind them. */
static bool take_digits(const char **p, int n, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        v = v * 10 + (**p - '0');
    }
    *ret = v;
    return true;
}

static bool take_char(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static bool take_date(const char **p, struct tm *tm)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, leap;

    if (!take_digits(p, 4, &year) || !take_char(p, '-') || !take_digits(p, 2, &month) ||
        !take_char(p, '-') || !take_digits(p, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12)
        return false;
    leap = month == 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0);
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return day >= 1 && day <= days[month - 1] + leap;
}

static bool take_time(const char **p, struct tm *tm)
{
    if (!take_digits(p, 2, &tm->tm_hour) || !take_char(p, ':') || !take_digits(p, 2, &tm->tm_min) ||
        !take_char(p, ':') || !take_digits(p, 2, &tm->tm_sec))
        return false;
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

/* Optional; at least one digit behind the point. */
static bool take_fraction(const char **p, int *ret_ms)
{
    int scale = 100;

    *ret_ms = 0;
    if (!take_char(p, '.'))
        return true;
    if (**p < '0' || **p > '9')
        return false;
    for (; **p >= '0' && **p <= '9'; (*p)++, scale /= 10)
        *ret_ms += (**p - '0') * scale;
    return true;
}

static bool take_offset(const char **p, int *ret_minutes)
{
    int hours, minutes, sign = **p == '-' ? -1 : 1;

    *ret_minutes = 0;
    if (take_char(p, 'Z') || take_char(p, 'z'))
        return true;
    if (!take_char(p, '+') && !take_char(p, '-'))
        return false;
    if (!take_digits(p, 2, &hours) || !take_char(p, ':') || !take_digits(p, 2, &minutes))
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return hours < 24 && minutes < 60;
}

int time_parse_rfc3339(const char *s, int64_t *ret_realtime_ms, Error **error)
{
    const char *p = s;
    struct tm tm = {0};
    int ms, offset_minutes;

    if (!take_date(&p, &tm) || !(take_char(&p, 'T') || take_char(&p, 't')) || !take_time(&p, &tm) ||
        !take_fraction(&p, &ms) || !take_offset(&p, &offset_minutes) || *p)
        return error_set(error, ERROR_INVALID,
                         "\"%.64s\" is not an RFC 3339 time, such as 2026-12-01T11:36:34Z", s);
    *ret_realtime_ms = ((int64_t)timegm(&tm) - (int64_t)offset_minutes * 60) * 1000 + ms;
    return 0;
}
