/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list with a head node. A zeroed or list_init'ed node is in no list. */
#pragma once

#include "common/base/cleanup.h"

#include <stdbool.h>

typedef struct List {
    struct List *next;
    struct List *prev;
} List;

static inline void list_init(List *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const List *l)
{
    return !l->next || l->next == l;
}

static inline bool list_linked(const List *n)
{
    return n->next && n->next != n;
}

static inline void list_push(List *head, List *n) /* at the tail */
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

static inline void list_remove(List *n) /* harmless on an unlinked node */
{
    if (!n->next)
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = NULL;
}

static inline List *list_pop(List *head) /* the first, or NULL */
{
    List *n = head->next;
    if (list_empty(head))
        return NULL;
    list_remove(n);
    return n;
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
#define list_foreach(pos, head) for (List *pos = (head)->next; pos != (head); pos = pos->next)
/* The body may remove pos. */
#define list_foreach_safe(pos, head)                                                               \
    for (List *pos = (head)->next, *_next = pos->next; pos != (head);                              \
         pos = _next, _next = pos->next)
