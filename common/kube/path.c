/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "common/json/write.h"
#include "common/kube/client.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_BYTES 2048

/* Whatever a part holds, it stays one part of the path. The names that would not are a bug of the
 * caller, and end the process in release builds as well. */
static void add_part(Buf *out, const char *part)
{
    if (str_empty(part) || str_eq(part, ".") || str_eq(part, ".."))
        abort();
    buf_append_char(out, '/');
    str_url_encode(out, part, strlen(part), false);
}

void kube_path(Buf *out, const KubeResource *r, const char *ns, const char *name,
               const char *subresource)
{
    buf_append_str(out, str_empty(r->group) ? "/api" : "/apis");
    if (!str_empty(r->group))
        add_part(out, r->group);
    add_part(out, r->version);
    if (ns) {
        buf_append_str(out, "/namespaces");
        add_part(out, ns);
    }
    add_part(out, r->plural);
    if (name)
        add_part(out, name);
    if (subresource)
        add_part(out, subresource);
}

char *kube_path_dup(const KubeResource *r, const char *ns, const char *name,
                    const char *subresource)
{
    _cleanup_buf_ Buf out = BUF_INIT(PATH_MAX_BYTES);
    kube_path(&out, r, ns, name, subresource);
    assert(!out.failed);
    return buf_take(&out, NULL);
}

void kube_delete_options(Buf *out, const char *uid, const char *resource_version,
                         const char *propagation)
{
    JsonWriter w = json_writer(out);
    jw_object(&w);
    jw_kv_str(&w, "apiVersion", "v1");
    jw_kv_str(&w, "kind", "DeleteOptions");
    if (uid || resource_version) {
        jw_key(&w, "preconditions");
        jw_object(&w);
        jw_kv_str_opt(&w, "uid", uid);
        jw_kv_str_opt(&w, "resourceVersion", resource_version);
        jw_object_end(&w);
    }
    jw_kv_str_opt(&w, "propagationPolicy", propagation);
    jw_object_end(&w);
}
