/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/process.h"
#include "gateway/manager.h"
#include "gateway/tools/tool.h"

#include <stdio.h>

#define MARKDOWN_MAX (1024 * 1024)
#define EXIT_USAGE 2

static int fail(int status, const Error *error)
{
    (void)fprintf(stderr, "sandbox-gateway: %s\n", error_message(error));
    if (error && error->hint)
        (void)fprintf(stderr, "%s\n", error->hint);
    return status;
}

static int print_tools(void)
{
    _cleanup_buf_ Buf out = BUF_INIT(MARKDOWN_MAX);

    tools_write_markdown(&out);
    return fwrite(buf_str(&out), 1, out.len, stdout) == out.len && fflush(stdout) == 0 ? 0 : 1;
}

static int serve(const GatewayConfig *config)
{
    _cleanup_error_ Error *error = NULL;
    _cleanup_(manager_freep) Manager *manager = NULL;

    process_harden();
    log_init("gateway", config->log_level, config->log_format);
    if (manager_new(config, &manager, &error) < 0)
        return fail(1, error);
    return manager_run(manager);
}

int main(int argc, char **argv)
{
    _cleanup_(gateway_config_done) GatewayConfig config = {0};
    _cleanup_error_ Error *error = NULL;
    int r = gateway_config_parse(argc, argv, &config, &error);

    if (r < 0)
        return fail(EXIT_USAGE, error);
    if (r > 0)
        return 0;
    return config.print_tools_markdown ? print_tools() : serve(&config);
}
