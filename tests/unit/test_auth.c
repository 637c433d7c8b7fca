/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens, principals and their hashes, and the map that forgets. */
#include "common/base/str.h"
#include "common/net/crypto.h"
#include "gateway/auth/authenticator.h"
#include "gateway/auth/ttl_map.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void test_bearer_token(_unused_ void **state)
{
    static const struct {
        const char *header, *token;
    } rows[] = {
        {"Bearer abc.DEF-_~+/=", "abc.DEF-_~+/="},
        {"bearer x", "x"},
        {"BEARER   x==", "x=="},
        {NULL, NULL},
        {"", NULL},
        {"Bearer", NULL},
        {"Bearer ", NULL},
        {"Bearerx", NULL},
        {"Basic abc", NULL},
        {"Bearer a b", NULL},
        {"Bearer a,b", NULL},
        {"Bearer =", NULL},
        {"Bearer a=b", NULL},
        {"Bearer \"a\"", NULL},
        {" Bearer a", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_error_ Error *error = NULL;
        _cleanup_free_ char *token = bearer_token(rows[i].header, &error);

        if (!str_eq(token, rows[i].token))
            fail_msg("row %zu: %s", i, token ? token : "(none)");
        assert_int_equal(error != NULL, rows[i].token == NULL);
        if (error) {
            assert_int_equal(error->kind, ERROR_UNAUTHENTICATED);
            assert_null(strstr(error->message, "abc")); /* never an echo */
        }
    }
}

static void test_long_token_is_refused(_unused_ void **state)
{
    _cleanup_free_ char *header = xmalloc(TOKEN_MAX + 16);
    _cleanup_error_ Error *error = NULL;

    memset(header, 'a', TOKEN_MAX + 15);
    header[TOKEN_MAX + 15] = '\0';
    memcpy(header, "Bearer ", 7);
    assert_null(bearer_token(header, &error));
}

static Principal *principal(const char *name, const char *uid, const char *group)
{
    KubeUser user = {.name = xstrdup(name), .uid = xstrdup_null(uid), .n_groups = 1};

    user.groups = xcalloc(1, sizeof(char *));
    user.groups[0] = xstrdup(group);
    return principal_new_kubernetes(&user);
}

static void test_owner_hash(_unused_ void **state)
{
    static const char text[] = "kubernetes\0system:serviceaccount:default:a\0u-1";
    char want[OWNER_HASH_LEN + 1];
    _cleanup_principal_ Principal *p = principal("system:serviceaccount:default:a", "u-1", "g");

    crypto_sha256_hex(text, sizeof(text) - 1, want, OWNER_HASH_LEN);
    assert_string_equal(principal_owner(p), want);
    assert_int_equal(strlen(principal_owner(p)), 32);
    assert_true(str_is_label_value(principal_owner(p)));
    assert_string_equal(principal_issuer(p), "kubernetes");
}

static void test_owner_depends_on_name_and_uid_only(_unused_ void **state)
{
    _cleanup_principal_ Principal *a = principal("n", "u", "g");
    _cleanup_principal_ Principal *other_group = principal("n", "u", "h");
    _cleanup_principal_ Principal *other_uid = principal("n", "v", "g");
    _cleanup_principal_ Principal *no_uid = principal("n", NULL, "g");
    _cleanup_principal_ Principal *anonymous = principal_new_anonymous();

    assert_string_equal(principal_owner(a), principal_owner(other_group));
    assert_string_not_equal(principal_key(a), principal_key(other_group));
    assert_string_not_equal(principal_owner(a), principal_owner(other_uid));
    assert_string_not_equal(principal_owner(a), principal_owner(no_uid));
    assert_string_equal(principal_name(anonymous), "anonymous");
    assert_string_not_equal(principal_owner(a), principal_owner(anonymous));
}

static void test_without_authentication_everyone_is_anonymous(_unused_ void **state)
{
    Authenticator *a = authenticator_new(NULL, "aud", 1000);
    _cleanup_principal_ Principal *p = NULL;
    _cleanup_error_ Error *error = NULL;

    assert_int_equal(authenticator_cached(a, NULL, &p, &error), 1);
    assert_string_equal(principal_name(p), "anonymous");
    assert_null(authenticator_free(a));
}

static void test_ttl_map(_unused_ void **state)
{
    TtlMap *m = ttl_map_new(2, free);

    ttl_map_put(m, "a", xstrdup("1"), 100);
    assert_string_equal(ttl_map_get(m, "a", 99), "1");
    assert_null(ttl_map_get(m, "a", 100));
    assert_int_equal(ttl_map_size(m), 0);
    ttl_map_put(m, "a", xstrdup("1"), 100);
    ttl_map_put(m, "a", xstrdup("2"), 200);
    assert_int_equal(ttl_map_size(m), 1);
    assert_string_equal(ttl_map_get(m, "a", 150), "2");
    ttl_map_put(m, "b", xstrdup("3"), 200);
    ttl_map_put(m, "c", xstrdup("4"), 200); /* the oldest makes room */
    assert_int_equal(ttl_map_size(m), 2);
    assert_null(ttl_map_get(m, "a", 0));
    assert_string_equal(ttl_map_get(m, "b", 0), "3");
    assert_string_equal(ttl_map_get(m, "c", 0), "4");
    assert_null(ttl_map_free(m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bearer_token),
        cmocka_unit_test(test_long_token_is_refused),
        cmocka_unit_test(test_owner_hash),
        cmocka_unit_test(test_owner_depends_on_name_and_uid_only),
        cmocka_unit_test(test_without_authentication_everyone_is_anonymous),
        cmocka_unit_test(test_ttl_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
