/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever a TokenReview names can be asked about in a SubjectAccessReview that is JSON again. */
#include "common/kube/review.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_round_trip(const KubeUser *user)
{
    const KubeAccess access = {.verb = "get", .group = "g", .resource = "r", .ns = "n"};
    _cleanup_buf_ Buf body = BUF_INIT((size_t)16 << 20);
    _cleanup_json_ JsonValue *again = NULL;

    kube_access_review_body(&body, user, &access);
    FUZZ_CHECK(!body.failed);
    FUZZ_CHECK(json_parse(body.data, body.len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &again, NULL) ==
               0);
    FUZZ_CHECK(strcmp(json_str(again, "spec.user"), user->name) == 0);
    FUZZ_CHECK(json_array_len(json_path(again, "spec.groups")) == user->n_groups);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ JsonValue *review = NULL;
    _cleanup_(kube_user_done) KubeUser user = {0};
    bool allowed = false;

    if (json_parse((const char *)data, size, 64, JSON_PARSE_DEFAULT, &review, NULL) < 0)
        return 0;
    if (kube_token_review_parse(review, "a", &user, NULL) >= 0) {
        FUZZ_CHECK(json_bool(review, "status.authenticated", false));
        check_round_trip(&user);
    } else {
        FUZZ_CHECK(!user.name && !user.groups);
    }
    if (kube_access_review_parse(review, &allowed, NULL) >= 0 && allowed)
        FUZZ_CHECK(json_bool(review, "status.allowed", false));
    return 0;
}
