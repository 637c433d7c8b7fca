/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/args.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/death.h"

#include <stdio.h>
#include <string.h>

typedef struct Options {
    char *listen;
    bool verbose;
    int64_t workers;
    int64_t timeout_ms;
    char *ignored;
} Options;

static const ArgSpec specs[] = {
    {.name = "listen",
     .type = ARG_STRING,
     .offset = offsetof(Options, listen),
     .def = ":8080",
     .value_name = "ADDR:PORT",
     .help = "Where to listen, a|b."},
    {.name = "verbose", .type = ARG_BOOL, .offset = offsetof(Options, verbose), .help = "More."},
    {.name = "workers",
     .type = ARG_INT,
     .offset = offsetof(Options, workers),
     .def = "4",
     .min = 1,
     .max = 64,
     .help = "Threads."},
    {.name = "timeout",
     .type = ARG_DURATION,
     .offset = offsetof(Options, timeout_ms),
     .def = "30s",
     .min = 100,
     .max = 3600000,
     .help = "Per request."},
    {.name = "pprof-bind-address",
     .type = ARG_IGNORED,
     .offset = offsetof(Options, ignored),
     .value_name = "ADDR"},
    {.name = "zap-devel", .type = ARG_IGNORED, .offset = offsetof(Options, ignored)},
};
static const ArgProgram program = {
    .name = "sandboxd",
    .summary = "Runs sandboxes.",
    .epilog = "See docs/.",
    .specs = specs,
    .n_specs = ARRAY_SIZE(specs),
};

static int parse(Options *o, Error **error, char **argv)
{
    int argc = 0;

    while (argv[argc])
        argc++;
    return args_parse(&program, argc, argv, o, error);
}

#define PARSE(o, error, ...) parse((o), (error), (char *[]){(char[]){"sandboxd"}, __VA_ARGS__ NULL})
#define A(s)                                                                                       \
    (char[])                                                                                       \
    {                                                                                              \
        s                                                                                          \
    }

static void test_defaults(_unused_ void **state)
{
    Options o = {0};

    assert_int_equal(PARSE(&o, NULL), 0);
    assert_string_equal(o.listen, ":8080");
    assert_false(o.verbose);
    assert_true(o.workers == 4);
    assert_true(o.timeout_ms == 30000);
    assert_null(o.ignored);
    args_done(&program, &o);
    assert_null(o.listen);
}

static void test_all_spellings(_unused_ void **state)
{
    Options o = {0};

    assert_int_equal(PARSE(&o, NULL, A("--listen=:1"), A("-workers=8"), A("--verbose"),
                           A("--timeout"), A("1m30s"), A("-listen"), A("x=y"), ),
                     0);
    assert_string_equal(o.listen, "x=y");
    assert_true(o.verbose);
    assert_true(o.workers == 8);
    assert_true(o.timeout_ms == 90000);
    args_done(&program, &o);
}

static void test_last_one_counts_and_booleans_take_values(_unused_ void **state)
{
    Options o = {0};

    assert_int_equal(PARSE(&o, NULL, A("--verbose"), A("--verbose=false"), A("--workers=1"),
                           A("--workers=2"), A("--listen="), ),
                     0);
    assert_false(o.verbose);
    assert_true(o.workers == 2);
    assert_string_equal(o.listen, "");
    args_done(&program, &o);
}

static void test_ignored_flags_are_listed(_unused_ void **state)
{
    Options o = {0};

    assert_int_equal(PARSE(&o, NULL, A("--pprof-bind-address"), A(":6060"), A("--zap-devel"),
                           A("--workers=3"), ),
                     0);
    assert_string_equal(o.ignored, "--pprof-bind-address --zap-devel");
    assert_true(o.workers == 3);
    args_done(&program, &o);
}

static void expect_refusal(char *arg1, char *arg2, const char *message)
{
    Options o = {0};
    _cleanup_error_ Error *e = NULL;
    char name[] = "sandboxd";

    assert_true(parse(&o, &e, (char *[]){name, arg1, arg2, NULL}) < 0);
    assert_int_equal(e->kind, ERROR_INVALID);
    assert_string_equal(e->message, message);
    assert_string_equal(e->hint, "sandboxd --help lists the flags");
    assert_null(o.listen);
}

static void test_refusals_name_the_flag(_unused_ void **state)
{
    expect_refusal(A("--nope"), NULL, "unknown flag \"--nope\"");
    expect_refusal(A("--list"), NULL, "unknown flag \"--list\"");
    expect_refusal(A("---listen"), NULL, "\"---listen\" is not a flag");
    expect_refusal(A("extra"), NULL, "\"extra\" is not a flag");
    expect_refusal(A("-"), NULL, "\"-\" is not a flag");
    expect_refusal(A("--"), NULL, "\"--\" is not a flag");
    expect_refusal(A("--=x"), NULL, "\"--=x\" is not a flag");
    expect_refusal(A("--listen"), NULL, "--listen needs a value: ADDR:PORT");
    expect_refusal(A("--workers"), A("0"),
                   "--workers takes a whole number from 1 to 64, not \"0\"");
    expect_refusal(A("--workers=65"), NULL,
                   "--workers takes a whole number from 1 to 64, not \"65\"");
    expect_refusal(A("--workers=99999999999999999999"), NULL,
                   "--workers takes a whole number from 1 to 64, not \"99999999999999999999\"");
    expect_refusal(A("--workers=4x"), NULL,
                   "--workers takes a whole number from 1 to 64, not \"4x\"");
    expect_refusal(A("--verbose=maybe"), NULL, "--verbose takes true or false, not \"maybe\"");
    expect_refusal(A("--timeout=5"), NULL,
                   "--timeout: \"5\" is not a duration such as 90s, 5m, 1h30m or 250ms");
    expect_refusal(A("--timeout=2h"), NULL,
                   "--timeout takes a duration from 100ms to 3600000ms, not \"2h\"");
    expect_refusal(A("--verbose"), A("true"), "\"true\" is not a flag");
}

/* stdout of args_parse with one flag. */
static char *printed(char *flag)
{
    Options o = {0};
    char text[8192], name[] = "sandboxd";
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);

    assert_non_null(file);
    (void)fflush(stdout);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    assert_int_equal(parse(&o, NULL, (char *[]){name, flag, NULL}), 1);
    (void)fflush(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    (void)close(saved);
    assert_null(o.listen);
    (void)lseek(fileno(file), 0, SEEK_SET);
    (void)read_all(fileno(file), text, sizeof(text));
    (void)fclose(file);
    return xstrdup(text);
}

static void test_help(_unused_ void **state)
{
    _cleanup_free_ char *text = printed(A("--help"));

    assert_true(str_starts_with(text, "Runs sandboxes.\n\nUsage: sandboxd [FLAGS]\n"));
    assert_non_null(strstr(text, "  --listen ADDR:PORT\n        Where to listen, a|b. "
                                 "(default :8080)\n"));
    assert_non_null(strstr(text, "  --verbose\n        More.\n"));
    assert_non_null(strstr(text, "  --timeout DURATION\n"));
    assert_true(str_ends_with(text, "\nSee docs/.\n"));
}

static void test_help_markdown(_unused_ void **state)
{
    _cleanup_free_ char *text = printed(A("--help-markdown"));

    assert_true(str_starts_with(text, "| Flag | Value | Default | Meaning |\n|---|---|---|---|\n"));
    assert_non_null(strstr(text, "| `--listen` | ADDR:PORT | `:8080` | Where to listen, a\\|b. |"));
    assert_non_null(strstr(text, "| `--verbose` | BOOL |  | More. |\n"));
}

static void test_version(_unused_ void **state)
{
    _cleanup_free_ char *text = printed(A("--version"));

    assert_string_equal(text, "sandboxd " SANDBOX_VERSION "\n");
}

static void test_durations(_unused_ void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"0", 0},
        {"0s", 0},
        {"90s", 90000},
        {"5m", 300000},
        {"1h30m", 5400000},
        {"250ms", 250},
        {"1.5h", 5400000},
        {"0.5s", 500},
        {"2m0.001s", 120001},
        {"1.9999ms", 1},
        {"1h1h", 7200000},
        {"0.1234567890123456789h", 444444},
        {"9223372036854775807ms", INT64_MAX},
    };
    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "-5s",
                                      "+5s",
                                      "5 s",
                                      "5s ",
                                      "5x",
                                      "5.s",
                                      ".5s",
                                      "1e3s",
                                      "5sm",
                                      "1h30",
                                      "1d",
                                      "00",
                                      "5S",
                                      "1..5s",
                                      "9223372036854775808ms",
                                      "9223372036854775807h",
                                      "9223372036854775807ms1ms"};

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        int64_t ms = -1;

        assert_int_equal(duration_parse(good[i].text, &ms, NULL), 0);
        assert_true(ms == good[i].ms);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_error_ Error *e = NULL;
        int64_t ms = -1;

        assert_true(duration_parse(bad[i], &ms, &e) < 0);
        assert_int_equal(e->kind, ERROR_INVALID);
        assert_true(ms == -1);
    }
}

static void parse_with_a_broken_default(void)
{
    static const ArgSpec broken = {.name = "n", .type = ARG_INT, .def = "x", .max = 5};
    static const ArgProgram p = {.name = "p", .specs = &broken, .n_specs = 1};
    int64_t target = 0;

    (void)args_parse(&p, 1, (char *[]){A("p"), NULL}, &target, NULL);
}

static void test_broken_default_violates_the_contract(_unused_ void **state)
{
    char text[4096];
    int status = run_in_child(parse_with_a_broken_default, text, sizeof(text));

    assert_true(WIFSIGNALED(status));
    assert_non_null(strstr(text, "contract violated"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all_spellings),
        cmocka_unit_test(test_last_one_counts_and_booleans_take_values),
        cmocka_unit_test(test_ignored_flags_are_listed),
        cmocka_unit_test(test_refusals_name_the_flag),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_help_markdown),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_broken_default_violates_the_contract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
