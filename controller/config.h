/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's settings: a table of flags, the struct they fill, and what the planner is told
 * of them. Upstream's flags that have no counterpart here are accepted and warned about once.
 */
#pragma once

#include "common/base/args.h"
#include "common/base/log.h"
#include "controller/plan.h"

#define CONTROLLER_NAME "sandbox-controller"
#define NAMESPACES_MAX 32

typedef struct Config {
    char *kubeconfig;
    char *namespaces; /* comma-separated; NULL: all */
    char *obs_address;
    char *log_level;
    char *log_format;
    char *label_domains_file;
    char *ignored; /* upstream flags that were given and have no effect */
    bool disable_claim_events;
    bool disable_observability;
    bool enable_warm_pool_eviction;
    bool collect_orphans;
    bool delete_unmarked_orphans;
    int64_t readiness_grace_ms;
    int64_t unschedulable_recheck_ms;
    int64_t pool_batch_max;
    int64_t api_connections;
    int64_t idle_max_ms;
    int64_t sweep_interval_ms;
    /* derived */
    LogLevel level;
    LogFormat format;
    char *namespace_list[NAMESPACES_MAX];
    size_t n_namespaces;
    char **label_domains;
    size_t n_label_domains;
} Config;

extern const ArgProgram config_program;

/* As args_parse: 1 means that help was printed. */
int config_load(int argc, char **argv, Config *c, Error **error);
void config_done(Config *c);
/* Borrows from c. */
PlanConfig config_plan(const Config *c);
