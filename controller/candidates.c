/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/candidates.h"

#include "common/base/str.h"
#include "controller/names.h"

typedef struct PoolStock PoolStock;

/* The members of one pool that are on one node; node NULL: on none that is known. */
typedef struct Shelf {
    PoolStock *stock;
    const char *node; /* held by the members */
    List members;
    size_t n;
    List link;
} Shelf;

struct PoolStock {
    const char *pool_uid; /* held by the members */
    List shelves;
    Shelf warming; /* not in shelves */
    size_t n_ready;
    PoolStock *next; /* in its hash chain */
};

struct Candidates {
    PoolStock **chains;
    size_t cap; /* a power of two */
    size_t len;
    uint64_t seq;
};

#define CHAINS_MIN 16

bool sandbox_is_ready(const Sandbox *s)
{
    const Condition *ready = conditions_get(s->conditions, "Ready");

    return ready && ready->status == CONDITION_TRUE && s->status_pod_ips &&
           (ready->observed_generation == 0 || ready->observed_generation >= s->obj.generation);
}

bool sandbox_is_adoptable(const Sandbox *s)
{
    return !s->obj.gone && !s->obj.deleting && s->obj.owner_kind == OWNER_POOL &&
           strmap_get(s->labels, LABEL_WARM_POOL) && strmap_get(s->labels, LABEL_TEMPLATE_REF);
}

static bool is_candidate(const Sandbox *s)
{
    return sandbox_is_adoptable(s) && s->obj.inflight == 0 && !s->reserved_for && !s->suspended;
}

Candidates *candidates_new(void)
{
    Candidates *c = xnew(Candidates);

    c->cap = CHAINS_MIN;
    c->chains = xcalloc(c->cap, sizeof(PoolStock *));
    return c;
}

Candidates *candidates_free(Candidates *c)
{
    if (!c)
        return NULL;
    free(c->chains);
    free(c);
    return NULL;
}

static PoolStock **chain_of(const Candidates *c, const char *uid)
{
    return &c->chains[intern_hash(uid) & (c->cap - 1)];
}

static PoolStock *stock_get(const Candidates *c, const char *uid)
{
    PoolStock *s = *chain_of(c, uid);

    while (s && s->pool_uid != uid)
        s = s->next;
    return s;
}

static void chains_grow(Candidates *c)
{
    PoolStock **old = c->chains;
    size_t old_cap = c->cap;

    c->cap *= 2;
    c->chains = xcalloc(c->cap, sizeof(PoolStock *));
    for (size_t i = 0; i < old_cap; i++)
        for (PoolStock *s = old[i], *next; s; s = next) {
            PoolStock **to = chain_of(c, s->pool_uid);
            next = s->next;
            s->next = *to;
            *to = s;
        }
    free(old);
}

static void shelf_init(Shelf *shelf, PoolStock *stock, const char *node)
{
    shelf->stock = stock;
    shelf->node = node;
    list_init(&shelf->members);
}

static PoolStock *stock_make(Candidates *c, const char *uid)
{
    PoolStock *s = stock_get(c, uid), **chain;

    if (s)
        return s;
    if (++c->len > c->cap)
        chains_grow(c);
    s = xnew(PoolStock);
    s->pool_uid = uid;
    list_init(&s->shelves);
    shelf_init(&s->warming, s, NULL);
    chain = chain_of(c, uid);
    s->next = *chain;
    *chain = s;
    return s;
}

static void stock_drop_if_empty(Candidates *c, PoolStock *s)
{
    PoolStock **p = chain_of(c, s->pool_uid);

    if (s->n_ready > 0 || s->warming.n > 0)
        return;
    while (*p != s)
        p = &(*p)->next;
    *p = s->next;
    c->len--;
    free(s);
}

static Shelf *shelf_make(PoolStock *stock, const char *node)
{
    Shelf *shelf;

    list_foreach (pos, &stock->shelves) {
        shelf = LIST_ENTRY(pos, Shelf, link);
        if (shelf->node == node)
            return shelf;
    }
    shelf = xnew(Shelf);
    shelf_init(shelf, stock, node);
    list_push(&stock->shelves, &shelf->link);
    return shelf;
}

static void shelf_add(Candidates *c, Shelf *shelf, Sandbox *s)
{
    s->candidate_seq = ++c->seq;
    list_push(&shelf->members, &s->candidate);
    s->candidate_bucket = shelf;
    shelf->n++;
    if (shelf != &shelf->stock->warming)
        shelf->stock->n_ready++;
}

void candidates_remove(Candidates *c, Sandbox *s)
{
    Shelf *shelf = s->candidate_bucket;
    PoolStock *stock;

    if (!shelf)
        return;
    stock = shelf->stock;
    list_remove(&s->candidate);
    s->candidate_bucket = NULL;
    shelf->n--;
    if (shelf != &stock->warming) {
        stock->n_ready--;
        if (shelf->n == 0) {
            list_remove(&shelf->link);
            free(shelf);
        }
    }
    stock_drop_if_empty(c, stock);
}

/* Gives s the place of before in the same list. */
static void take_place(Sandbox *before, Sandbox *s)
{
    s->candidate = before->candidate;
    s->candidate.prev->next = &s->candidate;
    s->candidate.next->prev = &s->candidate;
    s->candidate_bucket = before->candidate_bucket;
    s->candidate_seq = before->candidate_seq;
    before->candidate = (List){0};
    before->candidate_bucket = NULL;
}

static bool belongs(const Shelf *shelf, const Sandbox *s)
{
    bool warming = shelf == &shelf->stock->warming;

    return is_candidate(s) && shelf->stock->pool_uid == s->obj.owner_uid &&
           sandbox_is_ready(s) != warming && (warming || shelf->node == s->status_node);
}

void candidates_update(Candidates *c, Sandbox *before, Sandbox *s)
{
    if (before && before->candidate_bucket) {
        if (belongs(before->candidate_bucket, s)) {
            if (before != s)
                take_place(before, s);
            return;
        }
        candidates_remove(c, before);
    }
    if (!is_candidate(s))
        return;
    PoolStock *stock = stock_make(c, s->obj.owner_uid);
    shelf_add(c, sandbox_is_ready(s) ? shelf_make(stock, s->status_node) : &stock->warming, s);
}

static Sandbox *shelf_first(const Shelf *shelf, CandidateSkipFn skip, void *userdata)
{
    list_foreach (pos, &shelf->members) {
        Sandbox *s = LIST_ENTRY(pos, Sandbox, candidate);
        if (!skip || !skip(s, userdata))
            return s;
    }
    return NULL;
}

Sandbox *candidates_pick(const Candidates *c, const char *pool_uid, CandidateSkipFn skip,
                         void *userdata)
{
    const PoolStock *stock = stock_get(c, pool_uid);
    Sandbox *best = NULL;
    size_t most = 1;

    if (!stock)
        return NULL;
    list_foreach (pos, &stock->shelves) {
        const Shelf *shelf = LIST_ENTRY(pos, Shelf, link);
        Sandbox *s = shelf->n >= most ? shelf_first(shelf, skip, userdata) : NULL;
        if (!s || (best && shelf->n == most && s->candidate_seq > best->candidate_seq))
            continue;
        best = s;
        most = shelf->n;
    }
    return best;
}

size_t candidates_ready(const Candidates *c, const char *pool_uid)
{
    const PoolStock *stock = stock_get(c, pool_uid);

    return stock ? stock->n_ready : 0;
}

const List *candidates_warming(const Candidates *c, const char *pool_uid)
{
    const PoolStock *stock = stock_get(c, pool_uid);

    return stock ? &stock->warming.members : NULL;
}
