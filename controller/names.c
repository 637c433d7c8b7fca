/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/names.h"

#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

void name_hash(const char *name, char *out)
{
    (void)snprintf(out, NAME_HASH_MAX, "%08x", str_hash_fnv1a32(name, strlen(name)));
}

NameHash name_hash_of(const char *name)
{
    NameHash h;

    name_hash(name, h.s);
    return h;
}

bool key_is_reserved(const char *key)
{
    return str_starts_with(key, API_GROUP_SANDBOX "/") ||
           str_starts_with(key, API_GROUP_EXTENSIONS "/");
}

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* No vowels and no look-alikes, as in Kubernetes' own generated names. */
static const char suffix_alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
#define SUFFIX_LEN 5
#define GENERATED_NAME_MAX 63

char *pool_member_name(const char *pool, uint64_t *random)
{
    char suffix[SUFFIX_LEN + 1] = "";
    char *base = xasprintf("%s-", pool), *name;
    uint64_t r = random_next(random);

    for (size_t i = 0; i < SUFFIX_LEN; i++) {
        suffix[i] = suffix_alphabet[r % (sizeof(suffix_alphabet) - 1)];
        r /= sizeof(suffix_alphabet) - 1;
    }
    name = xasprintf("%.*s%s", GENERATED_NAME_MAX - SUFFIX_LEN, base, suffix);
    free(base);
    return name;
}

char *policy_name(const char *template_name)
{
    return xasprintf("%s-network-policy", template_name);
}

const char *created_by_normalised(const char *raw)
{
    static const char *const known[] = {"go-client", "python-client", "controller"};

    if (str_empty(raw))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (str_eq(raw, known[i]))
            return known[i];
    return "unknown";
}
