/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/cleanup.h"
#include "gateway/transport/checksum.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

/* As `printf … | cksum` prints them. */
static void test_posix_sums(void **state)
{
    static const struct {
        const char *text;
        uint32_t sum;
    } cases[] = {{"", 4294967295U}, {"a", 1220704766U}, {"123456789", 930766865U}};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(checksum_posix(cases[i].text, strlen(cases[i].text)), cases[i].sum);
}

#define SHA_123 "a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3"

static void test_lines(void **state)
{
    static const struct {
        const char *line;
        bool matches;
    } cases[] = {
        {"sha256sum 3 " SHA_123 " -", true},
        {"sha256sum 3 " SHA_123, true},
        {"sha256sum 0 " SHA_123 " -", true},  /* a file without a size, as in /proc */
        {"sha256sum 4 " SHA_123 " -", false}, /* a byte is missing */
        {"sha256sum 3 b665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3", false},
        {"md5sum 3 " SHA_123, false},
        {"cksum 3 1411111866 3", false},
        {"cksum 3 1411111867 3", true},
        {"cksum 3 1411111867 4", false},
        {"cksum 3 1411111867", false},
        {"sha256sum 3", false},
        {"sha256sum x " SHA_123, false},
        {"", false},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(checksum_line_matches(cases[i].line, "123", 3), cases[i].matches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posix_sums),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
