/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/args.h"
#include "common/base/buf.h"
#include "common/base/contract.h"
#include "common/base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HELP_MAX_BYTES (1 << 20)

static void *field(void *target, const ArgSpec *spec)
{
    return (char *)target + spec->offset;
}

static bool takes_value(const ArgSpec *spec)
{
    return spec->type != ARG_BOOL && (spec->type != ARG_IGNORED || spec->value_name);
}

/* What stands for the value in help and errors. */
static const char *value_name(const ArgSpec *spec)
{
    static const char *const words[ARG_TYPE_MAX] = {"STRING", "BOOL", "NUMBER", "DURATION", ""};

    return spec->value_name ? spec->value_name : words[spec->type];
}

static int set_string(const ArgSpec *spec, const char *value, void *target, _unused_ Error **error)
{
    str_replace(field(target, spec), value);
    return 0;
}

static int set_bool(const ArgSpec *spec, const char *value, void *target, Error **error)
{
    static const char *const words[] = {"false", "true", "0", "1", "f", "t", "no", "yes"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (!str_eq(value, words[i]))
            continue;
        *(bool *)field(target, spec) = i % 2 == 1;
        return 0;
    }
    return error_set(error, ERROR_INVALID, "--%s takes true or false, not \"%.64s\"", spec->name,
                     value);
}

static int set_int(const ArgSpec *spec, const char *value, void *target, Error **error)
{
    int64_t v;

    if (str_to_i64(value, &v) < 0 || v < spec->min || v > spec->max)
        return error_set(error, ERROR_INVALID,
                         "--%s takes a whole number from %lld to %lld, not \"%.64s\"", spec->name,
                         (long long)spec->min, (long long)spec->max, value);
    *(int64_t *)field(target, spec) = v;
    return 0;
}

static int set_duration(const ArgSpec *spec, const char *value, void *target, Error **error)
{
    int64_t ms;
    int r = duration_parse(value, &ms, error);

    if (r < 0)
        return error_wrap(error, r, "--%s", spec->name);
    if (ms < spec->min || ms > spec->max)
        return error_set(error, ERROR_INVALID,
                         "--%s takes a duration from %lldms to %lldms, not \"%.64s\"", spec->name,
                         (long long)spec->min, (long long)spec->max, value);
    *(int64_t *)field(target, spec) = ms;
    return 0;
}

static int set_ignored(const ArgSpec *spec, _unused_ const char *value, void *target,
                       _unused_ Error **error)
{
    char **names = field(target, spec);
    char *joined = xasprintf("%s%s--%s", *names ? *names : "", *names ? " " : "", spec->name);

    free(*names);
    *names = joined;
    return 0;
}

static int set_value(const ArgSpec *spec, const char *value, void *target, Error **error)
{
    static int (*const setters[ARG_TYPE_MAX])(const ArgSpec *, const char *, void *, Error **) = {
        [ARG_STRING] = set_string,     [ARG_BOOL] = set_bool,       [ARG_INT] = set_int,
        [ARG_DURATION] = set_duration, [ARG_IGNORED] = set_ignored,
    };

    return setters[spec->type](spec, value, target, error);
}

static void set_defaults(const ArgProgram *program, void *target)
{
    for (size_t i = 0; i < program->n_specs; i++) {
        const ArgSpec *spec = &program->specs[i];
        int r;

        if (!spec->def || spec->type == ARG_IGNORED)
            continue;
        r = set_value(spec, spec->def, target, NULL);
        CONTRACT(r == 0);
        (void)r;
    }
}

static const ArgSpec *find_spec(const ArgProgram *program, const char *name, size_t len)
{
    for (size_t i = 0; i < program->n_specs; i++)
        if (strlen(program->specs[i].name) == len &&
            strncmp(program->specs[i].name, name, len) == 0)
            return &program->specs[i];
    return NULL;
}

static void put_usage(const ArgProgram *program, Buf *out)
{
    (void)buf_printf(out, "%s\n\nUsage: %s [FLAGS]\n\nFlags:\n", program->summary, program->name);
    for (size_t i = 0; i < program->n_specs; i++) {
        const ArgSpec *spec = &program->specs[i];
        const char *value = takes_value(spec) ? value_name(spec) : "";

        (void)buf_printf(out, "  --%s%s%s\n        %s", spec->name, *value ? " " : "", value,
                         spec->help ? spec->help : "");
        if (!str_empty(spec->def))
            (void)buf_printf(out, " (default %s)", spec->def);
        (void)buf_append_char(out, '\n');
    }
    (void)buf_append_str(out, "  --version\n        Print the version and exit.\n"
                              "  --help\n        Print this text and exit.\n");
    if (program->epilog)
        (void)buf_printf(out, "\n%s\n", program->epilog);
}

/* A cell must not end early or span lines. */
static void put_cell(Buf *out, const char *s)
{
    for (; s && *s; s++) {
        if (*s == '|')
            (void)buf_append_char(out, '\\');
        (void)buf_append_char(out, *s == '\n' ? ' ' : *s);
    }
}

static void put_markdown(const ArgProgram *program, Buf *out)
{
    (void)buf_append_str(out, "| Flag | Value | Default | Meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < program->n_specs; i++) {
        const ArgSpec *spec = &program->specs[i];
        bool has_default = !str_empty(spec->def);

        (void)buf_printf(out, "| `--%s` | ", spec->name);
        put_cell(out, value_name(spec));
        (void)buf_append_str(out, has_default ? " | `" : " | ");
        put_cell(out, spec->def);
        (void)buf_append_str(out, has_default ? "` | " : " | ");
        put_cell(out, spec->help);
        (void)buf_append_str(out, " |\n");
    }
}

static void put_version(const ArgProgram *program, Buf *out)
{
    (void)buf_printf(out, "%s %s\n", program->name, SANDBOX_VERSION);
}

/* True where the flag is one that prints and ends; it was printed then. */
static bool print_and_exit_flag(const ArgProgram *program, const char *name)
{
    static const struct {
        const char *name;
        void (*put)(const ArgProgram *, Buf *);
    } rows[] = {
        {"help", put_usage},
        {"h", put_usage},
        {"help-markdown", put_markdown},
        {"version", put_version},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ Buf out = BUF_INIT(HELP_MAX_BYTES);

        if (!str_eq(name, rows[i].name))
            continue;
        rows[i].put(program, &out);
        (void)fputs(buf_str(&out), stdout);
        (void)fflush(stdout);
        return true;
    }
    return false;
}

/* The flag's name without dashes, or NULL where arg is no flag. */
static const char *flag_name(const char *arg)
{
    if (arg[0] != '-' || arg[1] == '\0')
        return NULL;
    arg += arg[1] == '-' ? 2 : 1;
    return *arg && *arg != '-' && *arg != '=' ? arg : NULL;
}

/* Handles argv[*i], and argv[*i + 1] where that is its value. */
static int parse_one(const ArgProgram *program, int argc, char **argv, int *i, void *target,
                     Error **error)
{
    const char *name = flag_name(argv[*i]), *value;
    const ArgSpec *spec;
    size_t len;

    if (!name)
        return error_set(error, ERROR_INVALID, "\"%.64s\" is not a flag", argv[*i]);
    if (print_and_exit_flag(program, name))
        return 1;
    len = strcspn(name, "=");
    spec = find_spec(program, name, len);
    if (!spec)
        return error_set(error, ERROR_INVALID, "unknown flag \"%.64s\"", argv[*i]);
    if (name[len] == '=')
        value = name + len + 1;
    else if (!takes_value(spec))
        value = "true";
    else if (*i + 1 < argc)
        value = argv[++*i];
    else
        return error_set(error, ERROR_INVALID, "--%s needs a value: %s", spec->name,
                         value_name(spec));
    return set_value(spec, value, target, error);
}

int args_parse(const ArgProgram *program, int argc, char **argv, void *target, Error **error)
{
    int r = 0;

    set_defaults(program, target);
    for (int i = 1; i < argc && r == 0; i++)
        r = parse_one(program, argc, argv, &i, target, error);
    if (r != 0)
        args_done(program, target);
    if (r < 0)
        return error_hint(error, r, "%s --help lists the flags", program->name);
    return r;
}

void args_done(const ArgProgram *program, void *target)
{
    for (size_t i = 0; i < program->n_specs; i++)
        if (program->specs[i].type == ARG_STRING || program->specs[i].type == ARG_IGNORED)
            str_replace(field(target, &program->specs[i]), NULL);
}
