/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/intern.h"

#include "common/base/contract.h"
#include "common/base/str.h"

#include <stdint.h>
#include <string.h>

/* The text handed out is the tail of this. */
typedef struct Text {
    uint32_t hash;
    uint32_t refs;
    char text[];
} Text;

/* Open addressing with linear probing; a removal shifts back what follows, so there are no
 * tombstones. */
struct Interner {
    Text **slots;
    size_t cap; /* a power of two */
    size_t len;
};

#define INTERNER_CAP_MIN 64

static uint32_t text_hash(const char *s, size_t len)
{
    uint32_t h = str_hash_fnv1a32(s, len);

    /* FNV's low bits are weak for short keys. */
    h ^= h >> 16;
    h *= 0x85ebca6bU;
    return h ^ (h >> 13);
}

static Text *text_of(const char *s)
{
    return (Text *)((uintptr_t)s - offsetof(Text, text));
}

Interner *interner_new(void)
{
    Interner *in = xnew(Interner);

    in->cap = INTERNER_CAP_MIN;
    in->slots = xcalloc(in->cap, sizeof(Text *));
    return in;
}

Interner *interner_free(Interner *in)
{
    if (!in)
        return NULL;
    CONTRACT(in->len == 0);
    for (size_t i = 0; i < in->cap; i++)
        free(in->slots[i]);
    free(in->slots);
    free(in);
    return NULL;
}

/* The slot that holds the text, or the empty one where it belongs. */
static size_t slot_find(const Interner *in, const char *s, size_t len, uint32_t hash)
{
    size_t i = hash & (in->cap - 1);

    while (in->slots[i]) {
        const Text *t = in->slots[i];
        if (t->hash == hash && memcmp(t->text, s, len) == 0 && t->text[len] == '\0')
            return i;
        i = (i + 1) & (in->cap - 1);
    }
    return i;
}

static void slots_resize(Interner *in, size_t cap)
{
    Text **old = in->slots;
    size_t old_cap = in->cap;

    in->slots = xcalloc(cap, sizeof(Text *));
    in->cap = cap;
    for (size_t i = 0; i < old_cap; i++) {
        if (!old[i])
            continue;
        size_t to = old[i]->hash & (cap - 1);
        while (in->slots[to])
            to = (to + 1) & (cap - 1);
        in->slots[to] = old[i];
    }
    free(old);
}

const char *intern_n(Interner *in, const char *s, size_t len)
{
    uint32_t hash;
    size_t i;

    if (!s)
        return NULL;
    len = strnlen(s, len);
    hash = text_hash(s, len);
    i = slot_find(in, s, len, hash);
    if (in->slots[i]) {
        in->slots[i]->refs++;
        return in->slots[i]->text;
    }
    Text *t = xmalloc(sizeof(Text) + len + 1);
    t->hash = hash;
    t->refs = 1;
    memcpy(t->text, s, len);
    t->text[len] = '\0';
    in->slots[i] = t;
    if (++in->len * 4 > in->cap * 3)
        slots_resize(in, in->cap * 2);
    return t->text;
}

const char *intern(Interner *in, const char *s)
{
    return s ? intern_n(in, s, strlen(s)) : NULL;
}

const char *intern_ref(const char *s)
{
    if (s)
        text_of(s)->refs++;
    return s;
}

/* Closes the hole at i by moving up what probing would otherwise no longer reach. */
static void slot_remove(Interner *in, size_t i)
{
    size_t mask = in->cap - 1;

    for (size_t j = (i + 1) & mask; in->slots[j]; j = (j + 1) & mask) {
        size_t home = in->slots[j]->hash & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            in->slots[i] = in->slots[j];
            i = j;
        }
    }
    in->slots[i] = NULL;
}

void intern_unref(Interner *in, const char *s)
{
    Text *t;

    if (!s)
        return;
    t = text_of(s);
    CONTRACT(t->refs > 0);
    if (--t->refs > 0)
        return;
    slot_remove(in, slot_find(in, s, strlen(s), t->hash));
    free(t);
    in->len--;
    if (in->cap > INTERNER_CAP_MIN && in->len * 8 < in->cap)
        slots_resize(in, in->cap / 2);
}

const char *intern_find(const Interner *in, const char *s)
{
    size_t len;
    const Text *t;

    if (!s)
        return NULL;
    len = strlen(s);
    t = in->slots[slot_find(in, s, len, text_hash(s, len))];
    return t ? t->text : NULL;
}

size_t interner_size(const Interner *in)
{
    return in->len;
}

uint32_t intern_hash(const char *s)
{
    return s ? text_of(s)->hash : 0;
}
