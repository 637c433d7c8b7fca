/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"
#include "common/base/process.h"
#include "controller/config.h"
#include "controller/manager.h"

#include <stdio.h>
#include <stdlib.h>

#define EXIT_USAGE 2

static int fail(const char *what, const Error *error)
{
    log_error(what, LOGF_STR("error", error_message(error)),
              LOGF_STR("hint", error ? error->hint : NULL));
    return EXIT_FAILURE;
}

static int fail_usage(const Error *error)
{
    (void)fprintf(stderr, "%s: %s\n", CONTROLLER_NAME, error_message(error));
    if (error && error->hint)
        (void)fprintf(stderr, "%s\n", error->hint);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    _cleanup_(config_done) Config config = {0};
    _cleanup_error_ Error *error = NULL;
    int r = config_load(argc, argv, &config, &error);
    if (r > 0)
        return EXIT_SUCCESS;
    if (r < 0)
        return fail_usage(error);
    log_init("controller", config.level, config.format);
    process_harden();
    log_info("starting", LOGF_STR("version", SANDBOX_VERSION),
             LOGF_STR("namespaces", config.namespaces ? config.namespaces : "all"));
    if (config.ignored)
        log_warn("flags without effect here", LOGF_STR("flags", config.ignored));

    _cleanup_(manager_freep) Manager *manager = NULL;
    r = manager_new(&config, &manager, &error);
    if (r < 0)
        return fail("cannot start", error);
    return manager_run(manager);
}
