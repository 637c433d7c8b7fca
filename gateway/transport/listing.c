/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/listing.h"

#include "common/base/str.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MARK_LEN (SCRIPT_ID_LEN + 1)
#define RECORD_MAX 8192 /* longer than any path */
#define PENDING_MAX (256 * 1024)
#define FIELDS 4

struct ListingEntry {
    FileEntry file;
    bool resolved; /* a link whose target's record has been seen */
};

typedef struct Record {
    char kind; /* d, f, l, t */
    uint64_t mode, size;
    int64_t mtime;
    const char *name;
} Record;

void listing_init(Listing *l, const char *id, uint64_t max_entries)
{
    *l = (Listing){.max_entries = max_entries, .pending = BUF_INIT(PENDING_MAX)};
    (void)snprintf(l->mark, sizeof(l->mark), "%.*s ", SCRIPT_ID_LEN, id);
    l->by_name = hashmap_new();
}

static void entry_free(void *p)
{
    ListingEntry *e = p;
    free(e->file.name);
    free(e);
}

void listing_done(Listing *l)
{
    hashmap_free_with(l->by_name, entry_free);
    l->by_name = NULL;
    free(TAKE_PTR(l->heap));
    buf_done(&l->pending);
}

/* --- the heap: parents are not before their children --- */

static bool is_before(const ListingEntry *a, const ListingEntry *b)
{
    return strcmp(a->file.name, b->file.name) < 0;
}

static void swap(ListingEntry **a, ListingEntry **b)
{
    ListingEntry *c = *a;
    *a = *b;
    *b = c;
}

static void heap_up(Listing *l, size_t i)
{
    while (i > 0 && is_before(l->heap[(i - 1) / 2], l->heap[i])) {
        swap(&l->heap[(i - 1) / 2], &l->heap[i]);
        i = (i - 1) / 2;
    }
}

static void heap_down(Listing *l, size_t i)
{
    for (;;) {
        size_t top = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < l->heap_len; child++)
            if (is_before(l->heap[top], l->heap[child]))
                top = child;
        if (top == i)
            return;
        swap(&l->heap[top], &l->heap[i]);
        i = top;
    }
}

static void heap_push(Listing *l, ListingEntry *e)
{
    if (l->heap_len == l->heap_cap) {
        l->heap_cap = l->heap_cap ? l->heap_cap * 2 : 64;
        l->heap = xreallocarray(l->heap, l->heap_cap, sizeof(*l->heap));
    }
    l->heap[l->heap_len] = e;
    heap_up(l, l->heap_len++);
}

/* Takes the greatest name out. */
static ListingEntry *heap_pop(Listing *l)
{
    ListingEntry *top = l->heap[0];

    l->heap[0] = l->heap[--l->heap_len];
    heap_down(l, 0);
    return top;
}

/* --- records --- */

static FileType type_of(uint64_t mode)
{
    if (S_ISDIR(mode))
        return FILE_TYPE_DIRECTORY;
    return S_ISREG(mode) ? FILE_TYPE_FILE : FILE_TYPE_OTHER;
}

static void entry_fill(ListingEntry *e, const Record *r)
{
    e->file.size = r->size;
    e->file.type = type_of(r->mode);
    e->file.mod_time = (double)r->mtime;
    e->resolved = r->kind == 't';
}

static void entry_add(Listing *l, const Record *r)
{
    bool full = l->heap_len >= l->max_entries;

    if (full && (l->heap_len == 0 || strcmp(r->name, l->heap[0]->file.name) > 0))
        return;
    if (full) {
        ListingEntry *last = heap_pop(l);
        hashmap_remove(l->by_name, last->file.name);
        entry_free(last);
    }
    ListingEntry *e = xnew(ListingEntry);
    e->file.name = xstrdup(r->name);
    entry_fill(e, r);
    hashmap_put(l->by_name, e->file.name, e);
    heap_push(l, e);
}

/* A link has two records in either order, its own and that of what it leads to, which wins. */
static void record_apply(Listing *l, const Record *r)
{
    if (r->kind == 'd') {
        l->saw_directory = true;
        return;
    }
    if (r->kind != 't')
        l->total++;
    ListingEntry *e = hashmap_get(l->by_name, r->name);
    if (!e)
        entry_add(l, r);
    else if (r->kind == 't')
        entry_fill(e, r);
}

static bool hex_to_u64(const char *s, uint64_t *ret)
{
    char *end = NULL;

    *ret = strtoull(s, &end, 16);
    return end != s && !*end;
}

/* "KIND MODE SIZE MTIME PATH", NUL-terminated; is taken to pieces. */
static bool record_parse(char *text, Record *ret)
{
    char *fields[FIELDS], *rest = text;

    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = strsep(&rest, " ");
        if (!rest)
            return false;
    }
    const char *slash = strrchr(rest, '/');
    *ret = (Record){.kind = fields[0][0], .name = slash ? slash + 1 : rest};
    return strlen(fields[0]) == 1 && strchr("dflt", ret->kind) &&
           hex_to_u64(fields[1], &ret->mode) && str_to_u64(fields[2], &ret->size) == 0 &&
           str_to_i64(fields[3], &ret->mtime) == 0 && *ret->name;
}

/* One record, from behind its mark up to the next mark or the end. */
static void record_take(Listing *l, const char *data, size_t len)
{
    char text[RECORD_MAX];
    Record r;

    if (len == 0 || len > sizeof(text) || data[len - 1] != '\n') {
        l->broken = true;
        return;
    }
    memcpy(text, data, len - 1);
    text[len - 1] = '\0';
    if (record_parse(text, &r))
        record_apply(l, &r);
    else
        l->broken = true;
}

/* Takes all records that are followed by a mark. */
static void records_take(Listing *l)
{
    const char *data = l->pending.data, *end = data + l->pending.len, *next = NULL;
    const char *at = data;

    while ((size_t)(end - at) > MARK_LEN &&
           (next = memmem(at + MARK_LEN, (size_t)(end - at) - MARK_LEN, l->mark, MARK_LEN))) {
        record_take(l, at + MARK_LEN, (size_t)(next - at) - MARK_LEN);
        at = next;
    }
    buf_consume(&l->pending, (size_t)(at - data));
}

void listing_feed(Listing *l, const char *data, size_t len)
{
    if (l->broken)
        return;
    if (buf_append(&l->pending, data, len) < 0) {
        l->broken = true;
        return;
    }
    size_t known = l->pending.len < MARK_LEN ? l->pending.len : MARK_LEN;
    if (memcmp(l->pending.data, l->mark, known) != 0)
        l->broken = true;
    else
        records_take(l);
    if (l->pending.len > RECORD_MAX + MARK_LEN)
        l->broken = true;
}

static void entries_hand_over(Listing *l, FileEntry **ret, size_t *ret_len)
{
    size_t n = l->heap_len;
    FileEntry *entries = xcalloc(n ? n : 1, sizeof(*entries));

    while (l->heap_len > 0) {
        ListingEntry *e = heap_pop(l);
        hashmap_remove(l->by_name, e->file.name);
        entries[l->heap_len] = e->file;
        free(e);
    }
    *ret = entries;
    *ret_len = n;
}

bool listing_finish(Listing *l, FileEntry **ret, size_t *ret_len, uint64_t *ret_total)
{
    if (!l->broken && l->pending.len > MARK_LEN)
        record_take(l, l->pending.data + MARK_LEN, l->pending.len - MARK_LEN);
    else if (l->pending.len > 0)
        l->broken = true;
    if (l->broken || !l->saw_directory)
        return false;
    entries_hand_over(l, ret, ret_len);
    /* A link that went away between its two records is an entry that was not counted. */
    *ret_total = l->total > *ret_len ? l->total : *ret_len;
    return true;
}
