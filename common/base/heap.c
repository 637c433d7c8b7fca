/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/heap.h"
#include "common/base/cleanup.h"
#include "common/base/contract.h"

/* Positions are 1-based: the children of i are 2i and 2i + 1. */
static HeapTimer *at(const Heap *h, size_t i)
{
    return h->items[i - 1];
}

static void put(Heap *h, size_t i, HeapTimer *t)
{
    h->items[i - 1] = t;
    t->index = i;
}

static void sift_up(Heap *h, size_t i)
{
    HeapTimer *t = at(h, i);

    for (; i > 1 && at(h, i / 2)->due_ms > t->due_ms; i /= 2)
        put(h, i, at(h, i / 2));
    put(h, i, t);
}

static void sift_down(Heap *h, size_t i)
{
    HeapTimer *t = at(h, i);

    while (2 * i <= h->len) {
        size_t child = 2 * i;

        if (child < h->len && at(h, child + 1)->due_ms < at(h, child)->due_ms)
            child++;
        if (at(h, child)->due_ms >= t->due_ms)
            break;
        put(h, i, at(h, child));
        i = child;
    }
    put(h, i, t);
}

void heap_done(Heap *h)
{
    for (size_t i = 0; i < h->len; i++)
        h->items[i]->index = 0;
    free(h->items);
    *h = (Heap){0};
}

static void heap_grow(Heap *h)
{
    if (h->len < h->cap)
        return;
    h->cap = h->cap ? h->cap * 2 : 16;
    h->items = xreallocarray(h->items, h->cap, sizeof(*h->items));
}

void heap_set(Heap *h, HeapTimer *t, int64_t due_ms)
{
    t->due_ms = due_ms;
    if (!heap_has(t)) {
        heap_grow(h);
        put(h, ++h->len, t);
    }
    CONTRACT(t->index <= h->len && at(h, t->index) == t);
    sift_up(h, t->index);
    sift_down(h, t->index);
}

void heap_remove(Heap *h, HeapTimer *t)
{
    size_t i = t->index;
    HeapTimer *last;

    if (i == 0)
        return;
    CONTRACT(i <= h->len && at(h, i) == t);
    last = at(h, h->len--);
    t->index = 0;
    if (last == t)
        return;
    put(h, i, last);
    sift_up(h, i);
    sift_down(h, last->index);
}

HeapTimer *heap_peek(const Heap *h)
{
    return h->len > 0 ? at(h, 1) : NULL;
}

HeapTimer *heap_pop_due(Heap *h, int64_t now_ms)
{
    HeapTimer *t = heap_peek(h);

    if (!t || t->due_ms > now_ms)
        return NULL;
    heap_remove(h, t);
    return t;
}
