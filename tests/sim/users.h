/* SPDX-License-Identifier: Apache-2.0 */
/* People, jobs and gateways: they make, change and delete whatever the API lets them, sensibly and
 * otherwise. */
#pragma once

#include "tests/sim/server.h"

/* Sets the scene: two namespaces with templates and pools. */
void users_start(Sim *sim);
/* One random deed, then the next one a little later, for as long as the simulation is not quiet. */
void users_act(Sim *sim, void *arg);
