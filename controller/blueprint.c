/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/blueprint.h"

#include "common/base/str.h"
#include "common/json/write.h"
#include "controller/names.h"

#include <string.h>

#define TEXT_MAX (4 * 1024 * 1024)

static uint64_t text_hash(const Buf *text)
{
    uint64_t h = str_hash64(buf_str(text));

    return h ? h : 1;
}

static bool wants_public_dns(const JsonValue *template_spec)
{
    const JsonValue *pod_spec = json_path(template_spec, "podTemplate.spec");

    return !str_eq(json_str(template_spec, "networkPolicyManagement"), "Unmanaged") &&
           !json_get(template_spec, "networkPolicy") && str_empty(json_str(pod_spec, "dnsPolicy"));
}

int blueprint_secure_spec(const JsonValue *template_spec, Buf *out)
{
    const JsonValue *pod_spec = json_path(template_spec, "podTemplate.spec");
    bool public_dns = wants_public_dns(template_spec);
    JsonWriter w = json_writer(out);
    JsonMember m = json_members(pod_spec);

    jw_object(&w);
    while (json_next(&m)) {
        if (public_dns && (str_eq(m.key, "dnsPolicy") || str_eq(m.key, "dnsConfig")))
            continue;
        if (str_eq(m.key, "automountServiceAccountToken") && json_type(m.value) != JSON_BOOL)
            continue;
        jw_key(&w, m.key);
        jw_value(&w, m.value);
    }
    if (json_type(json_get(pod_spec, "automountServiceAccountToken")) != JSON_BOOL)
        jw_kv_bool(&w, "automountServiceAccountToken", false);
    if (public_dns) {
        jw_kv_str(&w, "dnsPolicy", "None");
        jw_kv_raw(&w, "dnsConfig", "{\"nameservers\":[\"8.8.8.8\",\"1.1.1.1\"]}");
    }
    jw_object_end(&w);
    return buf_check(out, "the pod spec", NULL);
}

uint64_t blueprint_hash(const JsonValue *pod_spec, const JsonValue *volume_claims,
                        const JsonValue *service)
{
    _cleanup_buf_ Buf text = BUF_INIT(TEXT_MAX);

    (void)json_print_canonical(pod_spec, &text);
    for (size_t i = 0; i < json_array_len(volume_claims); i++) {
        const JsonValue *vc = json_array_at(volume_claims, i);
        const char *name = json_str(vc, "metadata.name");

        (void)buf_printf(&text, "\n%s\n", name ? name : "");
        (void)json_print_canonical(json_get(vc, "spec"), &text);
    }
    if (json_type(service) == JSON_BOOL)
        (void)buf_append_str(&text, json_value_bool(service, false) ? "\n+" : "\n-");
    return text_hash(&text);
}

/* Only the sandbox router may come in; out to the internet, never to private addresses. */
static const char default_rules[] =
    "\"ingress\":[{\"from\":[{"
    "\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":"
    "\"agent-sandbox-system\"}},"
    "\"podSelector\":{\"matchLabels\":{\"app\":\"sandbox-router\"}}}]}],"
    "\"egress\":[{\"to\":["
    "{\"ipBlock\":{\"cidr\":\"0.0.0.0/0\",\"except\":[\"10.0.0.0/8\",\"172.16.0.0/12\","
    "\"192.168.0.0/16\",\"169.254.0.0/16\"]}},"
    "{\"ipBlock\":{\"cidr\":\"::/0\",\"except\":[\"fc00::/7\",\"fe80::/10\"]}}]}]";

static void write_custom_rules(JsonWriter *w, const JsonValue *rules)
{
    static const char *const directions[] = {"ingress", "egress"};

    for (size_t i = 0; i < ARRAY_SIZE(directions); i++) {
        const JsonValue *list = json_get(rules, directions[i]);
        if (json_array_len(list) == 0)
            continue; /* absent: nothing passes that way */
        jw_key(w, directions[i]);
        jw_value(w, list);
    }
}

int blueprint_policy_spec(const JsonValue *template_spec, const char *template_ref_hash, Buf *out)
{
    const JsonValue *rules = json_get(template_spec, "networkPolicy");
    JsonWriter w = json_writer(out);

    jw_object(&w);
    jw_key(&w, "podSelector");
    jw_object(&w);
    jw_key(&w, "matchLabels");
    jw_object(&w);
    jw_kv_str(&w, LABEL_TEMPLATE_REF, template_ref_hash);
    jw_object_end(&w);
    jw_object_end(&w);
    jw_kv_raw(&w, "policyTypes", "[\"Ingress\",\"Egress\"]");
    if (rules)
        write_custom_rules(&w, rules);
    else
        (void)buf_printf(out, ",%s", default_rules);
    jw_object_end(&w);
    return buf_check(out, "the network policy", NULL);
}

/* The API server fills in the protocol. */
static void hash_port(const JsonValue *port, Buf *text)
{
    const char *protocol = json_str(port, "protocol");

    (void)buf_printf(text, "\n%s ", protocol ? protocol : "TCP");
    (void)json_print_canonical(json_get(port, "port"), text);
    (void)buf_append_char(text, ' ');
    (void)json_print_canonical(json_get(port, "endPort"), text);
}

static void hash_rule(const JsonValue *rule, const char *peers, Buf *text)
{
    (void)buf_append_str(text, "\nrule");
    for (size_t i = 0; i < json_array_len(json_get(rule, peers)); i++) {
        (void)buf_append_char(text, '\n');
        (void)json_print_canonical(json_array_at(json_get(rule, peers), i), text);
    }
    for (size_t i = 0; i < json_array_len(json_get(rule, "ports")); i++)
        hash_port(json_array_at(json_get(rule, "ports"), i), text);
}

uint64_t blueprint_policy_hash(const JsonValue *policy_spec)
{
    _cleanup_buf_ Buf text = BUF_INIT(TEXT_MAX);

    (void)json_print_canonical(json_get(policy_spec, "podSelector"), &text);
    (void)json_print_canonical(json_get(policy_spec, "policyTypes"), &text);
    for (size_t i = 0; i < json_array_len(json_get(policy_spec, "ingress")); i++)
        hash_rule(json_array_at(json_get(policy_spec, "ingress"), i), "from", &text);
    (void)buf_append_str(&text, "\nout");
    for (size_t i = 0; i < json_array_len(json_get(policy_spec, "egress")); i++)
        hash_rule(json_array_at(json_get(policy_spec, "egress"), i), "to", &text);
    return text_hash(&text);
}
