/* SPDX-License-Identifier: Apache-2.0 */
/* The status that a Sandbox is to have. Private to plan*.c. */
#pragma once

#include "controller/plan_pod.h"

/* Strings are borrowed from the World and the step. */
typedef struct SandboxStatus {
    ConditionSet conditions;
    const char *selector, *service, *service_fqdn, *node;
    const StrList *pod_ips;
    char selector_text[128];
    char message[POD_ERROR_MAX + 64];
} SandboxStatus;

/* *out refers to itself: it must not be copied. */
void sandbox_status_active(const Sandbox *s, const PodStep *step, int64_t now_ms,
                           SandboxStatus *out);
/* shutdownTime has passed; cleaned: its Pod is gone, or on its way. */
void sandbox_status_expired(const Sandbox *s, bool cleaned, int64_t now_ms, SandboxStatus *out);

bool sandbox_status_same(const Sandbox *s, const SandboxStatus *status);
/* True where the change is only progress on the way to Ready, which a later write will cover. */
bool sandbox_status_can_wait(const Sandbox *s, const SandboxStatus *status);
int sandbox_status_write(const Sandbox *s, const SandboxStatus *status, Plan *plan, Error **error);
