/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig file: the only user of libyaml. JSON is YAML here. */
#include "common/kube/kubeconfig.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/kube/config-internal.h"

#include <string.h>
#include <yaml.h>

#define NESTING_MAX 64 /* libyaml takes quadratic time and deep trees as they come */
#define SYSTEM_CA_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

/* A document, its file's name and folder. Nodes belong to the document. */
typedef struct Source {
    yaml_document_t document;
    const char *path;
    char *dir;
} Source;

/* --- nodes --- */

static const yaml_node_t *node_at(Source *s, int index)
{
    return yaml_document_get_node(&s->document, index);
}

/* The text of a scalar; NULL for anything else and for a plain null. */
static const char *node_text(const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (!node || node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return NULL;
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return *text ? text : NULL;
    for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
        if (str_eq(text, nulls[i]))
            return NULL;
    return text;
}

static const yaml_node_t *get(Source *s, const yaml_node_t *mapping, const char *key)
{
    if (!mapping || mapping->type != YAML_MAPPING_NODE)
        return NULL;
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++)
        if (str_eq(node_text(node_at(s, pair->key)), key))
            return node_at(s, pair->value);
    return NULL;
}

static const char *get_text(Source *s, const yaml_node_t *mapping, const char *key)
{
    return node_text(get(s, mapping, key));
}

static bool is_set(const yaml_node_t *node)
{
    return node && (node->type != YAML_SCALAR_NODE || node_text(node));
}

/* The entry with this name of a list like clusters, users or contexts: its inner mapping. */
static int find_named(Source *s, const char *list, const char *inner, const char *name,
                      const yaml_node_t **ret, Error **error)
{
    const yaml_node_t *entries = get(s, yaml_document_get_root_node(&s->document), list);
    if (entries && entries->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *item = entries->data.sequence.items.start;
        for (; item < entries->data.sequence.items.top; item++) {
            const yaml_node_t *entry = node_at(s, *item);
            if (str_eq(get_text(s, entry, "name"), name)) {
                *ret = get(s, entry, inner);
                return 0;
            }
        }
    }
    return error_set(error, ERROR_INVALID, "%s has no %s named \"%s\"", s->path, inner, name);
}

/* --- values --- */

static char *resolve(const Source *s, const char *path)
{
    return path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", s->dir, path);
}

/* Base64 as people paste it: line breaks and blanks inside are fine. */
static int decode_base64(const char *text, Buf *out, Error **error)
{
    _cleanup_(buf_wipe) Buf packed = BUF_INIT(KUBE_CONFIG_FILE_MAX);
    for (; *text; text++)
        if (!strchr(" \t\r\n", *text))
            buf_append_char(&packed, *text);
    int r = buf_check(&packed, "base64 text", error);
    if (r < 0)
        return r;
    return str_base64_decode(out, buf_str(&packed), packed.len, error);
}

static int decode_pem(const char *key, const char *text, char **ret, Error **error)
{
    _cleanup_(buf_wipe) Buf pem = BUF_INIT(KUBE_CONFIG_FILE_MAX);
    int r = decode_base64(text, &pem, error);
    if (r < 0)
        return error_wrap(error, r, "%s", key);
    if (strlen(buf_str(&pem)) != pem.len)
        return error_set(error, ERROR_INVALID, "%s holds no PEM text", key);
    r = kube_check_pem(buf_str(&pem), key, error);
    if (r < 0)
        return r;
    *ret = buf_take(&pem, NULL);
    return 0;
}

/* PEM text from KEY-data, else from the file named by KEY; NULL where neither is given. The file's
 * path is kept where ret_path is given. */
static int load_pem(Source *s, const yaml_node_t *mapping, const char *key, char **ret,
                    char **ret_path, Error **error)
{
    _cleanup_free_ char *data_key = xasprintf("%s-data", key);
    const char *data = get_text(s, mapping, data_key);
    if (data)
        return decode_pem(data_key, data, ret, error);
    const char *file = get_text(s, mapping, key);
    if (!file)
        return 0;
    _cleanup_free_ char *path = resolve(s, file);
    _cleanup_(kube_wipep) char *pem = NULL;
    int r = file_read_text(path, KUBE_CONFIG_FILE_MAX, &pem, error);
    if (r < 0)
        return error_wrap(error, r, "%s", key);
    r = kube_check_pem(pem, path, error);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(pem);
    if (ret_path)
        *ret_path = TAKE_PTR(path);
    return 0;
}

/* --- cluster, user, context --- */

static int refuse(Source *s, const yaml_node_t *mapping, const char *key, const char *hint,
                  Error **error)
{
    if (!is_set(get(s, mapping, key)))
        return 0;
    int r = error_set(error, ERROR_INVALID, "%s is not supported", key);
    return error_hint(error, r, "%s", hint);
}

/* As everywhere in Kubernetes, a cluster without a CA of its own is checked with the system's. */
static int load_ca(Source *s, const yaml_node_t *cluster, KubeConfig *c, Error **error)
{
    int r = load_pem(s, cluster, "certificate-authority", &c->ca_pem, &c->ca_path, error);
    if (r < 0 || c->ca_pem || c->insecure_skip_verify || !str_starts_with(c->server, "https:"))
        return r;
    return file_read_text(SYSTEM_CA_BUNDLE, KUBE_CONFIG_FILE_MAX, &c->ca_pem, error);
}

static int load_cluster(Source *s, const yaml_node_t *cluster, KubeConfig *c, Error **error)
{
    int r = refuse(s, cluster, "proxy-url", "connect to the API server directly", error);
    if (r < 0)
        return r;
    const char *server = get_text(s, cluster, "server");
    if (!server || !(str_starts_with(server, "https://") || str_starts_with(server, "http://")))
        return error_set(error, ERROR_INVALID, "the cluster has no http(s) server");
    c->server = xstrdup(server);
    c->tls_server_name = xstrdup_null(get_text(s, cluster, "tls-server-name"));
    c->insecure_skip_verify = str_eq(get_text(s, cluster, "insecure-skip-tls-verify"), "true");
    return load_ca(s, cluster, c, error);
}

static int refuse_user_fields(Source *s, const yaml_node_t *user, Error **error)
{
    static const struct {
        const char *key;
        const char *hint;
    } refused[] = {
        {"exec", "use a kubeconfig with a token or a client certificate; no program is started"},
        {"auth-provider", "use a kubeconfig with a token or a client certificate"},
        {"username", "use a kubeconfig with a token or a client certificate"},
        {"as", "use the identity's own token"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        int r = refuse(s, user, refused[i].key, refused[i].hint, error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A token file wins over a token beside it, which is only its last known content. */
static int load_token(Source *s, const yaml_node_t *user, KubeConfig *c, Error **error)
{
    const char *file = get_text(s, user, "tokenFile");
    const char *token = get_text(s, user, "token");
    if (file) {
        c->token_path = resolve(s, file);
        int r = file_read_text(c->token_path, KUBE_TOKEN_MAX, &c->token, error);
        if (r < 0)
            return error_wrap(error, r, "tokenFile");
    } else {
        c->token = xstrdup_null(token);
    }
    return c->token ? kube_check_token(c->token, file ? c->token_path : "token", error) : 0;
}

static int load_user(Source *s, const yaml_node_t *user, KubeConfig *c, Error **error)
{
    int r = refuse_user_fields(s, user, error);
    if (r < 0)
        return r;
    r = load_token(s, user, c, error);
    if (r < 0)
        return r;
    r = load_pem(s, user, "client-certificate", &c->client_cert_pem, NULL, error);
    if (r < 0)
        return r;
    r = load_pem(s, user, "client-key", &c->client_key_pem, NULL, error);
    if (r < 0)
        return r;
    if (!c->client_cert_pem != !c->client_key_pem)
        return error_set(error, ERROR_INVALID,
                         "a client certificate and its key are only of use together");
    return 0;
}

static int load_namespace(const char *ns, KubeConfig *c, Error **error)
{
    if (ns && !str_is_dns_label(ns))
        return error_set(error, ERROR_INVALID, "bad namespace \"%s\"", ns);
    c->namespace_ = xstrdup(ns ? ns : "default");
    return 0;
}

static int load_named_user(Source *s, const char *name, KubeConfig *c, Error **error)
{
    const yaml_node_t *user = NULL;
    if (!name)
        return 0;
    int r = find_named(s, "users", "user", name, &user, error);
    if (r < 0)
        return r;
    r = load_user(s, user, c, error);
    return r < 0 ? error_wrap(error, r, "user \"%s\"", name) : 0;
}

static int load_named_cluster(Source *s, const char *name, KubeConfig *c, Error **error)
{
    const yaml_node_t *cluster = NULL;
    if (!name)
        return error_set(error, ERROR_INVALID, "the context names no cluster");
    int r = find_named(s, "clusters", "cluster", name, &cluster, error);
    if (r < 0)
        return r;
    r = load_cluster(s, cluster, c, error);
    return r < 0 ? error_wrap(error, r, "cluster \"%s\"", name) : 0;
}

static int load_context(Source *s, const char *name, KubeConfig *c, Error **error)
{
    const yaml_node_t *context = NULL;
    if (!name)
        name = get_text(s, yaml_document_get_root_node(&s->document), "current-context");
    if (!name)
        return error_set(error, ERROR_INVALID, "%s has no current-context", s->path);
    int r = find_named(s, "contexts", "context", name, &context, error);
    if (r < 0)
        return r;
    r = load_named_cluster(s, get_text(s, context, "cluster"), c, error);
    if (r < 0)
        return r;
    r = load_named_user(s, get_text(s, context, "user"), c, error);
    if (r < 0)
        return r;
    return load_namespace(get_text(s, context, "namespace"), c, error);
}

/* --- the file --- */

static int parser_error(const Source *s, const yaml_parser_t *parser, Error **error)
{
    return error_set(error, ERROR_INVALID, "%s, line %zu: %s", s->path,
                     parser->problem_mark.line + 1, parser->problem ? parser->problem : "not YAML");
}

/* One event: the change of depth in *depth, and whether the stream ended. */
static int next_event(const Source *s, yaml_parser_t *parser, int *depth, bool *ret_end,
                      Error **error)
{
    yaml_event_t event;
    if (!yaml_parser_parse(parser, &event))
        return parser_error(s, parser, error);
    if (event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT)
        ++*depth;
    else if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT)
        --*depth;
    *ret_end = event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
    if (*depth > NESTING_MAX)
        return error_set(error, ERROR_INVALID, "%s is nested more than %d deep", s->path,
                         NESTING_MAX);
    return 0;
}

static int check_depth(Source *s, yaml_parser_t *parser, Error **error)
{
    int depth = 0;
    for (bool end = false; !end;) {
        int r = next_event(s, parser, &depth, &end, error);
        if (r < 0)
            return r;
    }
    return 0;
}

static int load_document(Source *s, yaml_parser_t *parser, Error **error)
{
    return yaml_parser_load(parser, &s->document) ? 0 : parser_error(s, parser, error);
}

static int with_parser(Source *s, const char *text, size_t len,
                       int (*run)(Source *s, yaml_parser_t *parser, Error **error), Error **error)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return error_set(error, ERROR_INTERNAL, "cannot start the YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int r = run(s, &parser, error);
    yaml_parser_delete(&parser);
    return r;
}

static int parse_document(Source *s, const char *text, size_t len, Error **error)
{
    int r = with_parser(s, text, len, check_depth, error);
    return r < 0 ? r : with_parser(s, text, len, load_document, error);
}

static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return xstrdup(".");
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

int kube_config_parse(const char *text, size_t len, const char *path, const char *context,
                      KubeConfig **ret, Error **error)
{
    Source s = {.path = path};
    int r = parse_document(&s, text, len, error);
    if (r < 0)
        return r;
    s.dir = dir_of(path);
    _cleanup_(kube_config_freep) KubeConfig *c = xnew(KubeConfig);
    r = load_context(&s, context, c, error);
    yaml_document_delete(&s.document);
    free(s.dir);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}

int kube_config_load_file(const char *path, const char *context, KubeConfig **ret, Error **error)
{
    _cleanup_(kube_wipep) char *text = NULL;
    int r = file_read_text(path, KUBE_CONFIG_FILE_MAX, &text, error);
    if (r < 0)
        return r;
    r = kube_config_parse(text, strlen(text), path, context, ret, error);
    return r < 0 ? error_wrap(error, r, "kubeconfig %s", path) : 0;
}
