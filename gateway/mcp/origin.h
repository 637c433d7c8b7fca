/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May a request with this Host and Origin be served: the guard against web pages that talk to a
 * gateway through their visitor's browser. Ports do not count, nor does case. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct OriginRules {
    bool loopback; /* the gateway listens on a loopback address */
    char *const *hosts;
    size_t n_hosts;
    char *const *origins;
    size_t n_origins;
} OriginRules;

/* On a loopback address its own names and the listed ones; on others the listed ones, or every
 * one where none is listed. host may be NULL. */
bool mcp_host_allowed(const OriginRules *rules, const char *host);
/* An absent Origin (no browser) is allowed; otherwise a listed one, and on a loopback address an
 * origin there. */
bool mcp_origin_allowed(const OriginRules *rules, const char *origin);
