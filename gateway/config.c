/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/config.h"

#include "common/base/str.h"

#include <string.h>

#define LIST_MAX 256

static const ArgSpec specs[] = {
    {"listen", ARG_STRING, offsetof(GatewayConfig, listen), "127.0.0.1:8080", "ADDR:PORT",
     "Where MCP is served, at /mcp. \":8080\" is every address.", 0, 0},
    {"obs-address", ARG_STRING, offsetof(GatewayConfig, obs_address), "127.0.0.1:9090", "ADDR:PORT",
     "Where /healthz, /readyz and /metrics are served.", 0, 0},
    {"auth", ARG_STRING, offsetof(GatewayConfig, auth), "kubernetes", "MODE",
     "\"kubernetes\": bearer tokens of the cluster, checked by TokenReview, and rights checked by "
     "SubjectAccessReview. \"none\": every caller is the same anonymous user and may do "
     "everything; only on a loopback address.",
     0, 0},
    {"i-understand-that-anyone-can-run-code", ARG_BOOL,
     offsetof(GatewayConfig, anyone_can_run_code), NULL, NULL, "Allows --auth=none on any address.",
     0, 0},
    {"audience", ARG_STRING, offsetof(GatewayConfig, audience), "k8s-agent-sandbox-mcp", "NAME",
     "The audience that tokens must have been issued for.", 0, 0},
    {"review-ttl", ARG_DURATION, offsetof(GatewayConfig, review_ttl_ms), "30s", NULL,
     "How long an answer about a token or a right is believed; a refusal at most 5s.", 1000,
     600000},
    {"kubeconfig", ARG_STRING, offsetof(GatewayConfig, kubeconfig), NULL, "FILE",
     "Where the API server is. Without it: $KUBECONFIG, else the service account of the pod, else "
     "~/.kube/config.",
     0, 0},
    {"context", ARG_STRING, offsetof(GatewayConfig, context), NULL, "NAME",
     "The context of the kubeconfig; without it its current one.", 0, 0},
    {"namespaces", ARG_STRING, offsetof(GatewayConfig, namespaces_text), NULL, "NS[,NS…]",
     "The namespaces that are served; without it all. Rights are needed in these alone.", 0, 0},
    {"allowed-hosts", ARG_STRING, offsetof(GatewayConfig, allowed_hosts_text), NULL, "HOST[,HOST…]",
     "Names in the Host header that are served, whatever the port. Without it: on a loopback "
     "address localhost, 127.0.0.1 and [::1], on others every name.",
     0, 0},
    {"allowed-origins", ARG_STRING, offsetof(GatewayConfig, allowed_origins_text), NULL,
     "ORIGIN[,ORIGIN…]",
     "Values of the Origin header (browsers send it) that are served, such as "
     "https://agent.example. On a loopback address those of localhost are, too.",
     0, 0},
    {"max-file-bytes", ARG_INT, offsetof(GatewayConfig, max_file_bytes), "16777216", "BYTES",
     "The largest file that upload_file and download_file carry.", 1, 16777216},
    {"max-transfer-bytes", ARG_INT, offsetof(GatewayConfig, max_transfer_bytes), "268435456",
     "BYTES",
     "The sum of all request bodies under way (429 beyond), and the memory for files that wait to "
     "be "
     "written or read. At least six times --max-file-bytes.",
     1, 17179869184},
    {"max-connections", ARG_INT, offsetof(GatewayConfig, max_connections), "4096", "N",
     "Connections of clients at a time.", 1, 65536},
    {"drain-delay", ARG_DURATION, offsetof(GatewayConfig, drain_delay_ms), "5s", NULL,
     "After SIGTERM: how long new calls are still served, while /readyz already says no, so that "
     "nobody is sent here any more when the port closes.",
     0, 300000},
    {"drain-grace", ARG_DURATION, offsetof(GatewayConfig, drain_grace_ms), "30s", NULL,
     "After that: how long calls under way may take; what takes longer is ended with an error.", 0,
     3600000},
    {"threads", ARG_INT, offsetof(GatewayConfig, threads), "1", "N",
     "Threads that read requests and write answers.", 1, 2},
    {"use-poll", ARG_BOOL, offsetof(GatewayConfig, use_poll), NULL, NULL,
     "poll() in place of epoll for client connections.", 0, 0},
    {"log-level", ARG_STRING, offsetof(GatewayConfig, log_level_text), "info", "LEVEL",
     "debug, info, warn or error.", 0, 0},
    {"log-format", ARG_STRING, offsetof(GatewayConfig, log_format_text), "text", "FORMAT",
     "text or json (a line an event, on stderr).", 0, 0},
    {"print-tools-markdown", ARG_BOOL, offsetof(GatewayConfig, print_tools_markdown), NULL, NULL,
     "Prints docs/tools.md and exits.", 0, 0},
};

const ArgProgram gateway_program = {
    .name = "sandbox-gateway",
    .summary = "MCP server that gives agents sandboxes on Kubernetes.",
    .epilog = "SIGTERM drains and stops. No sandbox is ever deleted because a gateway stops.",
    .specs = specs,
    .n_specs = ARRAY_SIZE(specs),
};

/* "a,b" into a list; empty parts are skipped. */
static int split(const char *flag, const char *text, bool (*is_valid)(const char *), char ***ret,
                 size_t *ret_n, Error **error)
{
    _cleanup_free_ char *copy = xstrdup(text ? text : "");
    char *rest = copy;
    char *part;

    *ret = xcalloc(LIST_MAX, sizeof(char *));
    while ((part = strsep(&rest, ","))) {
        if (str_empty(part))
            continue;
        if (!is_valid(part))
            return error_set(error, ERROR_INVALID, "--%s: \"%.64s\" is not valid", flag, part);
        if (*ret_n == LIST_MAX)
            return error_set(error, ERROR_TOO_LARGE, "--%s takes at most %d parts", flag, LIST_MAX);
        (*ret)[(*ret_n)++] = xstrdup(part);
    }
    return 0;
}

static bool is_host(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_[]:") ==
           strlen(s);
}

static bool is_origin(const char *s)
{
    return str_starts_with(s, "http://") || str_starts_with(s, "https://");
}

static bool is_loopback(const char *listen)
{
    static const char *const hosts[] = {"127.", "localhost:", "[::1]:"};

    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
        if (str_starts_with(listen, hosts[i]))
            return true;
    return false;
}

static int check_auth(GatewayConfig *c, Error **error)
{
    c->authenticates = str_eq(c->auth, "kubernetes");
    c->is_loopback = is_loopback(c->listen);
    if (!c->authenticates && !str_eq(c->auth, "none"))
        return error_set(error, ERROR_INVALID,
                         "--auth takes \"kubernetes\" or \"none\", not \"%.64s\"", c->auth);
    if (!c->authenticates && !c->is_loopback && !c->anyone_can_run_code)
        return error_set(error, ERROR_INVALID,
                         "--auth=none on %s would let anyone who reaches it run code in your "
                         "cluster; listen on a loopback address, or add "
                         "--i-understand-that-anyone-can-run-code",
                         c->listen);
    if (c->authenticates && str_empty(c->audience))
        return error_set(error, ERROR_INVALID, "--audience must not be empty");
    return 0;
}

static int check_log(GatewayConfig *c, Error **error)
{
    if (log_level_from_string(c->log_level_text, &c->log_level) < 0)
        return error_set(error, ERROR_INVALID,
                         "--log-level takes debug, info, warn or error, not \"%.64s\"",
                         c->log_level_text);
    if (log_format_from_string(c->log_format_text, &c->log_format) < 0)
        return error_set(error, ERROR_INVALID, "--log-format takes text or json, not \"%.64s\"",
                         c->log_format_text);
    return 0;
}

static int check_sizes(const GatewayConfig *c, Error **error)
{
    if (c->max_transfer_bytes >= CONFIG_TRANSFER_FACTOR * c->max_file_bytes)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "--max-transfer-bytes must be at least %d times --max-file-bytes",
                     CONFIG_TRANSFER_FACTOR);
}

static int check(GatewayConfig *c, Error **error)
{
    int r;

    if ((r = check_sizes(c, error)) < 0)
        return r;
    if ((r = check_auth(c, error)) < 0)
        return r;
    if ((r = check_log(c, error)) < 0)
        return r;
    if ((r = split("namespaces", c->namespaces_text, str_is_dns_label, &c->namespaces,
                   &c->n_namespaces, error)) < 0)
        return r;
    if ((r = split("allowed-hosts", c->allowed_hosts_text, is_host, &c->allowed_hosts,
                   &c->n_allowed_hosts, error)) < 0)
        return r;
    return split("allowed-origins", c->allowed_origins_text, is_origin, &c->allowed_origins,
                 &c->n_allowed_origins, error);
}

int gateway_config_parse(int argc, char **argv, GatewayConfig *ret, Error **error)
{
    int r = args_parse(&gateway_program, argc, argv, ret, error);

    if (r != 0)
        return r;
    r = check(ret, error);
    if (r < 0)
        gateway_config_done(ret);
    return r;
}

static void list_free(char ***list, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        free((*list)[i]);
    free(*list);
    *list = NULL;
    *n = 0;
}

void gateway_config_done(GatewayConfig *c)
{
    args_done(&gateway_program, c);
    list_free(&c->namespaces, &c->n_namespaces);
    list_free(&c->allowed_hosts, &c->n_allowed_hosts);
    list_free(&c->allowed_origins, &c->n_allowed_origins);
}
