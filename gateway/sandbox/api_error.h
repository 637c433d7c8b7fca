/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the gateway's own requests to the API server, in words for a caller: what the server
 * said is passed on, what the network said (addresses, paths) goes to the log instead.
 */
#pragma once

#include "common/base/error.h"

/* A new error of the same kind; never NULL. */
Error *api_error_for_caller(const Error *e) _warn_unused_;
/* The server was reached, and a ResourceQuota is why it refused. */
bool api_error_is_quota(const Error *e);
