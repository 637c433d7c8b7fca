/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/op_log.h"

#include "common/base/log.h"

/* A refusal or an unknown outcome is news for an admin; a conflict is everyday life. */
static LogLevel level_of(ApiOutcome outcome)
{
    return outcome == API_REFUSED || outcome == API_UNKNOWN ? LOG_WARN : LOG_DEBUG;
}

void op_log(const char *key, const PlanOp *op, const ApiResult *result)
{
    log_at(level_of(result->outcome), "API write", LOGF_STR("key", key),
           LOGF_STR("purpose", op->purpose), LOGF_STR("verb", plan_verb_to_string(op->verb)),
           LOGF_STR("name", op->name), LOGF_STR("outcome", api_outcome_to_string(result->outcome)),
           LOGF_STR("error", result->message));
    if (result->outcome == API_OK && op->note.message)
        log_info(op->note.message, LOGF_STR("namespace", op->ns), LOGF_STR("claim", op->note.claim),
                 LOGF_STR("sandbox", op->note.sandbox), LOGF_STR("cause", op->note.cause));
}
