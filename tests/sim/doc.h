/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON document that can be changed: what the simulated API server stores. */
#pragma once

#include "common/json/json.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum DocType { DOC_NULL, DOC_BOOL, DOC_NUMBER, DOC_STRING, DOC_ARRAY, DOC_OBJECT } DocType;

typedef struct Doc Doc;
struct Doc {
    DocType type;
    char *text;  /* of a scalar */
    char **keys; /* of an object */
    Doc **items; /* of an object or array */
    size_t len;
};

Doc *doc_parse(const char *text, size_t len); /* simple JSON only; anything else ends the process */
Doc *doc_free(Doc *d);
Doc *doc_copy(const Doc *d);
static inline void doc_freep(Doc **d)
{
    *d = doc_free(*d);
}
bool doc_eq(const Doc *a, const Doc *b);
void doc_print(const Doc *d, Buf *out);

Doc *doc_object(void);
Doc *doc_string(const char *s);
Doc *doc_number(long long v);
Doc *doc_bool(bool v);

Doc *doc_get(const Doc *d, const char *key); /* NULL where there is none, or null */
Doc *doc_path(const Doc *d, const char *dotted);
const char *doc_str(const Doc *d, const char *dotted); /* or NULL */
long long doc_int(const Doc *d, const char *dotted, long long def);

void doc_set(Doc *d, const char *key, Doc *value); /* takes value over */
void doc_remove(Doc *d, const char *key);
void doc_append(Doc *array, Doc *value);
/* The object at key, made where there is none. */
Doc *doc_make(Doc *d, const char *key);
/* RFC 7386; true where something changed. */
bool doc_merge(Doc *target, const Doc *patch);
