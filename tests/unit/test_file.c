/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/file.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/test_file_XXXXXX";

static void put(const void *data, size_t len)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void refused(const char *where, size_t max_bytes, ErrorKind kind)
{
    _cleanup_error_ Error *error = NULL;
    char *text = NULL;

    assert_true(file_read_text(where, max_bytes, &text, &error) < 0);
    assert_null(text);
    assert_int_equal(error->kind, kind);
    assert_non_null(strstr(error->message, where));
}

static void test_whole_file(_unused_ void **state)
{
    _cleanup_free_ char *text = NULL;

    put("a\nb\n", 4);
    assert_int_equal(file_read_text(path, 4, &text, NULL), 0);
    assert_string_equal(text, "a\nb\n");
}

static void test_what_is_refused(_unused_ void **state)
{
    put("a\0b", 3);
    refused(path, 64, ERROR_INVALID);
    put("12345", 5);
    refused(path, 4, ERROR_TOO_LARGE);
    refused("/tmp", 64, ERROR_INVALID);
    refused("/nowhere/at/all", 64, ERROR_NOT_FOUND);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, 64, ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_file),
        cmocka_unit_test(test_what_is_refused),
    };
    int fd = mkstemp(path), r;

    assert_true(fd >= 0);
    (void)close(fd);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return r;
}
