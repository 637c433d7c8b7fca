/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the records of a directory listing (see scripts/list.sh) as they arrive and keeps the first
 * entries by name, so that memory stays flat however large the directory is.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/hashmap.h"
#include "gateway/transport/script.h"
#include "gateway/transport/transport.h"

typedef struct ListingEntry ListingEntry;

typedef struct Listing {
    char mark[SCRIPT_ID_LEN + 2]; /* the id and a space */
    uint64_t max_entries;
    uint64_t total;
    bool saw_directory; /* the record that proves that the tools work */
    bool broken;        /* something that is no record */
    Buf pending;
    ListingEntry **heap; /* greatest name first */
    size_t heap_len, heap_cap;
    Hashmap *by_name; /* of ListingEntry, the same ones */
} Listing;

void listing_init(Listing *l, const char *id, uint64_t max_entries);
void listing_feed(Listing *l, const char *data, size_t len);
/* The stream is complete: hands the entries over, sorted by name. false where the listing is broken
 * or had no directory. */
bool listing_finish(Listing *l, FileEntry **ret, size_t *ret_len, uint64_t *ret_total);
void listing_done(Listing *l);
