/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a command in a container: path and query of the pods/exec subresource. */
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>

typedef struct KubeExec {
    const char *ns, *pod;  /* checked names */
    const char *container; /* or NULL: the server picks */
    const char *const *command;
    size_t n_command; /* at least one */
    bool stdin_, stdout_, stderr_, tty;
} KubeExec;

/* Appends "/api/v1/namespaces/NS/pods/POD/exec?command=…&…". Arguments may hold any byte but NUL.
 */
void kube_exec_path(Buf *out, const KubeExec *exec);
