/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server: objects with UIDs, one resourceVersion for all, preconditions, status
 * subresources, deletion by propagation policy. What a real one does at once it does at once; what
 * kubelet and garbage collector do is in cluster.h.
 */
#pragma once

#include "tests/sim/sim.h"

typedef struct Stored {
    ObjKind kind;
    char *ns, *name, *uid;
    uint64_t rv;
    Doc *doc;
    char *text; /* of doc, once it was asked for */
    size_t text_len;
    char *owner_uid;     /* of doc's controller reference */
    int64_t deadline_ms; /* check_facts.c: of doc, where it is a claim */
    Writer made_by;
    int64_t made_ms;        /* monotonic */
    unsigned status_writes; /* check_budget.c */
    bool watched;           /* line.c: the watch has it */
    bool stopping;          /* cluster.c: its end is under way */
    int64_t user_ms;        /* when a user last changed it (monotonic) */
    int64_t changed_ms;     /* when anybody did */
    int64_t left_ms;        /* check.c: when its owner went, where that was no news; or 0 */
    bool jumped;            /* the wall clock jumped since it was made */
    char *claimed_by;       /* check.c: UID of the claim that a Sandbox was given to */
} Stored;

typedef struct Reply {
    int code; /* 200, 201, 404, 409, 422 */
    const char *reason;
    char *text; /* the object, or a Status */
    size_t len;
} Reply;
void reply_done(Reply *r);

Server *server_new(void);
Server *server_free(Server *s);

Reply server_create(Sim *sim, ObjKind kind, const char *body, size_t len, Writer who);
Reply server_patch(Sim *sim, ObjKind kind, const char *ns, const char *name, bool status,
                   const char *body, size_t len, Writer who);
Reply server_patch_json(Sim *sim, ObjKind kind, const char *ns, const char *name, const char *body,
                        size_t len, Writer who);
Reply server_delete(Sim *sim, ObjKind kind, const char *ns, const char *name, const char *body,
                    size_t len, Writer who);
Reply server_get(const Sim *sim, ObjKind kind, const char *ns, const char *name);

Stored *server_find(const Sim *sim, ObjKind kind, const char *ns, const char *name);
Stored *server_find_uid(const Sim *sim, const char *uid);
uint64_t server_rv(const Sim *sim);
/* For the system's own writes: the caller changed doc, which is now stored. */
void server_commit(Sim *sim, Stored *o, Writer who);
/* Removes it for good. */
void server_remove(Sim *sim, Stored *o, Writer who);

typedef void (*StoredFn)(Sim *sim, Stored *o, void *arg);
/* fn must not remove anything but what it is called for. */
void server_each(Sim *sim, ObjKind kind, StoredFn fn, void *arg);
size_t server_count(const Sim *sim, ObjKind kind);

/* The controller reference of a document, or NULL. */
const Doc *doc_controller(const Doc *doc);
/* A copy of the document's text. */
char *stored_text(Stored *o, size_t *ret_len);
