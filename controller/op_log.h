/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's lines about writes. Each is told at level debug. At level info an admin reads one line
 * for each sandbox that changed hands, was made for a claim, came to its end or was collected, with
 * claim, sandbox and cause; at level warn what was refused, and what may or may not have happened.
 */
#pragma once

#include "controller/reconciler.h"

void op_log(const char *key, const PlanOp *op, const ApiResult *result);
