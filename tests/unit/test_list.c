/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/list.h"
#include "tests/unit/cmocka_all.h"

typedef struct Node {
    int number;
    List link;
} Node;

static void test_first_in_first_out(_unused_ void **state)
{
    Node nodes[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
    List head;

    list_init(&head);
    assert_true(list_empty(&head));
    assert_null(list_pop(&head));
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        list_push(&head, &nodes[i].link);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(LIST_ENTRY(list_pop(&head), Node, link)->number, i);
    assert_true(list_empty(&head));
}

static void test_remove_in_the_middle_and_twice(_unused_ void **state)
{
    Node a = {.number = 1}, b = {.number = 2}, c = {.number = 3};
    List head;
    int sum = 0;

    list_init(&head);
    assert_false(list_linked(&a.link));
    list_remove(&a.link);
    list_push(&head, &a.link);
    list_push(&head, &b.link);
    list_push(&head, &c.link);
    assert_true(list_linked(&b.link));
    list_remove(&b.link);
    list_remove(&b.link);
    assert_false(list_linked(&b.link));
    list_foreach (pos, &head)
        sum += LIST_ENTRY(pos, Node, link)->number;
    assert_int_equal(sum, 4);
}

static void test_safe_iteration_may_remove(_unused_ void **state)
{
    Node nodes[5] = {{.number = 1}, {.number = 2}, {.number = 3}, {.number = 4}, {.number = 5}};
    List head;
    int seen = 0;

    list_init(&head);
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        list_push(&head, &nodes[i].link);
    list_foreach_safe (pos, &head) {
        list_remove(pos);
        seen++;
    }
    assert_int_equal(seen, 5);
    assert_true(list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_in_first_out),
        cmocka_unit_test(test_remove_in_the_middle_and_twice),
        cmocka_unit_test(test_safe_iteration_may_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
