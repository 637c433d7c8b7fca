/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "common/base/str.h"
#include "common/net/crypto.h"

#include <string.h>

/* FIPS 180-4 examples. */
static void test_sha256(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *hex;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        unsigned char digest[SHA256_LEN];
        char hex[2 * SHA256_LEN + 1];
        crypto_sha256(known[i].text, strlen(known[i].text), digest);
        str_hex(digest, sizeof(digest), hex);
        assert_string_equal(hex, known[i].hex);
    }
}

static void test_hex_is_cut(void **state)
{
    (void)state;
    char out[65];
    memset(out, 'x', sizeof(out));
    crypto_sha256_hex("abc", 3, out, 7);
    assert_string_equal(out, "ba7816b");
    assert_int_equal(out[8], 'x');
    crypto_sha256_hex("abc", 3, out, 64);
    assert_int_equal(strlen(out), 64);
    crypto_sha256_hex("abc", 3, out, 0);
    assert_string_equal(out, "");
}

static void test_random_differs(void **state)
{
    (void)state;
    unsigned char a[32] = {0}, b[32] = {0};
    crypto_random(a, sizeof(a));
    crypto_random(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    crypto_random(a, 0);
}

static void test_equal(void **state)
{
    (void)state;
    assert_true(crypto_equal("abc", "abc", 3));
    assert_false(crypto_equal("abc", "abd", 3));
    assert_true(crypto_equal("abc", "abd", 2));
    assert_true(crypto_equal("a", "b", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_hex_is_cut),
        cmocka_unit_test(test_random_differs),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
