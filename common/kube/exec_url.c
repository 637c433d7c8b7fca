/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/exec_url.h"

#include "common/base/str.h"
#include "common/kube/client.h"

#include <assert.h>
#include <string.h>

static void add_text(Buf *out, const char *key, const char *value)
{
    buf_printf(out, "%s=", key);
    str_url_encode(out, value, strlen(value), false);
    buf_append_char(out, '&');
}

static void add_flag(Buf *out, const char *key, bool value)
{
    buf_printf(out, "%s=%s&", key, value ? "true" : "false");
}

void kube_exec_path(Buf *out, const KubeExec *exec)
{
    static const KubeResource pods = {
        .group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
    assert(exec->n_command > 0);
    kube_path(out, &pods, exec->ns, exec->pod, "exec");
    buf_append_char(out, '?');
    for (size_t i = 0; i < exec->n_command; i++)
        add_text(out, "command", exec->command[i]);
    if (exec->container)
        add_text(out, "container", exec->container);
    add_flag(out, "stdin", exec->stdin_);
    add_flag(out, "stdout", exec->stdout_);
    add_flag(out, "stderr", exec->stderr_);
    buf_printf(out, "tty=%s", exec->tty ? "true" : "false");
}
