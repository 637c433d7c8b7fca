/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/plan.h"

#include "common/base/str.h"
#include "controller/plan_internal.h"

#include <string.h>

static const char *const default_domains[] = {"sandbox.users.io"};

const PlanConfig plan_config_default = {
    .claim_events = true,
    .observability_annotations = true,
    .warm_pool_eviction = true,
    .readiness_grace_ms = 5 * 60 * 1000,
    .unschedulable_recheck_ms = 60 * 1000,
    .pool_batch_max = 300,
    .label_domains = default_domains,
    .n_label_domains = ARRAY_SIZE(default_domains),
    .collect_orphans = true,
};

static const struct {
    const char *word;
    PlanFn plan;
} key_kinds[KEY_KIND_MAX] = {
    [KEY_SANDBOX] = {"sandbox", plan_sandbox},
    [KEY_CLAIM] = {"claim", plan_claim},
    [KEY_POOL] = {"pool", plan_pool},
    [KEY_TEMPLATE] = {"template", plan_template},
    [KEY_ORPHANS_OF_CLAIMS] = {"orphans-of-claims", plan_orphans_of_claims},
    [KEY_ORPHANS_OF_POOLS] = {"orphans-of-pools", plan_orphans_of_pools},
    [KEY_ORPHANS_OF_SANDBOXES] = {"orphans-of-sandboxes", plan_orphans_of_sandboxes},
};

const char *key_kind_to_string(KeyKind kind)
{
    return key_kinds[kind].word;
}

char *key_format(KeyKind kind, const char *ns, const char *name)
{
    return xasprintf("%s/%s/%s", key_kinds[kind].word, ns, name);
}

bool key_split(const char *key, KeyKind *ret_kind, const char **ret_ns, size_t *ret_ns_len,
               const char **ret_name)
{
    size_t word_len = strcspn(key, "/");
    const char *ns = key + word_len + 1, *slash;

    if (key[word_len] == '\0')
        return false;
    slash = strchr(ns, '/');
    if (!slash)
        return false;
    for (KeyKind k = 0; k < KEY_KIND_MAX; k++) {
        if (strlen(key_kinds[k].word) != word_len || memcmp(key_kinds[k].word, key, word_len) != 0)
            continue;
        *ret_kind = k;
        *ret_ns = ns;
        *ret_ns_len = (size_t)(slash - ns);
        *ret_name = slash + 1;
        return true;
    }
    return false;
}

const char *plan_verb_to_string(PlanVerb v)
{
    static const char *const names[PLAN_VERB_MAX] = {
        [PLAN_CREATE] = "create",
        [PLAN_PATCH] = "patch",
        [PLAN_PATCH_STATUS] = "patch-status",
        [PLAN_PATCH_JSON] = "patch-json",
        [PLAN_DELETE] = "delete",
    };

    return names[v];
}

int plan_key(const PlanInput *in, Plan *plan, Error **error)
{
    KeyKind kind;
    const char *ns, *name;
    size_t ns_len;

    *plan = (Plan){.wake_ms = TIME_NONE, .memo.status_due_ms = TIME_NONE};
    if (!key_split(in->key, &kind, &ns, &ns_len, &name))
        return error_set(error, ERROR_INVALID, "\"%s\" is not a key", in->key);
    _cleanup_free_ char *ns_text = xstrndup(ns, ns_len);
    return key_kinds[kind].plan(in, ns_text, name, plan, error);
}
