/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sandbox/claim.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/net/crypto.h"
#include "gateway/sandbox/names.h"

#include <stdio.h>

#define NAME_RANDOM_BYTES 10

void claim_make_name(char out[CLAIM_NAME_MAX])
{
    unsigned char random[NAME_RANDOM_BYTES];
    char hex[2 * NAME_RANDOM_BYTES + 1];

    crypto_random(random, sizeof(random));
    str_hex(random, sizeof(random), hex);
    (void)snprintf(out, CLAIM_NAME_MAX, "sandbox-claim-%s", hex);
}

int64_t claim_shutdown_ms(int64_t now_ms, int64_t lifetime_s)
{
    return ((now_ms + 999) / 1000 + lifetime_s) * 1000;
}

/* Members of an open object; a key that the gateway writes itself is left out. */
static void write_map(JsonWriter *w, const JsonStringMap *map, const char *except)
{
    for (size_t i = 0; i < map->len; i++)
        if (!str_eq(map->keys[i], except))
            jw_kv_str(w, map->keys[i], map->values[i]);
}

static void write_metadata(JsonWriter *w, const ClaimSpec *spec)
{
    char now[RFC3339_MAX];

    jw_kv_str(w, "name", spec->name);
    jw_kv_str(w, "namespace", spec->ns);
    jw_key(w, "labels");
    jw_object(w);
    write_map(w, spec->labels, LABEL_OWNER);
    jw_kv_str(w, LABEL_OWNER, spec->owner);
    jw_object_end(w);
    jw_key(w, "annotations");
    jw_object(w);
    time_format_rfc3339_micro(spec->now_ms, now);
    jw_kv_str(w, ANNOTATION_FIRST_REQUESTED, now);
    jw_kv_str(w, ANNOTATION_OWNER, spec->owner);
    jw_kv_str(w, ANNOTATION_CREATED_BY, spec->created_by);
    jw_object_end(w);
}

static void write_lifecycle(JsonWriter *w, int64_t shutdown_ms)
{
    char at[RFC3339_MAX];

    if (shutdown_ms <= 0)
        return;
    time_format_rfc3339(shutdown_ms, at);
    jw_key(w, "lifecycle");
    jw_object(w);
    jw_kv_str(w, "shutdownTime", at);
    jw_kv_str(w, "shutdownPolicy", "Delete");
    jw_object_end(w);
}

static void write_pod_map(JsonWriter *w, const char *key, const JsonStringMap *map)
{
    if (map->len == 0)
        return;
    jw_key(w, key);
    jw_object(w);
    write_map(w, map, NULL);
    jw_object_end(w);
}

static void write_pod_metadata(JsonWriter *w, const ClaimSpec *spec)
{
    if (spec->pod_labels->len == 0 && spec->pod_annotations->len == 0)
        return;
    jw_key(w, "additionalPodMetadata");
    jw_object(w);
    write_pod_map(w, "labels", spec->pod_labels);
    write_pod_map(w, "annotations", spec->pod_annotations);
    jw_object_end(w);
}

void claim_write(Buf *out, const ClaimSpec *spec)
{
    JsonWriter w = json_writer(out);

    jw_object(&w);
    jw_kv_str(&w, "apiVersion", "extensions.agents.x-k8s.io/v1beta1");
    jw_kv_str(&w, "kind", "SandboxClaim");
    jw_key(&w, "metadata");
    jw_object(&w);
    write_metadata(&w, spec);
    jw_object_end(&w);
    jw_key(&w, "spec");
    jw_object(&w);
    jw_key(&w, "warmPoolRef");
    jw_object(&w);
    jw_kv_str(&w, "name", spec->warmpool);
    jw_object_end(&w);
    write_lifecycle(&w, spec->shutdown_ms);
    write_pod_metadata(&w, spec);
    jw_object_end(&w);
    jw_object_end(&w);
}
