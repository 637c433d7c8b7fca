/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says when the wall clock was set: deadlines of the API are wall-clock instants, waits are
 * monotonic, so a jump makes every wait wrong. Costs nothing while nobody touches the clock.
 */
#pragma once

#include "common/net/loop.h"

typedef struct WallClock WallClock;

int wallclock_new(Loop *l, LoopFn on_jump, void *userdata, WallClock **ret, Error **error);
WallClock *wallclock_free(WallClock *w);
