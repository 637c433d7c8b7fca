/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part that a template and the Sandboxes made from it share: pod spec, volume claims, service.
 * Secure defaults are filled in here; hashes tell whether a Sandbox still is what its template
 * would make now, without keeping any of it.
 */
#pragma once

#include "common/json/json.h"

#include <stdint.h>

/* The template's pod spec with the secure defaults (no service account token unless asked for;
 * public DNS where the default network policy closes the cluster's), as JSON text. */
int blueprint_secure_spec(const JsonValue *template_spec, Buf *out);

/* Equal for equal pod spec, volume claims (name and spec, in order) and service; the metadata of
 * both does not count. Any argument may be NULL. 0 is never returned. */
uint64_t blueprint_hash(const JsonValue *pod_spec, const JsonValue *volume_claims,
                        const JsonValue *service);

/* The NetworkPolicy spec that the template asks for, the default one where it asks for none. */
int blueprint_policy_spec(const JsonValue *template_spec, const char *template_ref_hash, Buf *out);
/* Equal for specs that mean the same after the API server's defaulting. */
uint64_t blueprint_policy_hash(const JsonValue *policy_spec);
