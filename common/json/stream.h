/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents that arrive in pieces. JsonListStream splits a Kubernetes List
 * (`{"kind":…,"metadata":…, "items":[…]}`) into items while it arrives, so json-c sees one item at
 * a time; JsonLineStream splits newline-delimited JSON (watch). Both keep at most one item in
 * memory, up to a ceiling. Bytes may be cut anywhere. Single-threaded; callbacks run inside feed
 * and must not free the stream. Items go through json_parse with JSON_DEPTH_CRD. After an error the
 * stream refuses more input.
 */
#pragma once

#include "common/json/json.h"

typedef struct JsonListStream JsonListStream;

/* item is borrowed for the call. A negative return stops the stream and is returned by feed. */
typedef int (*JsonItemFn)(JsonValue *item, void *userdata, Error **error);

/* max_item_bytes is the ceiling for one item, and for everything around the items. */
JsonListStream *json_list_stream_new(size_t max_item_bytes, JsonItemFn fn, void *userdata);
JsonListStream *json_list_stream_free(JsonListStream *s);
int json_list_stream_feed(JsonListStream *s, const char *data, size_t len, Error **error);
/* The document with an empty "items" (kind, apiVersion, metadata: resourceVersion, continue, …);
 * valid after a complete document, borrowed; ERROR_INVALID where the document was cut short. */
int json_list_stream_finish(JsonListStream *s, const JsonValue **ret_envelope, Error **error);

typedef struct JsonLineStream JsonLineStream;
/* A line ends with "\n" or "\r\n"; blank lines are skipped. What is left without an end when the
 * connection closes was cut short and is dropped by free. */
JsonLineStream *json_line_stream_new(size_t max_line_bytes, JsonItemFn fn, void *userdata);
JsonLineStream *json_line_stream_free(JsonLineStream *s);
int json_line_stream_feed(JsonLineStream *s, const char *data, size_t len, Error **error);

static inline void json_list_stream_freep(JsonListStream **s)
{
    *s = json_list_stream_free(*s);
}
static inline void json_line_stream_freep(JsonLineStream **s)
{
    *s = json_line_stream_free(*s);
}
