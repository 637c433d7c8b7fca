/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way: a ticket each, by which the answer finds what it belongs to. */
#include "controller/reconciler_internal.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct TicketText {
    char s[24];
} TicketText;

static TicketText ticket_text(uint64_t ticket)
{
    TicketText t;

    (void)snprintf(t.s, sizeof(t.s), "%" PRIu64, ticket);
    return t;
}

uint64_t reconciler_request_new(Flight *f, RequestType type, size_t op, const char *uid)
{
    Reconciler *r = f->r;
    Request *q = xnew(Request);
    uint64_t ticket = ++r->next_ticket;

    q->flight = f;
    q->type = type;
    q->op = op;
    q->uid = xstrdup_null(uid);
    (void)hashmap_put(r->requests, ticket_text(ticket).s, q);
    f->outstanding++;
    r->inflight++;
    return ticket;
}

void plan_items_free(PlanLiveItem *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(items[i].name);
        free(items[i].uid);
    }
    free(items);
}

void reconciler_request_free(Request *q)
{
    plan_items_free(q->items, q->n_items);
    free(q->uid);
    free(q);
}

Request *reconciler_request_find(const Reconciler *r, uint64_t ticket)
{
    return hashmap_get(r->requests, ticket_text(ticket).s);
}

Request *reconciler_request_take(Reconciler *r, uint64_t ticket)
{
    Request *q = hashmap_remove(r->requests, ticket_text(ticket).s);

    if (!q)
        return NULL;
    q->flight->outstanding--;
    r->inflight--;
    return q;
}
