/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's root object: makes the parts, runs the loop, drains and takes the parts down again.
 * On SIGTERM: /readyz says no and connections are closed after their answer, for --drain-delay;
 * then nothing new is accepted and calls under way may go on for --drain-grace; then they are ended
 * with an error. SIGINT skips the delay, a second signal ends at once. Sandboxes stay.
 */
#pragma once

#include "gateway/config.h"

typedef struct Manager Manager;

/* config must outlive the manager. Fails where the API server's address or an address to listen on
 * is unusable; an API server that is away is waited for. */
int manager_new(const GatewayConfig *config, Manager **ret, Error **error);
Manager *manager_free(Manager *m);
static inline void manager_freep(Manager **m)
{
    *m = manager_free(*m);
}
/* Returns the exit status of the process. */
int manager_run(Manager *m);
