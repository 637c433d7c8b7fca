/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int log_fd = -1;

static int setup(_unused_ void **state)
{
    FILE *file = tmpfile();

    if (!file)
        return -1;
    log_fd = dup(fileno(file));
    (void)fclose(file);
    log_set_fd(log_fd);
    return 0;
}

static int teardown(_unused_ void **state)
{
    log_set_fd(2);
    (void)close(log_fd);
    return 0;
}

/* What was logged since the last call. */
static char *logged(void)
{
    Buf b = BUF_INIT(16 << 20);
    off_t size = lseek(log_fd, 0, SEEK_END);

    assert_true(size >= 0);
    assert_int_equal(buf_reserve(&b, (size_t)size), 0);
    assert_true(pread(log_fd, b.data, (size_t)size, 0) == size);
    b.data[b.len = (size_t)size] = '\0';
    assert_int_equal(ftruncate(log_fd, 0), 0);
    assert_true(lseek(log_fd, 0, SEEK_SET) == 0);
    return buf_take(&b, NULL);
}

static JsonValue *logged_json(void)
{
    _cleanup_free_ char *text = logged();
    JsonValue *v = NULL;

    assert_int_equal(json_parse(text, strlen(text), 8, JSON_PARSE_UNIQUE, &v, NULL), 0);
    return v;
}

static void test_text_line(_unused_ void **state)
{
    _cleanup_free_ char *text = NULL;
    char array[] = "x=y";

    log_init("gateway", LOG_INFO, LOG_FORMAT_TEXT);
    log_info("it\nworks", LOGF_STR("name", "a b"), LOGF_INT("n", -5), LOGF_STR("e", ""),
             LOGF_STR("plain", "p/q:1"), LOGF_STR("array", array), LOGF_STR("null", (char *)NULL));
    text = logged();
    assert_true(text[4] == '-' && text[10] == 'T' && text[26] == 'Z');
    assert_string_equal(text + 27, " info gateway: it\\nworks name=\"a b\" n=-5 e=\"\" plain=p/q:1 "
                                   "array=\"x=y\"\n"); /* what is NULL is no field */
}

static void test_json_line(_unused_ void **state)
{
    _cleanup_json_ JsonValue *v = NULL;

    log_init("controller", LOG_INFO, LOG_FORMAT_JSON);
    log_error("quote \" back \\ tab \t bell \a", LOGF_STR("bad", "a\xFF\xC3z"), LOGF_INT("n", 7),
              LOGF_STR("word", "K\xC3\xA4ufer\x7f"));
    v = logged_json();
    assert_string_equal(json_str(v, "level"), "error");
    assert_string_equal(json_str(v, "component"), "controller");
    assert_string_equal(json_str(v, "message"), "quote \" back \\ tab \t bell \a");
    assert_string_equal(json_str(v, "bad"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
    assert_string_equal(json_str(v, "word"), "K\xC3\xA4ufer\x7f");
    assert_true(json_int(v, "n", 0) == 7);
    assert_non_null(json_str(v, "time"));
}

static void test_text_escapes_control_and_foreign_bytes(_unused_ void **state)
{
    _cleanup_free_ char *text = NULL;

    log_init("gateway", LOG_INFO, LOG_FORMAT_TEXT);
    log_warn("m", LOGF_STR("k", "\x1b[0m\xFF\r\n\"\\"));
    text = logged();
    assert_non_null(strstr(text, " k=\"\\x1b[0m\\xff\\r\\n\\\"\\\\\"\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_secrets_are_redacted(_unused_ void **state)
{
    static const char *const secret[] = {"token",         "Authorization", "user_token",
                                         "accessToken",   "PASSWORD",      "x-api-key",
                                         "client_secret", "cookie"};
    static const char *const fine[] = {"secret_name", "tokens", "name", "token_count"};

    for (int format = 0; format < LOG_FORMAT_MAX; format++) {
        log_init("gateway", LOG_INFO, (LogFormat)format);
        for (size_t i = 0; i < ARRAY_SIZE(secret); i++) {
            _cleanup_free_ char *text = NULL;

            log_info("m", LOGF_STR(secret[i], "hunter2"));
            text = logged();
            assert_null(strstr(text, "hunter2"));
            assert_non_null(strstr(text, "[redacted]"));
        }
        for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
            _cleanup_free_ char *text = NULL;

            log_info("m", LOGF_STR(fine[i], "shown"));
            text = logged();
            assert_non_null(strstr(text, "shown"));
        }
    }
}

static void test_levels(_unused_ void **state)
{
    _cleanup_free_ char *text = NULL;
    LogLevel level = LOG_ERROR;
    LogFormat format = LOG_FORMAT_TEXT;

    log_init("gateway", LOG_WARN, LOG_FORMAT_TEXT);
    assert_false(log_enabled(LOG_INFO));
    assert_true(log_enabled(LOG_WARN));
    log_info("hidden");
    log_debug("hidden");
    log_write(LOG_INFO, NULL, NULL, 0, "hidden");
    log_warn("shown");
    text = logged();
    assert_null(strstr(text, "hidden"));
    assert_non_null(strstr(text, "shown"));
    assert_int_equal(log_level_from_string("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_true(log_level_from_string("DEBUG", &level) < 0);
    assert_true(log_level_from_string(NULL, &level) < 0);
    assert_int_equal(log_format_from_string("json", &format), 0);
    assert_int_equal(format, LOG_FORMAT_JSON);
    assert_true(log_format_from_string("", &format) < 0);
}

static void log_long(LogFormat format, const char *value)
{
    log_init("gateway", LOG_INFO, format);
    log_info("m", LOGF_STR("first", "kept"), LOGF_STR("long", value), LOGF_STR("last", "lost"));
}

static void test_long_lines_are_cut_and_stay_valid(_unused_ void **state)
{
    static const char *const units[] = {"x", "\n", "\x01", "\xFF", "\"", "\xF0\x9F\x98\x80"};

    for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
        _cleanup_buf_ Buf value = BUF_INIT(1 << 20);
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ JsonValue *v = NULL;

        while (value.len < 3 * LOG_LINE_MAX)
            (void)buf_append_str(&value, units[u]);
        log_long(LOG_FORMAT_TEXT, buf_str(&value));
        text = logged();
        assert_true(strlen(text) <= LOG_LINE_MAX);
        assert_true(strlen(text) > LOG_LINE_MAX - 100);
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        assert_true(str_ends_with(text, " cut=true\n"));
        log_long(LOG_FORMAT_JSON, buf_str(&value));
        v = logged_json();
        assert_string_equal(json_str(v, "first"), "kept");
        assert_non_null(json_str(v, "long"));
        assert_null(json_str(v, "last"));
        assert_true(json_bool(v, "cut", false));
    }
}

/* Whatever the length of the values around the ceiling, a line is valid JSON. */
static void test_every_length_around_the_ceiling(_unused_ void **state)
{
    log_init("gateway", LOG_INFO, LOG_FORMAT_JSON);
    for (size_t len = LOG_LINE_MAX - 300; len < LOG_LINE_MAX; len++) {
        _cleanup_free_ char *value = xcalloc(len + 1, 1);
        const LogField fields[] = {LOGF_STR("v", value), LOGF_INT("n", 1), LOGF_STR("w", "\n\n")};
        _cleanup_json_ JsonValue *v = NULL;

        memset(value, 'x', len);
        log_write(LOG_INFO, NULL, fields, ARRAY_SIZE(fields), "m");
        v = logged_json();
        assert_non_null(json_str(v, "v"));
        assert_true(json_has(v, "w") || json_bool(v, "cut", false));
    }
}

static void log_many(int n)
{
    for (int i = 0; i < n; i++)
        log_info("many");
}

static size_t count_lines(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void test_a_busy_site_is_limited_and_says_so(_unused_ void **state)
{
    enum { CALLS = LOG_RATE_MAX * 20 };
    size_t lines, dropped = 0;
    _cleanup_free_ char *text = NULL;
    const char *found;

    log_init("gateway", LOG_INFO, LOG_FORMAT_TEXT);
    log_many(CALLS);
    text = logged();
    lines = count_lines(text);
    assert_true(lines >= LOG_RATE_MAX);
    assert_true(lines < CALLS);
    log_info("another site");
    free(text);
    text = logged();
    assert_int_equal(count_lines(text), 1);
    assert_null(strstr(text, "dropped="));
    /* The next line of the site that passes, in a later second, tells the number. */
    do {
        const struct timespec pause = {.tv_nsec = 20000000};

        (void)nanosleep(&pause, NULL);
        log_many(1);
        dropped++;
        free(text);
        text = logged();
    } while (!*text);
    found = strstr(text, "dropped=");
    assert_non_null(found);
    assert_true(strtoul(found + strlen("dropped="), NULL, 10) >= dropped - 1);
}

static void *log_in_thread(void *arg)
{
    const LogField padding = LOGF_STR("padding", arg);

    for (int i = 0; i < 500; i++)
        log_write(LOG_INFO, NULL, &padding, 1, "thread");
    return NULL;
}

static void test_lines_of_threads_do_not_mix(_unused_ void **state)
{
    static char a[3000], b[3000];
    _cleanup_free_ char *text = NULL;
    pthread_t threads[2];
    size_t n = 0;

    memset(a, 'a', sizeof(a) - 1);
    memset(b, 'b', sizeof(b) - 1);
    log_init("gateway", LOG_INFO, LOG_FORMAT_JSON);
    assert_int_equal(pthread_create(&threads[0], NULL, log_in_thread, a), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, log_in_thread, b), 0);
    (void)pthread_join(threads[0], NULL);
    (void)pthread_join(threads[1], NULL);
    text = logged();
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, n++) {
        _cleanup_json_ JsonValue *v = NULL;

        assert_int_equal(json_parse(line, (size_t)(end - line), 8, JSON_PARSE_DEFAULT, &v, NULL),
                         0);
        assert_int_equal(strlen(json_str(v, "padding")), sizeof(a) - 1);
    }
    assert_int_equal(n, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_line),
        cmocka_unit_test(test_json_line),
        cmocka_unit_test(test_text_escapes_control_and_foreign_bytes),
        cmocka_unit_test(test_secrets_are_redacted),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_long_lines_are_cut_and_stay_valid),
        cmocka_unit_test(test_every_length_around_the_ceiling),
        cmocka_unit_test(test_a_busy_site_is_limited_and_says_so),
        cmocka_unit_test(test_lines_of_threads_do_not_mix),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
