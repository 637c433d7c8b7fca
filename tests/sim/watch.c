/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/watch.h"

#include "common/base/contract.h"
#include "common/base/str.h"
#include "controller/names.h"
#include "tests/sim/line.h"

/* Items of a list that arrive together. */
#define LIST_CHUNK 20

struct WatchStream {
    ObjKind kind;
    unsigned session; /* what belongs to an older one is lost */
    bool open;        /* commits are sent */
    int64_t last_us;  /* when the last event sent arrives: order is kept */
    int64_t up_since_ms;
};

typedef enum PieceType {
    PIECE_BEGIN,
    PIECE_ITEM,
    PIECE_END,
    PIECE_UPSERT,
    PIECE_REMOVED
} PieceType;

/* Something on its way to the controller. */
typedef struct Piece {
    WatchStream *stream;
    unsigned session;
    PieceType type;
    char *text;
    size_t len;
    uint64_t rv;
} Piece;

WatchStream *watch_stream_new(ObjKind kind)
{
    WatchStream *w = xnew(WatchStream);

    w->kind = kind;
    w->up_since_ms = -1;
    return w;
}

WatchStream *watch_stream_free(WatchStream *w)
{
    free(w);
    return NULL;
}

int64_t watch_stream_up_since_ms(const WatchStream *w)
{
    return w->up_since_ms;
}

static void deliver_object(Reconciler *r, const Piece *p)
{
    _cleanup_json_ JsonValue *v = NULL;

    CONTRACT(json_parse(p->text, p->len, JSON_DEPTH_CRD, JSON_PARSE_DEFAULT, &v, NULL) >= 0);
    if (p->type == PIECE_REMOVED)
        reconciler_removed(r, p->stream->kind, v);
    else
        reconciler_upsert(r, p->stream->kind, v);
}

static void deliver(Sim *sim, void *arg)
{
    Piece *p = arg;
    Reconciler *r = line_reconciler(sim);

    if (r && p->session == p->stream->session) {
        if (p->type == PIECE_BEGIN) {
            reconciler_list_begin(r, p->stream->kind, NULL);
        } else if (p->type == PIECE_END) {
            reconciler_list_end(r, p->stream->kind, NULL, p->rv);
            reconciler_connected(r, p->stream->kind, true);
            p->stream->up_since_ms = sim_mono_ms(sim);
        } else {
            deliver_object(r, p);
        }
    }
    free(p->text);
}

static void send(Sim *sim, WatchStream *w, PieceType type, char *text, size_t len, uint64_t rv,
                 int64_t delay_us)
{
    Piece *p = xnew(Piece);
    int64_t at = sim->mono_us + delay_us;

    *p = (Piece){w, w->session, type, text, len, rv};
    if (at <= w->last_us)
        at = w->last_us + 1;
    w->last_us = at;
    sim_at_us(sim, at, deliver, p);
}

static bool is_selected(const Stored *o)
{
    return o->kind != OBJ_POD || doc_get(doc_path(o->doc, "metadata.labels"), LABEL_NAME_HASH);
}

static void list_item(Sim *sim, Stored *o, void *arg)
{
    size_t len;
    char *text;

    o->watched = is_selected(o);
    if (!o->watched)
        return;
    text = stored_text(o, &len);
    send(sim, arg, PIECE_ITEM, text, len, 0, sim_random(sim, LIST_CHUNK) == 0 ? 2000 : 0);
}

static void start_list(Sim *sim, void *arg)
{
    Piece *ticket = arg; /* says which session this is for */
    WatchStream *w = ticket->stream;

    if (!line_reconciler(sim) || ticket->session != w->session)
        return;
    send(sim, w, PIECE_BEGIN, NULL, 0, 0, 1000);
    server_each(sim, w->kind, list_item, w);
    send(sim, w, PIECE_END, NULL, 0, server_rv(sim), sim_between(sim, 0, 20) * 1000);
    w->open = true;
}

static void list_later(Sim *sim, WatchStream *w, int64_t ms)
{
    Piece *p = xnew(Piece);

    *p = (Piece){.stream = w, .session = w->session};
    sim_after(sim, ms, start_list, p);
}

void watch_stream_start(Sim *sim, WatchStream *w)
{
    w->session++;
    w->last_us = sim->mono_us;
    list_later(sim, w, sim_between(sim, 1, 200));
}

void watch_stream_stop(WatchStream *w)
{
    w->session++;
    w->open = false;
    w->up_since_ms = -1;
}

void watch_stream_cut(Sim *sim, WatchStream *w)
{
    watch_stream_stop(w);
    reconciler_connected(line_reconciler(sim), w->kind, false);
    w->last_us = sim->mono_us;
    list_later(sim, w, sim_between(sim, 50, 3000));
}

void watch_stream_event(Sim *sim, WatchStream *w, Stored *o, const char *type)
{
    bool selected = is_selected(o), removed = str_eq(type, "DELETED") || !selected;
    int64_t delay = sim_between(sim, 0, 20);
    size_t len;

    if (!w->open || (removed && !o->watched))
        return;
    o->watched = !removed;
    if (sim_fault(sim, 20))
        delay += sim_between(sim, 50, 800);
    char *text = stored_text(o, &len);
    send(sim, w, removed ? PIECE_REMOVED : PIECE_UPSERT, text, len, o->rv, delay * 1000);
    if (!removed && sim_fault(sim, 20))
        send(sim, w, PIECE_UPSERT, xmemdup(text, len + 1), len, o->rv, delay * 1000);
}
