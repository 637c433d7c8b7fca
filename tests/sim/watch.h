/* SPDX-License-Identifier: Apache-2.0 */
/* One watch: a list in pieces, then events in order, late and sometimes twice, until it is cut. */
#pragma once

#include "tests/sim/server.h"

typedef struct WatchStream WatchStream;

WatchStream *watch_stream_new(ObjKind kind);
WatchStream *watch_stream_free(WatchStream *w);
void watch_stream_start(Sim *sim, WatchStream *w); /* lists, then watches */
void watch_stream_stop(WatchStream *w);
/* Loses what is on its way; lists again after a while. */
void watch_stream_cut(Sim *sim, WatchStream *w);
void watch_stream_event(Sim *sim, WatchStream *w, Stored *o, const char *type);
int64_t watch_stream_up_since_ms(const WatchStream *w); /* −1: not up */
