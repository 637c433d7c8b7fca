/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubernetes Events (core/v1). Best effort by nature: events wait in a bounded queue behind all
 * other writes, equal ones within 10 min are one POST, then a patch of count at most every 60 s;
 * the rate is limited (burst 25 per object, refill one per 5 s); what is dropped is counted.
 */
#pragma once

#include "common/kube/client.h"

#define KUBE_EVENTS_QUEUE_MAX 4096

typedef struct KubeEvents KubeEvents;

typedef struct KubeEvent {
    const KubeResource *resource; /* of the object concerned; static */
    const char *ns, *name, *uid, *resource_version;
    bool warning;
    const char *reason; /* CamelCase */
    const char *action; /* may be NULL */
    const char *message;
    const char *annotations_json; /* object text or NULL */
} KubeEvent;

KubeEvents *kube_events_new(KubeClient *c, const char *component, const char *instance);
KubeEvents *kube_events_free(KubeEvents *e);
void kube_events_emit(KubeEvents *e, const KubeEvent *event); /* copies */
uint64_t kube_events_dropped(const KubeEvents *e);
/* Written to the server neither as a new event nor as a count yet. */
size_t kube_events_pending(const KubeEvents *e);
