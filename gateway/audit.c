/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/audit.h"

#include "common/base/log.h"
#include "common/net/crypto.h"

#include <string.h>

#define DIGEST_HEX 16

static const char *digest_source(const AuditRecord *r)
{
    size_t offset = r->tool->digest_offset;

    if (offset == 0 || !r->args)
        return NULL;
    return *(char *const *)(const void *)((const char *)r->args + offset);
}

void audit_call(const AuditRecord *r)
{
    const char *text = digest_source(r);
    const char *ns = r->args ? r->args->ns : NULL;
    const char *claim = r->args && r->args->claim ? r->args->claim : r->claim;
    char digest[DIGEST_HEX + 1] = "";

    if (text)
        crypto_sha256_hex(text, strlen(text), digest, DIGEST_HEX);
    log_info("call", LOGF_STR("tool", r->tool->name), LOGF_STR("outcome", r->outcome),
             LOGF_STR("user", principal_name(r->principal)),
             LOGF_STR("owner", principal_owner(r->principal)), LOGF_STR("peer", r->peer),
             LOGF_STR("namespace", ns), LOGF_STR("claim", claim), LOGF_STR("pod", r->pod),
             LOGF_STR("digest", digest), LOGF_INT("length", text ? strlen(text) : 0),
             LOGF_STR("detail", r->detail), LOGF_INT("number", r->number),
             LOGF_INT("duration_ms", r->duration_ms));
}
