/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/api_error.h"

#include "common/base/log.h"

#include <string.h>

bool api_error_is_quota(const Error *e)
{
    return strstr(e->message, "exceeded quota") != NULL;
}

static bool is_about_the_network(const Error *e)
{
    return e->http_status == 0 &&
           (e->kind == ERROR_UNAVAILABLE || e->kind == ERROR_TIMEOUT || e->kind == ERROR_INTERNAL);
}

Error *api_error_for_caller(const Error *e)
{
    Error *told = NULL;

    if (!is_about_the_network(e))
        return error_copy(e);
    log_warn("request to the API server failed", LOGF_STR("error", error_message(e)));
    (void)error_set(&told, e->kind, "%s",
                    e->kind == ERROR_TIMEOUT
                        ? "the Kubernetes API server did not answer in time"
                        : "the Kubernetes API server cannot be reached at the moment");
    return told;
}
