/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside common/json only: json-c's headers, with the two type names moved aside that are functions
 * of json.h.
 */
#pragma once

#define json_bool jsonc_bool
#define json_type jsonc_type
#include <json-c/json.h>
#undef json_bool
#undef json_type
