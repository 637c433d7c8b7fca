/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/hashmap.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>

static int one, two;

static void test_put_get_remove(_unused_ void **state)
{
    _cleanup_(hashmap_freep) Hashmap *m = hashmap_new();

    assert_null(hashmap_get(m, "a"));
    assert_null(hashmap_put(m, "a", &one));
    assert_ptr_equal(hashmap_get(m, "a"), &one);
    assert_ptr_equal(hashmap_put(m, "a", &two), &one);
    assert_int_equal(hashmap_size(m), 1);
    assert_null(hashmap_remove(m, "b"));
    assert_ptr_equal(hashmap_remove(m, "a"), &two);
    assert_null(hashmap_remove(m, "a"));
    assert_int_equal(hashmap_size(m), 0);
}

static void test_null_map_is_empty(_unused_ void **state)
{
    assert_null(hashmap_get(NULL, "a"));
    assert_null(hashmap_remove(NULL, "a"));
    assert_int_equal(hashmap_size(NULL), 0);
    assert_null(hashmap_free(NULL));
    hashmap_foreach (it, NULL)
        fail();
}

static void test_keys_are_copied(_unused_ void **state)
{
    _cleanup_(hashmap_freep) Hashmap *m = hashmap_new();
    char key[] = "abc";

    (void)hashmap_put(m, key, &one);
    key[0] = 'x';
    assert_ptr_equal(hashmap_get(m, "abc"), &one);
    assert_null(hashmap_get(m, "xbc"));
}

/* Random puts and removes against an array that says what must be in the map. */
static void test_agrees_with_a_model(_unused_ void **state)
{
    enum { KEYS = 500 };
    _cleanup_(hashmap_freep) Hashmap *m = hashmap_new();
    void *model[KEYS] = {0};
    uint32_t random = 12345;
    size_t size = 0;

    for (int step = 0; step < 50000; step++) {
        size_t k;
        char key[16];

        random = random * 1664525 + 1013904223;
        k = random >> 8 & 511;
        if (k >= KEYS)
            continue;
        (void)snprintf(key, sizeof(key), "key-%zu", k);
        if (random >> 31) {
            assert_ptr_equal(hashmap_put(m, key, &model[k]), model[k]);
            size += model[k] ? 0 : 1;
            model[k] = &model[k];
        } else {
            assert_ptr_equal(hashmap_remove(m, key), model[k]);
            size -= model[k] ? 1 : 0;
            model[k] = NULL;
        }
        assert_int_equal(hashmap_size(m), size);
    }
    for (size_t k = 0; k < KEYS; k++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "key-%zu", k);
        assert_ptr_equal(hashmap_get(m, key), model[k]);
    }
}

static void test_iteration_sees_each_entry_once_while_removing(_unused_ void **state)
{
    enum { KEYS = 1000 };
    _cleanup_(hashmap_freep) Hashmap *m = hashmap_new();
    int seen[KEYS] = {0};
    size_t removed = 0;

    for (size_t k = 0; k < KEYS; k++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "%zu", k);
        (void)hashmap_put(m, key, &seen[k]);
    }
    hashmap_foreach (it, m) {
        int *count = it.value;

        (*count)++;
        if ((count - seen) % 2 == 0) {
            assert_ptr_equal(hashmap_remove(m, it.key), count);
            removed++;
        }
    }
    for (size_t k = 0; k < KEYS; k++)
        assert_int_equal(seen[k], 1);
    assert_int_equal(hashmap_size(m), KEYS - removed);
}

static void count_free(void *value)
{
    (*(int *)value)++;
}

static void test_free_with_frees_each_value(_unused_ void **state)
{
    Hashmap *m = hashmap_new();
    int a = 0, b = 0;

    (void)hashmap_put(m, "a", &a);
    (void)hashmap_put(m, "b", &b);
    (void)hashmap_remove(m, "a");
    assert_null(hashmap_free_with(m, count_free));
    assert_int_equal(a, 0);
    assert_int_equal(b, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_remove),
        cmocka_unit_test(test_null_map_is_empty),
        cmocka_unit_test(test_keys_are_copied),
        cmocka_unit_test(test_agrees_with_a_model),
        cmocka_unit_test(test_iteration_sees_each_entry_once_while_removing),
        cmocka_unit_test(test_free_with_frees_each_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
