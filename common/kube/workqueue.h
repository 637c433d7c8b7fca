/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reconcile keys with set semantics: a key waits once however often it is added; a key in work that
 * is added again runs again afterwards; failures back off per key (base 200 ms, doubling, cap 60 s,
 * jitter by the caller's random source) and are forgotten on success. add_at makes a key due at a
 * wall-clock instant. Pure data structure: time comes in as arguments. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct WorkQueue WorkQueue;

WorkQueue *workqueue_new(void);
WorkQueue *workqueue_free(WorkQueue *q);
void workqueue_add(WorkQueue *q, const char *key);
/* Due at the given instant; an earlier one that is set already stays. Cleared when the key runs. */
void workqueue_add_at(WorkQueue *q, const char *key, int64_t due_ms);
void workqueue_add_failed(WorkQueue *q, const char *key, int64_t now_ms, double jitter);
void workqueue_forget_failures(WorkQueue *q, const char *key);
/* The next key that is due and not in work, or NULL; it is in work until workqueue_done. Borrowed
 * until then. */
const char *workqueue_take(WorkQueue *q, int64_t now_ms);
void workqueue_done(WorkQueue *q, const char *key);
/* Drops a key that is gone. */
void workqueue_remove(WorkQueue *q, const char *key);
/* ms from now until something is due: 0 = now, INT64_MAX = never. */
int64_t workqueue_next_ms(const WorkQueue *q, int64_t now_ms);
/* Every key that it knows: waiting, in work, or with failures to remember. */
size_t workqueue_size(const WorkQueue *q);
/* The backlog: keys that are due and not in work. */
size_t workqueue_depth(WorkQueue *q, int64_t now_ms);
/* Keys with an instant ahead of them: a deadline, or the end of a back-off. */
size_t workqueue_delayed(WorkQueue *q, int64_t now_ms);
