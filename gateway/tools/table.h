/* SPDX-License-Identifier: Apache-2.0 */
/* One row a tool; each is defined in the file of its name. */
#pragma once

#include "gateway/tools/tool.h"

extern const Tool tool_create_sandbox;
extern const Tool tool_delete_sandbox;
extern const Tool tool_download_file;
extern const Tool tool_execute_command;
extern const Tool tool_file_exists;
extern const Tool tool_get_sandbox_status;
extern const Tool tool_list_files;
extern const Tool tool_upload_file;
