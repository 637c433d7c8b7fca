/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/config.h"

#include "common/base/file.h"
#include "common/base/str.h"

#include <ctype.h>
#include <string.h>

#define LABEL_DOMAINS_FILE "/etc/sandbox-config/allowed-label-domains"
#define LABEL_DOMAINS_DEFAULT "sandbox.users.io"
#define LABEL_DOMAINS_FILE_MAX (64 * 1024)
#define LABEL_DOMAINS_MAX 256

#define DAY_MS (24LL * 3600 * 1000)
#define FLAG(field) offsetof(Config, field)
#define IGNORED(flag, value)                                                                       \
    {                                                                                              \
        .name = (flag), .type = ARG_IGNORED, .offset = FLAG(ignored), .value_name = (value),       \
        .help = "Of upstream's controller; accepted, without effect.",                             \
    }

static const ArgSpec flags[] = {
    {.name = "kubeconfig",
     .type = ARG_STRING,
     .offset = FLAG(kubeconfig),
     .value_name = "FILE",
     .help = "How to reach the API server. Default: $KUBECONFIG, else the pod's service account, "
             "else ~/.kube/config."},
    {.name = "namespaces",
     .type = ARG_STRING,
     .offset = FLAG(namespaces),
     .value_name = "NS,NS",
     .help = "Work in these namespaces only (at most 32). Default: in all of them."},
    {.name = "obs-address",
     .type = ARG_STRING,
     .offset = FLAG(obs_address),
     .def = ":9090",
     .value_name = "ADDR:PORT",
     .help = "Where /healthz, /readyz and /metrics are served."},
    {.name = "log-level",
     .type = ARG_STRING,
     .offset = FLAG(log_level),
     .def = "info",
     .value_name = "LEVEL",
     .help = "debug, info, warn or error."},
    {.name = "log-format",
     .type = ARG_STRING,
     .offset = FLAG(log_format),
     .def = "json",
     .value_name = "FORMAT",
     .help = "json (a JSON object a line) or text."},
    {.name = "disable-claim-events",
     .type = ARG_BOOL,
     .offset = FLAG(disable_claim_events),
     .help = "Emit no Events on claims."},
    {.name = "disable-claim-observability-annotations",
     .type = ARG_BOOL,
     .offset = FLAG(disable_observability),
     .help = "Do not record on claims when they were first observed and first Ready."},
    {.name = "enable-warm-pool-eviction",
     .type = ARG_BOOL,
     .offset = FLAG(enable_warm_pool_eviction),
     .def = "true",
     .help = "Let the cluster autoscaler evict pods of a warm pool that nobody uses yet."},
    {.name = "collect-orphans",
     .type = ARG_BOOL,
     .offset = FLAG(collect_orphans),
     .def = "true",
     .help = "Delete Sandboxes and Pods that a controller made and whose owner is proved gone."},
    {.name = "delete-unmarked-orphans",
     .type = ARG_BOOL,
     .offset = FLAG(delete_unmarked_orphans),
     .help = "Delete orphans without a controller's mark too, which are only reported otherwise. "
             "Objects that somebody left to be adopted are deleted as well."},
    {.name = "orphan-sweep-interval",
     .type = ARG_DURATION,
     .offset = FLAG(sweep_interval_ms),
     .def = "10m",
     .min = 1000,
     .max = DAY_MS,
     .help = "How often everything is checked for orphans, beside the check on each change."},
    {.name = "sandbox-warm-pool-readiness-grace-period",
     .type = ARG_DURATION,
     .offset = FLAG(readiness_grace_ms),
     .def = "5m",
     .min = 1000,
     .max = DAY_MS,
     .help = "A member of a warm pool that is not Ready for longer is replaced."},
    {.name = "sandbox-warm-pool-unschedulable-recheck-interval",
     .type = ARG_DURATION,
     .offset = FLAG(unschedulable_recheck_ms),
     .def = "1m",
     .min = 1000,
     .max = DAY_MS,
     .help = "How often a member that no node can take is looked at again."},
    {.name = "sandbox-warm-pool-max-batch-size",
     .type = ARG_INT,
     .offset = FLAG(pool_batch_max),
     .def = "300",
     .min = 1,
     .max = 10000,
     .help = "Creations or deletions of one warm pool in one step."},
    {.name = "api-connections",
     .type = ARG_INT,
     .offset = FLAG(api_connections),
     .def = "12",
     .min = 1,
     .max = 64,
     .help = "Connections to the API server, watches not counted."},
    {.name = "max-idle-timeout",
     .type = ARG_DURATION,
     .offset = FLAG(idle_max_ms),
     .def = "0",
     .min = 0,
     .max = 365 * DAY_MS,
     .help = "Ceiling of the idle time-outs that claims ask for; 0: none."},
    {.name = "allowed-label-domains-file",
     .type = ARG_STRING,
     .offset = FLAG(label_domains_file),
     .def = LABEL_DOMAINS_FILE,
     .value_name = "FILE",
     .help = "Label domains that a claim may set on its Pod, separated by commas or lines. Without "
             "the file: " LABEL_DOMAINS_DEFAULT "."},
    IGNORED("extensions", NULL), /* always on here */
    IGNORED("leader-elect", NULL),
    IGNORED("leader-election-namespace", "NS"),
    IGNORED("metrics-bind-address", "ADDR"),
    IGNORED("health-probe-bind-address", "ADDR"),
    IGNORED("cluster-domain", "DOMAIN"),
    IGNORED("kube-api-qps", "N"),
    IGNORED("kube-api-burst", "N"),
    IGNORED("separate-watch-connection", NULL),
    IGNORED("sandbox-concurrent-workers", "N"),
    IGNORED("sandbox-claim-concurrent-workers", "N"),
    IGNORED("sandbox-warm-pool-concurrent-workers", "N"),
    IGNORED("sandbox-template-concurrent-workers", "N"),
    IGNORED("sandbox-warm-pool-replenish-delay", "TIME"),
    IGNORED("sandbox-warm-pool-max-refill-rate", "N"),
    IGNORED("sandbox-write-behind-window", "TIME"),
    IGNORED("cache-label-selectors", NULL),
    IGNORED("enable-tracing", NULL),
    IGNORED("enable-pprof", NULL),
    IGNORED("enable-pprof-debug", NULL),
    IGNORED("pprof-block-profile-rate", "N"),
    IGNORED("pprof-mutex-profile-fraction", "N"),
    IGNORED("zap-devel", NULL),
    IGNORED("zap-encoder", "NAME"),
    IGNORED("zap-log-level", "LEVEL"),
    IGNORED("zap-stacktrace-level", "LEVEL"),
    IGNORED("zap-time-encoding", "NAME"),
};

const ArgProgram config_program = {
    .name = CONTROLLER_NAME,
    .summary = "Reconciles Sandbox, SandboxTemplate, SandboxWarmPool and SandboxClaim.",
    .epilog = "Reads and writes through the API server alone; killing it loses nothing.",
    .specs = flags,
    .n_specs = ARRAY_SIZE(flags),
};

/* Calls take for each non-empty word between separators, trimmed. */
static int words_each(const char *text, const char *separators, size_t max,
                      int (*take)(Config *c, const char *word, size_t len, Error **error),
                      Config *c, Error **error)
{
    size_t count = 0;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, separators);
        const char *word = at;
        at += len + (at[len] != '\0');
        while (len > 0 && isspace((unsigned char)*word))
            word++, len--;
        while (len > 0 && isspace((unsigned char)word[len - 1]))
            len--;
        if (len == 0)
            continue;
        if (++count > max)
            return error_set(error, ERROR_INVALID, "more than %zu entries in a list", max);
        int r = take(c, word, len, error);
        if (r < 0)
            return r;
    }
    return 0;
}

static int take_namespace(Config *c, const char *word, size_t len, Error **error)
{
    _cleanup_free_ char *ns = xstrndup(word, len);
    if (!str_is_dns_label(ns))
        return error_set(error, ERROR_INVALID, "--namespaces: \"%s\" is no namespace name", ns);
    for (size_t i = 0; i < c->n_namespaces; i++)
        if (str_eq(c->namespace_list[i], ns))
            return 0;
    c->namespace_list[c->n_namespaces++] = TAKE_PTR(ns);
    return 0;
}

static int take_label_domain(Config *c, const char *word, size_t len, Error **error)
{
    (void)error;
    char *domain = xstrndup(word, len);
    for (char *p = domain; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    c->label_domains = xreallocarray(c->label_domains, c->n_label_domains + 1, sizeof(char *));
    c->label_domains[c->n_label_domains++] = domain;
    return 0;
}

static int load_label_domains(Config *c, Error **error)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_error_ Error *unread = NULL;
    int r = file_read_text(c->label_domains_file, LABEL_DOMAINS_FILE_MAX, &text, &unread);
    if (r < 0 && unread->kind != ERROR_NOT_FOUND)
        return error_set(error, unread->kind, "%s", error_message(unread));
    r = words_each(text ? text : "", ",\r\n", LABEL_DOMAINS_MAX, take_label_domain, c, error);
    if (r < 0)
        return error_wrap(error, r, "%s", c->label_domains_file);
    if (c->n_label_domains == 0)
        (void)take_label_domain(c, LABEL_DOMAINS_DEFAULT, strlen(LABEL_DOMAINS_DEFAULT), NULL);
    return 0;
}

static int derive(Config *c, Error **error)
{
    if (log_level_from_string(c->log_level, &c->level) < 0)
        return error_set(error, ERROR_INVALID, "--log-level takes debug, info, warn or error");
    if (log_format_from_string(c->log_format, &c->format) < 0)
        return error_set(error, ERROR_INVALID, "--log-format takes json or text");
    int r = 0;
    if (c->namespaces)
        r = words_each(c->namespaces, ",", NAMESPACES_MAX, take_namespace, c, error);
    return r < 0 ? r : load_label_domains(c, error);
}

int config_load(int argc, char **argv, Config *c, Error **error)
{
    *c = (Config){0};
    int r = args_parse(&config_program, argc, argv, c, error);
    if (r != 0)
        return r;
    r = derive(c, error);
    if (r < 0)
        config_done(c);
    return r;
}

void config_done(Config *c)
{
    for (size_t i = 0; i < c->n_namespaces; i++)
        free(c->namespace_list[i]);
    for (size_t i = 0; i < c->n_label_domains; i++)
        free(c->label_domains[i]);
    free(c->label_domains);
    args_done(&config_program, c);
    *c = (Config){0};
}

PlanConfig config_plan(const Config *c)
{
    PlanConfig p = plan_config_default;
    p.claim_events = !c->disable_claim_events;
    p.observability_annotations = !c->disable_observability;
    p.warm_pool_eviction = c->enable_warm_pool_eviction;
    p.readiness_grace_ms = c->readiness_grace_ms;
    p.unschedulable_recheck_ms = c->unschedulable_recheck_ms;
    p.pool_batch_max = c->pool_batch_max;
    p.label_domains = (const char *const *)c->label_domains;
    p.n_label_domains = c->n_label_domains;
    p.idle_max_ms = c->idle_max_ms;
    p.collect_orphans = c->collect_orphans;
    p.delete_unmarked = c->delete_unmarked_orphans;
    return p;
}
