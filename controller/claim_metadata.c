/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/claim_metadata.h"

#include "common/base/str.h"
#include "controller/names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DOMAIN_MAX 254

/* The lower-cased part before '/', "" where there is none. */
static void domain_of(const char *key, char out[DOMAIN_MAX])
{
    const char *slash = strchr(key, '/');
    size_t len = slash ? (size_t)(slash - key) : 0;

    if (len >= DOMAIN_MAX)
        len = DOMAIN_MAX - 1;
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(key[i] >= 'A' && key[i] <= 'Z' ? key[i] - 'A' + 'a' : key[i]);
    out[len] = '\0';
}

static bool is_or_is_under(const char *domain, const char *parent)
{
    size_t dl = strlen(domain), pl = strlen(parent);

    if (dl == pl)
        return str_eq(domain, parent);
    return dl > pl && domain[dl - pl - 1] == '.' && str_eq(domain + dl - pl, parent);
}

static bool label_domain_allowed(const char *domain, const PlanConfig *config)
{
    for (size_t i = 0; i < config->n_label_domains; i++)
        if (is_or_is_under(domain, config->label_domains[i]))
            return true;
    return false;
}

static bool label_valid(const char *key, const char *value, const PlanConfig *config, char *error,
                        size_t size)
{
    char domain[DOMAIN_MAX] = "";

    if (strcasecmp(key, "app") == 0 && strcasecmp(value, "sandbox-router") == 0)
        (void)snprintf(error, size, "label \"app\" with value \"sandbox-router\" is not allowed");
    else if (!str_is_label_key(key))
        (void)snprintf(error, size, "label key \"%s\" is not a qualified name", key);
    else if (!strchr(key, '/'))
        (void)snprintf(error, size, "label key \"%s\" needs a domain prefix", key);
    else if (!str_is_label_value(value))
        (void)snprintf(error, size, "value \"%s\" of label \"%s\" is not a valid label value",
                       value, key);
    else {
        domain_of(key, domain);
        if (label_domain_allowed(domain, config))
            return true;
        (void)snprintf(error, size,
                       "label domain \"%s\" is not in the allowlist (configure the "
                       "allowed-label-domains key of the agent-sandbox-config ConfigMap in the "
                       "controller namespace; default: sandbox.users.io)",
                       domain);
    }
    return false;
}

static bool annotation_valid(const char *key, char *error, size_t size)
{
    static const char *const reserved[] = {"kubernetes.io", "k8s.io", "agents.x-k8s.io"};
    char domain[DOMAIN_MAX] = "";

    if (!str_is_label_key(key)) {
        (void)snprintf(error, size, "annotation key \"%s\" is not a qualified name", key);
        return false;
    }
    if (str_eq(key, ANNOTATION_SAFE_TO_EVICT))
        return true;
    domain_of(key, domain);
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (is_or_is_under(domain, reserved[i])) {
            (void)snprintf(error, size, "annotation domain \"%s\" is reserved", domain);
            return false;
        }
    return true;
}

bool claim_metadata_valid(const Claim *c, const PlanConfig *config, char *error, size_t size)
{
    for (size_t i = 0; c->extra_labels && i < c->extra_labels->len; i++)
        if (!label_valid(c->extra_labels->items[i].key, c->extra_labels->items[i].value, config,
                         error, size))
            return false;
    for (size_t i = 0; c->extra_annotations && i < c->extra_annotations->len; i++)
        if (!annotation_valid(c->extra_annotations->items[i].key, error, size))
            return false;
    return true;
}

static bool map_compatible(const StrMap *wanted, const StrMap *fixed, const char *what, char *error,
                           size_t size)
{
    for (size_t i = 0; wanted && i < wanted->len; i++) {
        const char *key = wanted->items[i].key, *value = wanted->items[i].value;
        const char *theirs = strmap_get(fixed, key);
        if (!theirs || str_eq(theirs, value))
            continue;
        (void)snprintf(error, size,
                       "metadata override conflict: %s \"%s\" is defined in template with value "
                       "\"%s\", but claim requests \"%s\"",
                       what, key, theirs, value);
        return false;
    }
    return true;
}

bool claim_metadata_compatible(const Claim *c, const Template *t, char *error, size_t size)
{
    return map_compatible(c->extra_labels, t->pod_labels, "label", error, size) &&
           map_compatible(c->extra_annotations, t->pod_annotations, "annotation", error, size);
}

void claim_pod_template_metadata(const Claim *c, const Template *t, PodTemplateMetadata *out)
{
    *out = (PodTemplateMetadata){.template_ref = name_hash_of(t->obj.name)};
    pair_set_put_map(&out->labels, t->pod_labels);
    pair_set_put_map(&out->labels, c->extra_labels);
    pair_set_put(&out->labels, LABEL_CLAIM_UID, c->obj.uid);
    pair_set_put(&out->labels, LABEL_TEMPLATE_REF, out->template_ref.s);
    pair_set_put(&out->labels, LABEL_CREATED_BY, c->created_by);
    pair_set_put_map(&out->annotations, t->pod_annotations);
    pair_set_put_map(&out->annotations, c->extra_annotations);
}

void pod_template_metadata_done(PodTemplateMetadata *m)
{
    pair_set_done(&m->labels);
    pair_set_done(&m->annotations);
}
