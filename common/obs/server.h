/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observation port of a daemon: GET /healthz (200 "ok" while the main loop turns; 500 when it
 * has not for stall_ms), GET /readyz (200, or 503 with one line per reason), GET /metrics. Answers
 * on server threads without waiting for the main loop. Not ready ("starting") until
 * obs_server_set_ready says so.
 */
#pragma once

#include "common/net/http_server.h"
#include "common/obs/metrics.h"

typedef struct ObsServer ObsServer;

int obs_server_new(const char *listen, Metrics *metrics, int64_t stall_ms, ObsServer **ret,
                   Error **error);
ObsServer *obs_server_free(ObsServer *s);
uint16_t obs_server_port(const ObsServer *s);
void obs_server_alive(
    ObsServer *s); /* from the main loop, at least every stall_ms / 2; thread-safe */
/* reason NULL: ready. A short text otherwise; thread-safe. */
void obs_server_set_ready(ObsServer *s, const char *not_ready_reason);
