/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool has to hand out: its ready members by node, and those that are still starting. Picks
 * the oldest on the node that has the most, so that what is taken spreads over the nodes. Keyed by
 * the pool's UID, so that it does not matter whether the pool itself is known yet.
 */
#pragma once

#include "controller/model.h"

typedef struct Candidates Candidates;

Candidates *candidates_new(void) _warn_unused_;
Candidates *candidates_free(Candidates *c);

/* Puts the sandbox where it belongs now, or nowhere; keeps its place where that is unchanged.
 * before (may be NULL, may be s itself) is the view that s takes the place of. */
void candidates_update(Candidates *c, Sandbox *before, Sandbox *s);
void candidates_remove(Candidates *c, Sandbox *s);

typedef bool (*CandidateSkipFn)(const Sandbox *s, void *userdata);
Sandbox *candidates_pick(const Candidates *c, const char *pool_uid, CandidateSkipFn skip,
                         void *userdata);
size_t candidates_ready(const Candidates *c, const char *pool_uid);
/* List of Sandbox.candidate, or NULL. */
const List *candidates_warming(const Candidates *c, const char *pool_uid);
/* True where it could be handed to a claim, ready or not. */
bool sandbox_is_adoptable(const Sandbox *s);
bool sandbox_is_ready(const Sandbox *s);
