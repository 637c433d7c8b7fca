/* SPDX-License-Identifier: Apache-2.0 */
/* What an error of the API client says about the write (reconciler.h). */
#include "controller/reconciler.h"

#include "common/base/str.h"

const char *api_outcome_to_string(ApiOutcome o)
{
    static const char *const names[API_OUTCOME_MAX] = {
        [API_OK] = "ok",           [API_CONFLICT] = "conflict",
        [API_EXISTS] = "exists",   [API_NOT_FOUND] = "not_found",
        [API_REFUSED] = "refused", [API_RETRY] = "retry",
        [API_UNKNOWN] = "unknown",
    };

    return names[o];
}

ApiOutcome api_outcome_of_error(const Error *e)
{
    static const ApiOutcome outcomes[ERROR_KIND_MAX] = {
        [ERROR_INTERNAL] = API_UNKNOWN,      [ERROR_INVALID] = API_REFUSED,
        [ERROR_UNAUTHENTICATED] = API_RETRY, [ERROR_DENIED] = API_REFUSED,
        [ERROR_NOT_FOUND] = API_NOT_FOUND,   [ERROR_CONFLICT] = API_CONFLICT,
        [ERROR_EXISTS] = API_EXISTS,         [ERROR_GONE] = API_RETRY,
        [ERROR_TOO_LARGE] = API_REFUSED,     [ERROR_EXHAUSTED] = API_RETRY,
        [ERROR_UNAVAILABLE] = API_UNKNOWN,   [ERROR_TIMEOUT] = API_UNKNOWN,
        [ERROR_CANCELLED] = API_UNKNOWN,
    };

    if (!e)
        return API_OK;
    /* An exceeded quota, not a server that is asked too often: what is wrong belongs in the status.
     */
    if (e->kind == ERROR_EXHAUSTED && e->http_status == 403)
        return API_REFUSED;
    /* Not about the object: a proxy's, or the server's for a version that it does not serve now. */
    if (e->kind == ERROR_NOT_FOUND && !str_eq(e->reason, "NotFound"))
        return API_RETRY;
    return outcomes[e->kind];
}
