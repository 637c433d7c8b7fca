/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a kubeconfig file, apart from reading it: for kube_config_load_file and for tests. */
#pragma once

#include "common/kube/config.h"

#include <stddef.h>

/* path names the text in errors, and its folder is where relative file names start. */
int kube_config_parse(const char *text, size_t len, const char *path, const char *context,
                      KubeConfig **ret, Error **error);
