/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's flags: one table, from which parsing, --help and docs/configuration.md come. */
#pragma once

#include "common/base/args.h"
#include "common/base/log.h"

/* What a file on its way out takes: itself, its JSON twice, and a copy. */
#define CONFIG_TRANSFER_FACTOR 6

typedef struct GatewayConfig {
    /* as given */
    char *listen;
    char *obs_address;
    char *auth;
    bool anyone_can_run_code;
    char *audience;
    int64_t review_ttl_ms;
    char *kubeconfig;
    char *context;
    char *namespaces_text;
    char *allowed_hosts_text;
    char *allowed_origins_text;
    int64_t max_file_bytes;
    int64_t max_connections;
    int64_t max_transfer_bytes;
    int64_t drain_delay_ms;
    int64_t drain_grace_ms;
    int64_t threads;
    bool use_poll;
    char *log_level_text;
    char *log_format_text;
    bool print_tools_markdown;
    /* derived */
    bool authenticates;
    bool is_loopback;
    char **namespaces; /* empty: all */
    size_t n_namespaces;
    char **allowed_hosts;
    size_t n_allowed_hosts;
    char **allowed_origins;
    size_t n_allowed_origins;
    LogLevel log_level;
    LogFormat log_format;
} GatewayConfig;

extern const ArgProgram gateway_program;

/* Parses and checks. 0; 1 where --help and its like were answered; a negative errno with an error
 * that names the flag. */
int gateway_config_parse(int argc, char **argv, GatewayConfig *ret, Error **error);
void gateway_config_done(GatewayConfig *c);
