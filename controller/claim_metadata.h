/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a claim may put on its Pod (additionalPodMetadata), and the metadata that the podTemplate of
 * a claimed Sandbox is to have. Private to plan*.c.
 */
#pragma once

#include "controller/names.h"
#include "controller/plan_internal.h"

#define CLAIM_ERROR_MAX 1024

/* False with a sentence where a key or value is not allowed. */
bool claim_metadata_valid(const Claim *c, const PlanConfig *config, char *error, size_t size);
/* False with a sentence where it contradicts the template. */
bool claim_metadata_compatible(const Claim *c, const Template *t, char *error, size_t size);

typedef struct PodTemplateMetadata {
    PairSet labels, annotations;
    NameHash template_ref;
} PodTemplateMetadata;
/* As a Sandbox of this claim, made from this template, has it. Borrows; not to be moved. */
void claim_pod_template_metadata(const Claim *c, const Template *t, PodTemplateMetadata *out);
void pod_template_metadata_done(PodTemplateMetadata *m);
#define _cleanup_pod_metadata_ _cleanup_(pod_template_metadata_done)
