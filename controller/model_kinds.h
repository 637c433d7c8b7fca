/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of model_fields.h cannot say about single kinds. Private to model*.c. */
#pragma once

#include "common/json/json.h"
#include "controller/model.h"

/* Fills in what depends on more than one place of the document, or on the time. */
void view_finish(Interner *in, Obj *obj, const JsonValue *doc, int64_t now_ms);

/* True where a controller of ours or upstream's is the one that wrote the spec: a writer of labels
 * or status only does not count. */
bool view_made_by_controller(ObjKind kind, const JsonValue *managed_fields);

/* The string members of an object, those that keep accepts (NULL: all). */
typedef bool (*ViewKeyFn)(const char *key, const void *arg);
StrMap *view_string_map(Interner *in, const JsonValue *object, ViewKeyFn keep, const void *arg);
