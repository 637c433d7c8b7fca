/* SPDX-License-Identifier: Apache-2.0 */
/* The way back from the sessions to the loop. A full loop queue delays, it never loses. */
#include "gateway/transport/transport-internal.h"

#include <errno.h>

#define WAKE_AGAIN_MS 10

static void wake(Transport *t);

static void wake_again(void *userdata)
{
    wake(userdata);
}

static void wake(Transport *t)
{
    if (loop_post(t->loop, transport_drain, t) != -ENOBUFS)
        return;
    t->wake_again = (LoopTimer){.heap = t->wake_again.heap, .fn = wake_again, .userdata = t};
    ws_timer_set(t->ws, &t->wake_again, WAKE_AGAIN_MS);
}

static void completion_add(Transport *t, List *head, List *link)
{
    pthread_mutex_lock(&t->lock);
    list_push(head, link);
    bool first = !t->woken;
    t->woken = true;
    pthread_mutex_unlock(&t->lock);
    if (first)
        wake(t);
}

void completion_finished(TransportJob *job)
{
    completion_add(job->transport, &job->transport->finished, &job->finished_link);
}

void completion_released(TransportJob *job)
{
    completion_add(job->transport, &job->transport->released, &job->released_link);
}

void completion_without_session(TransportJob *job)
{
    Transport *t = job->transport;

    pthread_mutex_lock(&t->lock);
    list_push(&t->finished, &job->finished_link);
    list_push(&t->released, &job->released_link);
    pthread_mutex_unlock(&t->lock);
    loop_timer_set(t->loop, &t->drain, 0);
}

static void list_move(List *from, List *to)
{
    list_init(to);
    for (List *l = NULL; (l = list_pop(from));)
        list_push(to, l);
}

void completions_take(Transport *t, Completions *ret)
{
    pthread_mutex_lock(&t->lock);
    list_move(&t->finished, &ret->finished);
    list_move(&t->released, &ret->released);
    t->woken = false;
    pthread_mutex_unlock(&t->lock);
}
