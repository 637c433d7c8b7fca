/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An error in the words for a model: what happened, whether the same call may succeed later, and
 * the one call to make next. Pure.
 */
#pragma once

#include "gateway/tools/tool.h"

#define ADVICE_MAX (2 * ERROR_MESSAGE_MAX)

void tool_write_advice(Buf *out, const Tool *tool, const Error *error);
