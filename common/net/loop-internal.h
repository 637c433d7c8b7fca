/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the HTTP client and the loop share: the curl multi handle, and who is told when a transfer
 * of it ends. CURLOPT_PRIVATE of every easy handle added to the multi handle points to a LoopJob.
 */
#pragma once

#include "common/net/loop.h"

#include <curl/curl.h>

typedef struct LoopJob {
    /* Runs outside of curl_multi_perform; may free the job. */
    void (*ended)(struct LoopJob *job, CURLcode code);
} LoopJob;

CURLM *loop__multi(Loop *l);
/* Inside of curl_multi_perform, where handles may be neither added nor removed. */
bool loop__performing(const Loop *l);
