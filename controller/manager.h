/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's root object: one event loop, on it the API client, the watches, the reconciler
 * and its timer. Beside the loop's thread there is only the observation port's.
 */
#pragma once

#include "controller/config.h"

typedef struct Manager Manager;

/* config is borrowed and must outlive the manager. */
int manager_new(const Config *config, Manager **ret, Error **error);
/* Until SIGTERM or SIGINT: returns the exit status. */
int manager_run(Manager *m);
Manager *manager_free(Manager *m);

static inline void manager_freep(Manager **m)
{
    *m = manager_free(*m);
}
