/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig is refused with a reason, or gives what a client needs. Files it names are not
 * there. */
#include "common/kube/kubeconfig.h"

#include "common/base/str.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(kube_config_freep) KubeConfig *c = NULL;
    _cleanup_error_ Error *error = NULL;
    int r = kube_config_parse((const char *)data, size, "/nonexistent/config", NULL, &c, &error);

    if (r < 0) {
        FUZZ_CHECK(!c && error && error->message[0]);
        return 0;
    }
    FUZZ_CHECK(c && !error);
    FUZZ_CHECK(str_starts_with(c->server, "https://") || str_starts_with(c->server, "http://"));
    FUZZ_CHECK(str_is_dns_label(c->namespace_));
    FUZZ_CHECK(!c->client_cert_pem == !c->client_key_pem);
    FUZZ_CHECK(!c->token || (c->token[0] && !strpbrk(c->token, " \t\r\n")));
    FUZZ_CHECK(!kube_config_refresh(c, 1));
    return 0;
}
