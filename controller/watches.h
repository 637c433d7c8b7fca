/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's watches: one reflector for each kind (and namespace, where it is restricted to
 * some), feeding the reconciler. Pods are watched by the tracking label alone.
 */
#pragma once

#include "common/obs/metrics.h"
#include "controller/config.h"
#include "controller/reconciler.h"

typedef struct Watches Watches;

/* changed is called (on the loop) after anything was fed. */
int watches_new(KubeClient *kube, Reconciler *r, Metrics *metrics, const Config *config,
                LoopFn changed, void *userdata, Watches **ret, Error **error);
Watches *watches_free(Watches *w);
