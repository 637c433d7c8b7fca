/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines to stderr, one write() a line, as text or as JSON lines. Fields are typed pairs behind
 * the message. Control bytes and invalid UTF-8 are escaped; a line is cut at LOG_LINE_MAX bytes,
 * and stays one line of valid JSON when it is. Thread-safe after log_init(). The value of a key
 * whose name ends like a secret's (authorization, token, password, …) is printed as "[redacted]". A
 * call site is limited to LOG_RATE_MAX lines a second; the next line of it that passes has the
 * number dropped in the field "dropped". Errors of write() are ignored: there is nowhere to report
 * them.
 */
#pragma once

#include "common/base/cleanup.h"
#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define LOG_LINE_MAX 8192
#define LOG_RATE_MAX 200

typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_MAX } LogLevel;
typedef enum LogFormat { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT_MAX } LogFormat;

typedef struct LogField {
    const char *key; /* NULL: the field is left out */
    const char *str; /* NULL: the number counts */
    int64_t num;
} LogField;

static inline LogField log_field_str(const char *key, const char *value)
{
    return (LogField){.key = value ? key : NULL, .str = value};
}
#define LOGF_STR(k, v) log_field_str((k), (v)) /* NULL: no such field in the line */
#define LOGF_INT(k, v) ((LogField){.key = (k), .num = (int64_t)(v)})

/* component: "controller" or "gateway", a literal. Call once before threads start. */
void log_init(const char *component, LogLevel min_level, LogFormat format);
void log_set_fd(int fd); /* tests; default 2 */
bool log_enabled(LogLevel level);
int log_level_from_string(const char *s, LogLevel *ret);
int log_format_from_string(const char *s, LogFormat *ret);
/* site identifies the call site for the rate limit; NULL is never limited. */
void log_write(LogLevel level, const char *site, const LogField *fields, size_t n_fields,
               const char *fmt, ...) _printf_(5, 6);

#define LOG_STRINGIFY2(x) #x
#define LOG_STRINGIFY(x) LOG_STRINGIFY2(x)
#define LOG_SITE __FILE__ ":" LOG_STRINGIFY(__LINE__)
/* log_info("bound claim", LOGF_STR("claim", name), …): the message is a literal, facts are fields.
 */
#define log_at(level, message, ...)                                                                \
    do {                                                                                           \
        if (log_enabled(level)) {                                                                  \
            const LogField _fields[] = {__VA_ARGS__ __VA_OPT__(, ){.key = NULL}};                  \
            log_write(level, LOG_SITE, _fields, ARRAY_SIZE(_fields) - 1, "%s", message);           \
        }                                                                                          \
    } while (0)
#define log_debug(message, ...) log_at(LOG_DEBUG, message __VA_OPT__(, ) __VA_ARGS__)
#define log_info(message, ...) log_at(LOG_INFO, message __VA_OPT__(, ) __VA_ARGS__)
#define log_warn(message, ...) log_at(LOG_WARN, message __VA_OPT__(, ) __VA_ARGS__)
#define log_error(message, ...) log_at(LOG_ERROR, message __VA_OPT__(, ) __VA_ARGS__)
