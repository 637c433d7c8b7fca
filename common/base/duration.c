/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as flags and API fields write them. */
#include "common/base/args.h"
#include "common/base/str.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};

static bool take_unit(const char **p, int64_t *ret_ms)
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (!str_starts_with(*p, units[i].name))
            continue;
        *p += strlen(units[i].name);
        *ret_ms = units[i].ms;
        return true;
    }
    return false;
}

/* Digits behind a point, as a number and the power of ten it is divided by; digits beyond the ninth
 * are too small to count. */
static bool take_fraction(const char **p, int64_t *ret, int64_t *ret_scale)
{
    const char *start = *p;
    int64_t v = 0, scale = 1;

    for (; **p >= '0' && **p <= '9'; (*p)++) {
        if (scale >= 1000000000)
            continue;
        v = v * 10 + (**p - '0');
        scale *= 10;
    }
    *ret = v;
    *ret_scale = scale;
    return *p > start;
}

static bool take_whole(const char **p, int64_t *ret)
{
    const char *start = *p;
    int64_t v = 0;

    for (; **p >= '0' && **p <= '9'; (*p)++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, **p - '0', &v))
            return false;
    *ret = v;
    return *p > start;
}

/* One number with its unit, added to *ms. */
static bool take_part(const char **p, int64_t *ms)
{
    int64_t whole, part = 0, scale = 1, unit;

    if (!take_whole(p, &whole))
        return false;
    if (**p == '.') {
        (*p)++;
        if (!take_fraction(p, &part, &scale))
            return false;
    }
    if (!take_unit(p, &unit) || __builtin_mul_overflow(whole, unit, &whole) ||
        __builtin_add_overflow(*ms, whole, ms))
        return false;
    return !__builtin_add_overflow(*ms, part * unit / scale, ms);
}

int duration_parse(const char *s, int64_t *ret_ms, Error **error)
{
    const char *p = s;
    int64_t ms = 0;

    if (str_eq(s, "0")) {
        *ret_ms = 0;
        return 0;
    }
    do {
        if (!take_part(&p, &ms))
            return error_set(error, ERROR_INVALID,
                             "\"%.64s\" is not a duration such as 90s, 5m, 1h30m or 250ms", s);
    } while (*p);
    *ret_ms = ms;
    return 0;
}
