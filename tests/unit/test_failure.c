/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "gateway/transport/failure.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

typedef struct WordCase {
    const char *word, *messages;
    ErrorKind kind;
    const char *part;
} WordCase;

static void test_words_and_messages_of_tools(void **state)
{
    static const WordCase cases[] = {
        {"directory", "", ERROR_INVALID, "is a directory"},
        {"not_directory", "", ERROR_INVALID, "is not a directory"},
        {"special", "", ERROR_INVALID, "regular file"},
        {"denied", "", ERROR_INVALID, "permission denied"},
        {"large 77", "", ERROR_TOO_LARGE, "77 bytes"},
        {"tool find", "", ERROR_INVALID, "no 'find'"},
        {"damaged", "", ERROR_UNAVAILABLE, "unchanged"},
        {"loop", "", ERROR_INVALID, "circle"},
        {"missing", "ls: cannot access '/x': No such file or directory\n", ERROR_NOT_FOUND,
         "no such file"},
        {"missing", "ls: /x: Not a directory\n", ERROR_NOT_FOUND, "not a directory"},
        {"missing", "ls: /x: Permission denied\n", ERROR_INVALID, "permission denied"},
        {"missing", "ls: /x: File name too long\n", ERROR_INVALID, "too long"},
        {"missing", "ls: /x: Filename too long\n", ERROR_INVALID, "too long"},
        {"missing", "ls: /x: Symbolic link loop\n", ERROR_INVALID, "circle"},
        {"failed", "sh: 1: cannot create /a/b: Directory nonexistent\n", ERROR_NOT_FOUND,
         "no such directory"},
        {"failed", "sh: can't create /a/b: nonexistent directory", ERROR_NOT_FOUND, "no such dir"},
        {"failed", "mkdir: cannot create directory '/f': File exists\n", ERROR_INVALID,
         "not a directory"},
        {"failed", "head: write error: No space left on device\n\n", ERROR_EXHAUSTED, "no space"},
        {"failed", "x: Disk quota exceeded\r\n", ERROR_EXHAUSTED, "quota"},
        {"failed", "sh: cannot create /x: Read-only file system\n", ERROR_INVALID, "read-only"},
        {"failed", "mv: cannot move: Device or resource busy\n", ERROR_INVALID, "mounted"},
        {"failed", "head: error reading '/x': Input/output error\n", ERROR_UNAVAILABLE, "disk"},
        {"failed", "", ERROR_UNAVAILABLE, "tools failed"},
        {"failed", "first line\nodd: something else\n", ERROR_INVALID,
         "the sandbox says: odd: something else"},
        /* A path may hold any text; the reason is at the end. */
        {"missing", "ls: '/tmp/Permission denied\n': No such file or directory\n", ERROR_NOT_FOUND,
         "no such file"},
        {"nonsense", "", ERROR_INTERNAL, "nonsense"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_error_ Error *error = NULL;
        int r = failure_of_word(cases[i].word, "/the/path", cases[i].messages, &error);
        assert_int_equal(r, error_errno(cases[i].kind));
        assert_string_equal(error_kind_to_string(error->kind), error_kind_to_string(cases[i].kind));
        assert_non_null(strstr(error->message, cases[i].part));
        assert_true(strstr(error->message, "/the/path") || cases[i].kind == ERROR_INTERNAL ||
                    str_starts_with(cases[i].word, "tool"));
    }
}

static void test_what_to_do_next(_unused_ void **state)
{
    static const struct {
        const char *word, *messages, *part; /* part NULL: the tool's general advice */
    } cases[] = {
        {"denied", "", "/tmp"},
        {"missing", "ls: /x: Permission denied\n", "/tmp"},
        {"failed", "chmod: /x: Operation not permitted\n", "/tmp"},
        {"failed", "sh: cannot create /x: Read-only file system\n", "/tmp"},
        {"tool find", "", "another warm pool"},
        {"directory", "", NULL},
        {"missing", "ls: /x: No such file or directory\n", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_error_ Error *error = NULL;
        (void)failure_of_word(cases[i].word, "/the/path", cases[i].messages, &error);
        assert_int_equal(error->hint != NULL, cases[i].part != NULL);
        if (error->hint && cases[i].part)
            assert_non_null(strstr(error->hint, cases[i].part));
    }
}

static void test_absence_is_not_ignorance(void **state)
{
    (void)state;
    assert_true(failure_is_absence("ls: /x: No such file or directory\n"));
    assert_true(failure_is_absence("ls: cannot access '/f/x': Not a directory\n"));
    assert_true(failure_is_absence("ls: /x: Too many levels of symbolic links\n"));
    assert_false(failure_is_absence("ls: /x: Permission denied\n"));
    assert_false(failure_is_absence("ls: /x: File name too long\n"));
    assert_false(failure_is_absence("ls: /x: Input/output error\n"));
    assert_false(failure_is_absence("something else\n"));
    assert_false(failure_is_absence(""));
}

typedef struct StatusCase {
    const char *message;
    int exit_code;
    ErrorKind kind;
    const char *part;
} StatusCase;

static void test_what_the_runtime_says(void **state)
{
    static const StatusCase cases[] = {
        {"Internal error occurred: error executing command in container: failed to exec in "
         "container: failed to start exec \"7\": OCI runtime exec failed: exec failed: unable to "
         "start container process: exec: \"sh\": executable file not found in $PATH: unknown",
         -1, ERROR_INVALID, "no shell"},
        {"executable file `sh` not found in $PATH: No such file or directory", -1, ERROR_INVALID,
         "no shell"},
        {"exec: \"sh\": permission denied: unknown", -1, ERROR_INVALID, "may not be executed"},
        {"chdir to cwd (\"/gone\") set in config.json failed: no such file or directory", -1,
         ERROR_INVALID, "working directory"},
        {"container not found (\"main\")", -1, ERROR_UNAVAILABLE, "not running"},
        {"container is in CONTAINER_EXITED state", -1, ERROR_UNAVAILABLE, "ended"},
        {"error dialing backend: dial tcp 10.0.0.7:10250: connect: refused", -1, ERROR_UNAVAILABLE,
         "node does not answer"},
        {"command terminated with exit code 127", 127, ERROR_INVALID, "no shell"},
        {"command terminated with exit code 126", 126, ERROR_INVALID, "no shell"},
        {"command terminated with exit code 137", 137, ERROR_UNAVAILABLE, "killed"},
        {"http://10.1.2.3/secret", -1, ERROR_UNAVAILABLE, "no shell could be started"},
        {NULL, -1, ERROR_UNAVAILABLE, "no shell could be started"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_error_ Error *error = NULL;
        _cleanup_free_ char *message = xstrdup_null(cases[i].message);
        const ExecStatus status = {.exit_code = cases[i].exit_code, .message = message};
        (void)failure_of_status(&status, &error);
        assert_int_equal(error->kind, cases[i].kind);
        assert_non_null(strstr(error->message, cases[i].part));
        assert_null(strstr(error->message, "10.")); /* no addresses */
        assert_int_equal(error->hint && strstr(error->hint, "create_sandbox with another"),
                         cases[i].kind == ERROR_INVALID);
    }
}

static const TransportTarget target = {.ns = "n", .pod = "p", .container = "main"};

static void test_refusals_name_what_is_missing(void **state)
{
    static const struct {
        int status;
        ErrorKind kind;
        const char *part;
    } cases[] = {
        {403, ERROR_DENIED, "get and create pods/exec in namespace 'n'"},
        {404, ERROR_NOT_FOUND, "pod 'n/p' is not there"},
        {401, ERROR_UNAVAILABLE, "credentials"},
        {429, ERROR_EXHAUSTED, "too much"},
        {500, ERROR_UNAVAILABLE, "HTTP 500"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_error_ Error *error = NULL;
        (void)failure_of_refusal(&target, cases[i].status, &error);
        assert_int_equal(error->kind, cases[i].kind);
        assert_int_equal(error->http_status, cases[i].status);
        assert_non_null(strstr(error->message, cases[i].part));
    }
}

static void test_what_a_pod_tells(void **state)
{
    static const struct {
        const char *pod;
        const char *part; /* NULL: nothing is wrong */
    } cases[] = {
        {"{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\","
         "\"state\":{\"running\":{}}}]}}",
         NULL},
        {"{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"side\",\"state\":"
         "{\"waiting\":{\"reason\":\"X\"}}},{\"name\":\"main\",\"state\":{\"waiting\":{\"reason\":"
         "\"CrashLoopBackOff\"}}}]}}",
         "CrashLoopBackOff"},
        {"{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\",\"state\":"
         "{\"terminated\":{\"reason\":\"OOMKilled\"}}}]}}",
         "OOMKilled"},
        {"{\"status\":{\"phase\":\"Pending\"}}", "not running yet (Pending)"},
        {"{\"status\":{\"phase\":\"Succeeded\"}}", "has ended (Succeeded)"},
        {"{\"metadata\":{\"deletionTimestamp\":\"x\"},\"status\":{\"phase\":\"Running\"}}",
         "being deleted"},
        {"{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[]}}", "no container 'main'"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_error_ Error *error = NULL;
        _cleanup_json_ JsonValue *pod = NULL;
        assert_int_equal(
            json_parse(cases[i].pod, strlen(cases[i].pod), 16, JSON_PARSE_DEFAULT, &pod, &error),
            0);
        int r = failure_of_pod(&target, pod, &error);
        assert_int_equal(r == 0, cases[i].part == NULL);
        assert_int_equal(error == NULL, cases[i].part == NULL);
        if (error && cases[i].part)
            assert_non_null(strstr(error->message, cases[i].part));
    }
}

#define STARTED_MS 1767225600500 /* 2026-01-01T00:00:00.5Z */
#define TEXT(key, value) "\"" key "\":\"" value "\""
#define ENDED(id, at, why)                                                                         \
    TEXT("containerID", id) "," TEXT("finishedAt", at) "," TEXT("reason", why)
#define END(id, at, why) "{\"terminated\":{" ENDED(id, at, why) "}}"
#define SIDE "{\"name\":\"side\",\"state\":" END("c://1", "2026-01-01T00:00:09Z", "OOMKilled") "}"
#define MAIN(state, last) "{\"name\":\"main\",\"state\":" state ",\"lastState\":" last "}"
#define POD(state, last)                                                                           \
    "{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[" SIDE "," MAIN(state, last) "]}}"
#define NEXT "{\"running\":{}}"

static LossCause loss_of(const char *id, const char *text)
{
    const TransportTarget lost = {.ns = "n", .pod = "p", .container = "main", .container_id = id};
    _cleanup_json_ JsonValue *pod = NULL;

    assert_int_equal(json_parse(text, strlen(text), 16, JSON_PARSE_DEFAULT, &pod, NULL), 0);
    return failure_of_loss(&lost, pod, STARTED_MS);
}

static void test_what_became_of_a_lost_command(void **state)
{
    static const struct {
        const char *pod;
        LossCause cause;
    } cases[] = {
        {POD(END("c://1", "2026-01-01T00:00:07Z", "OOMKilled"), "{}"), LOSS_OOM},
        {POD(NEXT, END("c://1", "2026-01-01T00:00:07Z", "OOMKilled")), LOSS_OOM},
        {POD("{\"waiting\":{}}", END("c://1", "2026-01-01T00:00:07Z", "OOMKilled")), LOSS_OOM},
        /* the second of the start; the clocks of two machines */
        {POD(NEXT, END("c://1", "2026-01-01T00:00:00Z", "OOMKilled")), LOSS_OOM},
        {POD(NEXT, END("c://1", "2025-12-31T23:59:59Z", "OOMKilled")), LOSS_OOM},
        /* what is known of the container is older than the command */
        {POD(NEXT, END("c://1", "2025-12-31T23:59:58Z", "OOMKilled")), LOSS_UNKNOWN},
        {POD(NEXT, END("c://1", "2025-12-31T23:59:58Z", "Error")), LOSS_UNKNOWN},
        {POD(NEXT, END("c://1", "", "OOMKilled")), LOSS_UNKNOWN},
        {POD(NEXT, "{\"terminated\":{\"containerID\":\"c://1\",\"reason\":\"OOMKilled\"}}"),
         LOSS_UNKNOWN},
        /* another container's */
        {POD(NEXT, END("c://0", "2026-01-01T00:00:07Z", "OOMKilled")), LOSS_UNKNOWN},
        {POD(END("c://1", "2026-01-01T00:00:07Z", "Error"),
             END("c://0", "2026-01-01T00:00:06Z", "OOMKilled")),
         LOSS_ENDED},
        {POD(NEXT, END("c://1", "2026-01-01T00:00:07Z", "Completed")), LOSS_ENDED},
        {POD(NEXT, "{}"), LOSS_UNKNOWN},
        {"{\"metadata\":{\"deletionTimestamp\":\"x\"},\"status\":{\"phase\":\"Running\"}}",
         LOSS_ENDED},
        {"{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}", LOSS_ENDED},
        {"{\"status\":{\"phase\":\"Running\"}}", LOSS_UNKNOWN},
        {"[]", LOSS_UNKNOWN},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(loss_of("c://1", cases[i].pod), cases[i].cause);
    assert_int_equal(loss_of(NULL, cases[0].pod), LOSS_UNKNOWN);
}

static void test_reason_is_told_whatever_the_path(void **state)
{
    char path[4096], shown[FAILURE_PATH_MAX];
    (void)state;

    for (size_t i = 0; i + 3 < sizeof(path); i += 3)
        memcpy(path + i, "\xe4\xb8\xad", 4);
    for (size_t skip = 0; skip < 3; skip++) {
        _cleanup_error_ Error *error = NULL;
        (void)failure_of_word("denied", path + skip, "", &error);
        assert_true(str_ends_with(error->message, "permission denied in the sandbox"));
        (void)failure_path(path + skip, shown);
        assert_true(str_starts_with(shown, "...\xe4"));
        assert_true(str_is_utf8(shown, strlen(shown)));
    }
    assert_string_equal(failure_path("/a b", shown), "/a b");
    path[FAILURE_PATH_MAX - 4] = '\0';
    assert_int_equal(strlen(failure_path(path, shown)), FAILURE_PATH_MAX - 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_and_messages_of_tools),
        cmocka_unit_test(test_what_to_do_next),
        cmocka_unit_test(test_absence_is_not_ignorance),
        cmocka_unit_test(test_what_the_runtime_says),
        cmocka_unit_test(test_refusals_name_what_is_missing),
        cmocka_unit_test(test_what_a_pod_tells),
        cmocka_unit_test(test_what_became_of_a_lost_command),
        cmocka_unit_test(test_reason_is_told_whatever_the_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
