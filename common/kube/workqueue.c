/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kube/workqueue.h"

#include "common/base/cleanup.h"
#include "common/base/hashmap.h"
#include "common/base/heap.h"
#include "common/base/list.h"

#define BACKOFF_BASE_MS 200
#define BACKOFF_MAX_MS 60000

typedef struct Item {
    char *key;
    List ready;      /* linked: waits in the queue */
    HeapTimer timer; /* in the heap: becomes ready at its instant */
    bool in_work;
    bool again; /* added while in work */
    bool dropped;
    unsigned failures;
} Item;

struct WorkQueue {
    Hashmap *items;
    List ready; /* first added, first taken */
    size_t n_ready;
    Heap timers;
};

WorkQueue *workqueue_new(void)
{
    WorkQueue *q = xnew(WorkQueue);
    q->items = hashmap_new();
    list_init(&q->ready);
    return q;
}

static void item_free(void *p)
{
    Item *item = p;
    free(item->key);
    free(item);
}

WorkQueue *workqueue_free(WorkQueue *q)
{
    if (!q)
        return NULL;
    heap_done(&q->timers);
    hashmap_free_with(q->items, item_free);
    free(q);
    return NULL;
}

static Item *item_get(WorkQueue *q, const char *key)
{
    Item *item = hashmap_get(q->items, key);
    if (item) {
        item->dropped = false;
        return item;
    }
    item = xnew(Item);
    item->key = xstrdup(key);
    hashmap_put(q->items, key, item);
    return item;
}

static void item_unready(WorkQueue *q, Item *item)
{
    if (list_linked(&item->ready))
        q->n_ready--;
    list_remove(&item->ready);
}

static void item_drop(WorkQueue *q, Item *item)
{
    item_unready(q, item);
    heap_remove(&q->timers, &item->timer);
    hashmap_remove(q->items, item->key);
    item_free(item);
}

/* Forgets a key of which nothing is left to know. */
static void item_drop_idle(WorkQueue *q, Item *item)
{
    bool idle = !item->in_work && !list_linked(&item->ready) && !heap_has(&item->timer);
    if (idle && (item->failures == 0 || item->dropped))
        item_drop(q, item);
}

static void item_make_ready(WorkQueue *q, Item *item)
{
    if (item->in_work) {
        item->again = true;
    } else if (!list_linked(&item->ready)) {
        list_push(&q->ready, &item->ready);
        q->n_ready++;
    }
}

void workqueue_add(WorkQueue *q, const char *key)
{
    item_make_ready(q, item_get(q, key));
}

static void item_set_due(WorkQueue *q, Item *item, int64_t due_ms)
{
    if (!heap_has(&item->timer) || due_ms < item->timer.due_ms)
        heap_set(&q->timers, &item->timer, due_ms);
}

void workqueue_add_at(WorkQueue *q, const char *key, int64_t due_ms)
{
    item_set_due(q, item_get(q, key), due_ms);
}

static int64_t backoff_ms(unsigned failures, double jitter)
{
    int64_t delay = BACKOFF_BASE_MS;
    for (unsigned i = 1; i < failures && delay < BACKOFF_MAX_MS; i++)
        delay *= 2;
    int64_t half = (delay < BACKOFF_MAX_MS ? delay : BACKOFF_MAX_MS) / 2;
    return half + (int64_t)((double)half * jitter);
}

void workqueue_add_failed(WorkQueue *q, const char *key, int64_t now_ms, double jitter)
{
    Item *item = item_get(q, key);
    item->failures++;
    item_set_due(q, item, now_ms + backoff_ms(item->failures, jitter));
}

void workqueue_forget_failures(WorkQueue *q, const char *key)
{
    Item *item = hashmap_get(q->items, key);
    if (!item)
        return;
    item->failures = 0;
    item_drop_idle(q, item);
}

static void collect_due(WorkQueue *q, int64_t now_ms)
{
    HeapTimer *due;
    while ((due = heap_pop_due(&q->timers, now_ms)))
        item_make_ready(q, CONTAINER_OF(due, Item, timer));
}

const char *workqueue_take(WorkQueue *q, int64_t now_ms)
{
    collect_due(q, now_ms);
    if (list_empty(&q->ready))
        return NULL;
    Item *item = LIST_ENTRY(q->ready.next, Item, ready);
    item_unready(q, item);
    heap_remove(&q->timers, &item->timer);
    item->in_work = true;
    item->again = false;
    return item->key;
}

void workqueue_done(WorkQueue *q, const char *key)
{
    Item *item = hashmap_get(q->items, key);
    if (!item || !item->in_work)
        return;
    item->in_work = false;
    if (item->again)
        item_make_ready(q, item);
    item->again = false;
    item_drop_idle(q, item);
}

void workqueue_remove(WorkQueue *q, const char *key)
{
    Item *item = hashmap_get(q->items, key);
    if (!item)
        return;
    if (!item->in_work) {
        item_drop(q, item);
        return;
    }
    heap_remove(&q->timers, &item->timer);
    item->again = false;
    item->failures = 0;
    item->dropped = true;
}

int64_t workqueue_next_ms(const WorkQueue *q, int64_t now_ms)
{
    if (!list_empty(&q->ready))
        return 0;
    const HeapTimer *first = heap_peek(&q->timers);
    if (!first)
        return INT64_MAX;
    return first->due_ms > now_ms ? first->due_ms - now_ms : 0;
}

size_t workqueue_size(const WorkQueue *q)
{
    return hashmap_size(q->items);
}

size_t workqueue_depth(WorkQueue *q, int64_t now_ms)
{
    collect_due(q, now_ms);
    return q->n_ready;
}

size_t workqueue_delayed(WorkQueue *q, int64_t now_ms)
{
    collect_due(q, now_ms);
    return q->timers.len;
}
