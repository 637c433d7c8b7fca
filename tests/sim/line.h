/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line between controller and API server, and the controller's process: requests that take
 * time, get lost on the way there or back, arrive late or are refused; one watch a kind that lags
 * behind and is cut; crashes and restarts.
 */
#pragma once

#include "tests/sim/server.h"

Line *line_new(Sim *sim);
Line *line_free(Line *l);
/* An object was committed: the watches will tell. */
void line_watch_event(Sim *sim, Stored *o, const char *type);
/* After each step: gives the controller time to work. */
void line_step(Sim *sim);
/* NULL while the process is down. */
Reconciler *line_reconciler(const Sim *sim);
void line_restart(Sim *sim);
void line_cut_watch(Sim *sim, ObjKind kind);
/* Monotonic ms since which the process is up and all watches are running; −1: they are not. */
int64_t line_up_since_ms(const Sim *sim);
