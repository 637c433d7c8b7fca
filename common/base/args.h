/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line flags from a table: parsing, environment fallback, --help, --help-markdown (for
 * docs/) and errors all come from the same row. Accepts --name=value, --name value, -name=value (as
 * Go programs do), bare --name for booleans.
 */
#pragma once

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ArgType {
    ARG_STRING,   /* char *, owned by the target, freed before it is replaced */
    ARG_BOOL,     /* bool */
    ARG_INT,      /* int64_t within min..max */
    ARG_DURATION, /* int64_t milliseconds; "90s", "5m", "1h30m", "250ms"; within min..max */
    ARG_IGNORED,  /* a flag of upstream's without a counterpart: accepted, listed in ret_ignored */
    ARG_TYPE_MAX,
} ArgType;

typedef struct ArgSpec {
    const char *name; /* without dashes */
    ArgType type;
    size_t offset;          /* offsetof in the target struct */
    const char *def;        /* default as the user would write it; NULL = zero */
    const char *value_name; /* "ADDR:PORT" in the help */
    const char *help;       /* one or two sentences */
    int64_t min, max;       /* ARG_INT, ARG_DURATION */
} ArgSpec;

typedef struct ArgProgram {
    const char *name;
    const char *summary; /* first line of --help */
    const char *epilog;  /* last lines of --help, may be NULL */
    const ArgSpec *specs;
    size_t n_specs;
} ArgProgram;

/* Fills target from defaults, then from argv. Returns 0, 1 when --help/--version/--help-markdown
 * was printed (the caller exits 0), or a negative errno with an error that names the flag and what
 * it takes. */
int args_parse(const ArgProgram *program, int argc, char **argv, void *target, Error **error);
/* Frees ARG_STRING targets. */
void args_done(const ArgProgram *program, void *target);
/* "1h30m" → milliseconds. */
int duration_parse(const char *s, int64_t *ret_ms, Error **error);
