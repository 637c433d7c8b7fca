/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/auth/principal.h"

#include "common/base/str.h"
#include "common/net/crypto.h"

#include <stdatomic.h>
#include <string.h>

#define IDENTITY_MAX (4 * 1024 * 1024)
#define KEY_HEX 64

struct Principal {
    atomic_uint refs;
    const char *issuer;
    KubeUser user;
    char owner[OWNER_HASH_LEN + 1];
    char key[KEY_HEX + 1];
};

/* Appends s and a NUL. */
static void add_part(Buf *out, const char *s)
{
    (void)buf_append(out, s ? s : "", strlen(s ? s : "") + 1);
}

static void make_owner(Principal *p)
{
    _cleanup_buf_ Buf text = BUF_INIT(IDENTITY_MAX);

    add_part(&text, p->issuer);
    add_part(&text, p->user.name);
    (void)buf_append_str(&text, p->user.uid ? p->user.uid : "");
    crypto_sha256_hex(buf_str(&text), text.len, p->owner, OWNER_HASH_LEN);
}

static void make_key(Principal *p)
{
    _cleanup_buf_ Buf text = BUF_INIT(IDENTITY_MAX);

    add_part(&text, p->issuer);
    add_part(&text, p->user.name);
    add_part(&text, p->user.uid);
    add_part(&text, p->user.extra_json);
    for (size_t i = 0; i < p->user.n_groups; i++)
        add_part(&text, p->user.groups[i]);
    crypto_sha256_hex(buf_str(&text), text.len, p->key, KEY_HEX);
}

static Principal *principal_new(const char *issuer, KubeUser user)
{
    Principal *p = xnew(Principal);

    atomic_init(&p->refs, 1);
    p->issuer = issuer;
    p->user = user;
    make_owner(p);
    make_key(p);
    return p;
}

Principal *principal_new_kubernetes(KubeUser *user)
{
    Principal *p = principal_new("kubernetes", *user);

    *user = (KubeUser){0};
    return p;
}

Principal *principal_new_anonymous(void)
{
    return principal_new("none", (KubeUser){.name = xstrdup("anonymous")});
}

Principal *principal_ref(Principal *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

Principal *principal_unref(Principal *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    kube_user_done(&p->user);
    free(p);
    return NULL;
}

const char *principal_issuer(const Principal *p)
{
    return p->issuer;
}

const char *principal_name(const Principal *p)
{
    return p->user.name;
}

const char *principal_owner(const Principal *p)
{
    return p->owner;
}

const KubeUser *principal_user(const Principal *p)
{
    return &p->user;
}

const char *principal_key(const Principal *p)
{
    return p->key;
}
