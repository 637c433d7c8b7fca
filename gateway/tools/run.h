/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tools that work inside a sandbox share: finding it, saying clearly why it cannot be
 * used, holding it while a command runs. Loop thread.
 */
#pragma once

#include "gateway/call.h"

#define TOOL_COMMAND_MAX TRANSPORT_COMMAND_MAX

/* Called with a sandbox that can be used; starts a job and sets *ret, or fails. */
typedef int (*ToolStartFn)(Call *c, const TransportTarget *target, TransportJob **ret,
                           Error **error);
/* Finds the sandbox of the call, notes its use, and starts the job; answers the call itself where
 * that does not work out. The tool's done function gets the call as userdata and hands all of it
 * to run_answer(). */
void run_in_sandbox(Call *c, ToolStartFn start);
/* The state_free of such a tool: a look-up that is still under way is given up. */
void run_state_free(void *state);
/* Writes the structured result of a job that did what it was asked; a negative return fails the
 * call with *error. */
typedef int (*ToolWriteFn)(Call *c, TransportResult *result, Buf *out, Error **error);
/* The job is over: the call no longer cancels it, the sandbox's use is noted again, and the call is
 * answered: with what write makes of the result, or with why the job failed. */
void run_answer(Call *c, TransportResult *result, const Error *failed, ToolWriteFn write);

/* Why a sandbox cannot be used, with what to do about it. */
int run_unusable(const SandboxView *view, const ToolArgs *args, Error **error);
