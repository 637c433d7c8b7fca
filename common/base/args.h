/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line flags from a table: parsing, --help, --help-markdown (for docs/) and errors all
 * come from the same row. Accepts --name=value, --name value, and both with one dash (as Go
 * programs do). A boolean takes a value only behind '=', bare it is true. Where a flag is repeated
 * the last one counts. Arguments that are no flags are errors.
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
    ARG_IGNORED,  /* accepted without effect, for upstream's flags without a counterpart: --name is
                   * appended to the char * at offset (space separated, NULL = none was given), so
                   * that the program can warn. Takes a value where value_name is set. */
    ARG_TYPE_MAX,
} ArgType;

typedef struct ArgSpec {
    const char *name; /* without dashes */
    ArgType type;
    size_t offset;          /* offsetof in the target struct */
    const char *def;        /* default as the user would write it; NULL = zero */
    const char *value_name; /* "ADDR:PORT" in the help; NULL = the type's own word */
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

/* Fills target (zeroed by the caller) from defaults, then from argv. A default that its own row
 * refuses violates a contract. Returns 0, 1 when --help/--version/--help-markdown
 * was printed (the caller exits 0), or a negative errno with an error that names the flag and what
 * it takes; then nothing is left to free. */
int args_parse(const ArgProgram *program, int argc, char **argv, void *target, Error **error);
/* Frees ARG_STRING targets. */
void args_done(const ArgProgram *program, void *target);
/* "1h30m" → milliseconds: numbers with an optional fraction and a unit of h, m, s, ms each; "0" is
 * the only one without a unit. No sign, no overflow. */
int duration_parse(const char *s, int64_t *ret_ms, Error **error);
