/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reconciler's door to the real API server: an ApiPort over KubeClient. Writes are tried
 * exactly once here, because what follows a failure is the reconciler's to decide; reads are
 * retried by the client. Answers come from the loop, never from inside a call of the port.
 */
#pragma once

#include "common/kube/events.h"
#include "common/obs/metrics.h"
#include "controller/reconciler.h"

typedef struct ApiGate ApiGate;

/* after_answer is called (on the loop) after each answer was handed to the reconciler. Writes and
 * their outcomes are counted in metrics (metrics.h). */
ApiGate *api_gate_new(KubeClient *kube, KubeEvents *events, Metrics *metrics, LoopFn after_answer,
                      void *userdata);
/* Forgets what is under way. */
ApiGate *api_gate_free(ApiGate *g);
/* Fills the port; its userdata becomes the gate. */
void api_gate_port(ApiGate *g, ApiPort *port);
/* Answers go here; call before the first request. */
void api_gate_connect(ApiGate *g, Reconciler *r);
