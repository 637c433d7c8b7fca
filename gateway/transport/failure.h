/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job failed, in one place: words that the scripts end with, what the sandbox's tools print
 * (C locale; glibc, musl, busybox and dash), what the runtime says when it cannot start a shell,
 * what the API server answered, and what a pod's status tells. All return the kind's negative
 * errno.
 */
#pragma once

#include "common/base/error.h"
#include "common/json/json.h"
#include "common/kube/exec.h"
#include "gateway/transport/transport.h"

#define FAILURE_PATH_MAX 256
/* A path as messages show it: of a long one the end, so that the reason behind it is not cut. */
const char *failure_path(const char *path, char out[FAILURE_PATH_MAX]);
/* The word of a trailer ("directory", "missing", "tool find", …); messages: what the tools wrote to
 * stderr. */
int failure_of_word(const char *word, const char *path, const char *messages, Error **error);
/* True where the messages say that the path leads nowhere, and nothing else is wrong. */
bool failure_is_absence(const char *messages);
/* The exec ended with this Status before the shell said hello: nothing ran. */
int failure_of_status(const ExecStatus *status, Error **error);
/* No tool can work in the sandbox, as its image is: another one is needed. */
int failure_of_image(Error **error, const char *meaning);
/* The upgrade was refused with this HTTP status. */
int failure_of_refusal(const TransportTarget *target, int http_status, Error **error);
/* What a Pod object says about a container in which nothing can be started; 0 and no error where it
 * looks well. */
int failure_of_pod(const TransportTarget *target, const JsonValue *pod, Error **error);

typedef enum LossCause {
    LOSS_UNKNOWN, /* the container that it ran in is not said to have ended, or not yet */
    LOSS_ENDED,   /* that container or its pod ended, or is being ended */
    LOSS_OOM,     /* that container was killed for lack of memory */
} LossCause;
/* What a Pod object says about a command whose end was not seen. started_ms: wall clock. An end
 * from before the command, or of another container than target->container_id, is never its. */
LossCause failure_of_loss(const TransportTarget *target, const JsonValue *pod, int64_t started_ms);
