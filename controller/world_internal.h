/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the World. Private to world*.c. */
#pragma once

#include "controller/candidates.h"
#include "controller/index.h"
#include "controller/world.h"

struct World {
    Interner *interner;
    ObjTable tables[OBJ_KIND_MAX];
    unsigned list_epoch[OBJ_KIND_MAX];
    Index children; /* (controller's UID, –) → Obj.by_owner */
    Index claims_by_pool, pools_by_template, unowned_sandboxes, unowned_pods, waiters;
    const char *class_claim, *class_pool; /* of unowned_sandboxes */
    Candidates *candidates;
    WorldChangeFn observer;
    void *observer_userdata;
};

/* Enters a view into all relations; old (may be NULL) leaves them, and hands over its places in
 * ordered lists where they are the same. */
void world_link(World *w, Obj *old, Obj *o);
void world_unlink(World *w, Obj *o);
