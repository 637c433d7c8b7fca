/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, in two kinds that never mix. Deadlines of the API are wall-clock (realtime) milliseconds
 * since the epoch; waits are monotonic milliseconds. Whatever needs the time takes a Clock, so that
 * the simulation can own it. RFC 3339 as Kubernetes writes it (metav1.Time: seconds, "Z";
 * MicroTime: six digits).
 */
#pragma once

#include "common/base/error.h"

#include <stdint.h>

typedef struct Clock {
    int64_t (*realtime_ms)(void *userdata);
    int64_t (*monotonic_ms)(void *userdata);
    void *userdata;
} Clock;

extern const Clock clock_system; /* thread-safe */

int64_t clock_realtime_ms(const Clock *c);
int64_t clock_monotonic_ms(const Clock *c);

#define RFC3339_MAX 40
/* Writes "2026-12-01T11:36:34Z" into out[RFC3339_MAX]; the sub-second part is dropped. Times
 * outside the years 1 to 9999 are clamped. */
void time_format_rfc3339(int64_t realtime_ms, char *out);
/* With six fractional digits. */
void time_format_rfc3339_micro(int64_t realtime_ms, char *out);
/* Accepts RFC 3339 with optional fraction and any offset; the fraction is cut to milliseconds.
 * Leap seconds (":60") are refused, as Kubernetes does. */
int time_parse_rfc3339(const char *s, int64_t *ret_realtime_ms, Error **error);
