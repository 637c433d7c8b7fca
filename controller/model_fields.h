/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which field of a view comes from where in the document: one table a kind, from which parsing and
 * freeing are derived. Private to model*.c.
 */
#pragma once

#include "controller/model.h"

typedef enum ViewFieldType {
    VIEW_STRING,     /* const char *, interned */
    VIEW_BOOL,       /* bool */
    VIEW_PRESENT,    /* bool: the array or object is there and not empty */
    VIEW_EXISTS,     /* bool: the key is there, whatever its value */
    VIEW_INT,        /* int64_t; −1 where it is absent */
    VIEW_TIME,       /* int64_t, RFC 3339 → ms; TIME_NONE */
    VIEW_MAP,        /* const StrMap * */
    VIEW_OUR_LABELS, /* const StrMap *: only agents.x-k8s.io/… */
    VIEW_LIST,       /* const StrList * of strings */
    VIEW_IPS,        /* const StrList * of objects with member ip */
    VIEW_SERVICE,    /* ServiceWish */
    VIEW_CONDITIONS, /* const Conditions * */
    VIEW_WORD,       /* an enum (int): the position in `words`, 0 where it is none of them */
    VIEW_WORD_IS,    /* bool: the string equals `words` */
    VIEW_MEMO,       /* const char *, interned, not read from the document */
    VIEW_MEMO_LIST,  /* const StrList *, likewise */
    VIEW_TEXT,       /* char *, owned, not read from the document */
    VIEW_TIME_UNSET, /* int64_t memo that starts as TIME_NONE */
} ViewFieldType;

typedef struct ViewField {
    ViewFieldType type;
    size_t offset;
    const char *path; /* dotted, to the value, or to the object that has the member `key` */
    const char *key;  /* a member whose name has dots; or NULL */
    const char *words;
} ViewField;

typedef struct ViewKind {
    size_t size;
    const ViewField *fields;
    size_t n_fields;
} ViewKind;

extern const ViewKind view_kinds[OBJ_KIND_MAX];

static inline void *view_field_at(Obj *obj, const ViewField *f)
{
    return (char *)obj + f->offset;
}
