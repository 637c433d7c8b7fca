/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live view of one resource (in one namespace or all): paged LIST, then WATCH with bookmarks from
 * its resourceVersion, for ever. Keeps no objects: the consumer copies the fields it wants into its
 * own store. 410 Gone lists again without dropping the old view: during a relist the consumer gets
 * list_begin, an `upsert` for every object there is, then list_end, on which it drops what was not
 * mentioned. list_begin without a list_end before it starts the list over; an object may be
 * mentioned twice. Reconnects back off with jitter (0.2–30 s); a silent connection is ended
 * (bookmarks come about every minute; idle limit 90 s plus TCP keepalive). Single-threaded, on the
 * loop.
 */
#pragma once

#include "common/kube/client.h"

typedef struct Reflector Reflector;

typedef struct ReflectorHandlers {
    void (*list_begin)(void *userdata);
    void (*upsert)(JsonValue *object, void *userdata);  /* borrowed: ADDED, MODIFIED or listed */
    void (*removed)(JsonValue *object, void *userdata); /* last state, from DELETED */
    void (*list_end)(void *userdata);
    /* connected = list done and watch running; false with the reason when it is lost. May be NULL.
     */
    void (*state)(bool connected, const Error *error, void *userdata);
} ReflectorHandlers;

typedef struct ReflectorOptions {
    const KubeResource *resource;
    const char *ns;             /* NULL: all namespaces */
    const char *label_selector; /* or NULL */
    const char *field_selector; /* or NULL */
    bool metadata_only;         /* PartialObjectMetadata */
    unsigned page_size;         /* default 500 */
    int64_t watch_idle_ms;      /* default 90,000; above the interval of bookmarks */
    ReflectorHandlers handlers;
    void *userdata;
} ReflectorOptions;

int reflector_new(KubeClient *c, const ReflectorOptions *options, Reflector **ret, Error **error);
/* May be called in the handlers. */
Reflector *reflector_free(Reflector *r);
bool reflector_synced(const Reflector *r);    /* one complete list was delivered */
bool reflector_connected(const Reflector *r); /* and the watch runs */
/* resourceVersion the view has reached, as text. */
const char *reflector_resource_version(const Reflector *r);
