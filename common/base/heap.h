/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timer heap: a binary min-heap of intrusive timers, ordered by deadline. O(log n) add, move and
 * remove, O(1) peek. The unit of the deadlines is the owner's (the loop: monotonic milliseconds;
 * the planner's deadlines: wall-clock milliseconds). Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct HeapTimer {
    int64_t due_ms;
    size_t index; /* 1-based position, 0 = not in the heap; private to heap.c */
} HeapTimer;

typedef struct Heap {
    HeapTimer **items;
    size_t len;
    size_t cap;
} Heap;

/* Forgets all timers (each must still exist: its mark is taken away) and frees the heap's own
 * memory. */
void heap_done(Heap *h);
/* Adds the timer or moves it to the new deadline. */
void heap_set(Heap *h, HeapTimer *t, int64_t due_ms);
void heap_remove(Heap *h, HeapTimer *t); /* harmless where it is not in the heap */
HeapTimer *heap_peek(const Heap *h);     /* the earliest, or NULL */
/* Removes and returns the earliest timer with due_ms <= now_ms, or NULL. */
HeapTimer *heap_pop_due(Heap *h, int64_t now_ms);
static inline bool heap_has(const HeapTimer *t)
{
    return t->index != 0;
}
