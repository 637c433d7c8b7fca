/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of the cluster does by itself: kubelet starts and stops Pods, and Pods fail; the
 * garbage collector follows owner references, in all three ways of deleting. */
#pragma once

#include "tests/sim/server.h"

/* Called after each commit. */
void cluster_commit(Sim *sim, Stored *o, const char *type);
