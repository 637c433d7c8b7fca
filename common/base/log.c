/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"
#include "common/base/clock.h"
#include "common/base/str.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SITES 1024   /* slots of the rate table; call sites beyond it are not limited */
#define TAIL_ROOM 64 /* kept free for what ends a cut line */
#define MESSAGE_MAX 4096

static const char *const level_names[LOG_LEVEL_MAX] = {"debug", "info", "warn", "error"};
static const char *const format_names[LOG_FORMAT_MAX] = {"text", "json"};

/* Written by log_init and log_set_fd only, before there are threads. */
static struct {
    const char *component;
    LogLevel min_level;
    LogFormat format;
    int fd;
} config = {.component = "", .min_level = LOG_INFO, .format = LOG_FORMAT_TEXT, .fd = 2};

typedef struct Site {
    const char *name;
    int64_t second;
    unsigned lines;
    unsigned dropped;
} Site;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the table, and whole lines on the fd */
static Site sites[SITES];

typedef struct Line {
    char data[LOG_LINE_MAX];
    size_t len;
    bool cut;
} Line;

void log_init(const char *component, LogLevel min_level, LogFormat format)
{
    config.component = component;
    config.min_level = min_level;
    config.format = format;
}

void log_set_fd(int fd)
{
    config.fd = fd;
}

bool log_enabled(LogLevel level)
{
    return level >= config.min_level;
}

static int find_name(const char *const *names, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(names[i], s))
            return (int)i;
    return -EINVAL;
}

int log_level_from_string(const char *s, LogLevel *ret)
{
    int i = find_name(level_names, LOG_LEVEL_MAX, s);

    if (i < 0)
        return i;
    *ret = (LogLevel)i;
    return 0;
}

int log_format_from_string(const char *s, LogFormat *ret)
{
    int i = find_name(format_names, LOG_FORMAT_MAX, s);

    if (i < 0)
        return i;
    *ret = (LogFormat)i;
    return 0;
}

static bool line_has_room(const Line *l, size_t len)
{
    return l->len + len <= sizeof(l->data) - TAIL_ROOM;
}

/* For what ends values and lines: uses the reserve. */
static void line_put_tail(Line *l, const char *s)
{
    size_t len = strlen(s);

    if (len > sizeof(l->data) - l->len)
        len = sizeof(l->data) - l->len;
    memcpy(l->data + l->len, s, len);
    l->len += len;
}

/* All of it or nothing; from the first piece on that does not fit, nothing more. */
static void line_put(Line *l, const char *s, size_t len)
{
    if (l->cut || !line_has_room(l, len)) {
        l->cut = true;
        return;
    }
    memcpy(l->data + l->len, s, len);
    l->len += len;
}

static void line_put_str(Line *l, const char *s)
{
    line_put(l, s, strlen(s));
}

static size_t escape_control(char c, bool json, char out[8])
{
    const char *named = strchr("\nn\rr\tt", c);
    int n;

    if (c && named)
        n = snprintf(out, 8, "\\%c", named[1]);
    else
        n = snprintf(out, 8, json ? "\\u%04x" : "\\x%02x", (unsigned char)c);
    return (size_t)n;
}

/* What stands between quotes, the same in both formats but for control and foreign bytes. */
static void line_put_escaped(Line *l, const char *s)
{
    bool json = config.format == LOG_FORMAT_JSON;
    size_t len = strlen(s);

    while (len > 0 && !l->cut) {
        size_t n = str_utf8_len(s, len);
        char out[8] = {'\\', *s};

        if (n == 0 && json)
            line_put_str(l, "\\ufffd");
        else if (n == 0 || (unsigned char)*s < 0x20 || *s == 0x7F)
            line_put(l, out, escape_control(*s, json, out));
        else if (*s == '"' || *s == '\\')
            line_put(l, out, 2);
        else
            line_put(l, s, n);
        s += n ? n : 1;
        len -= n ? n : 1;
    }
}

static void line_put_quoted(Line *l, const char *s)
{
    line_put(l, "\"", 1);
    if (l->cut)
        return;
    line_put_escaped(l, s);
    line_put_tail(l, "\"");
}

static bool is_plain(const char *s)
{
    if (!*s)
        return false;
    for (; *s; s++)
        if (*s <= ' ' || *s >= 0x7F || *s == '"' || *s == '\\' || *s == '=')
            return false;
    return true;
}

static bool is_secret(const char *key)
{
    static const char *const words[] = {
        "authorization", "token",       "password",    "passwd",     "secret",
        "cookie",        "api_key",     "api-key",     "apikey",     "credential",
        "credentials",   "private_key", "private-key", "privatekey", "passphrase",
    };
    size_t len = strlen(key);

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t n = strlen(words[i]);

        if (len >= n && strcasecmp(key + len - n, words[i]) == 0)
            return true;
    }
    return false;
}

static void line_put_field(Line *l, const LogField *f)
{
    bool json = config.format == LOG_FORMAT_JSON;
    const char *str = f->str && is_secret(f->key) ? "[redacted]" : f->str;
    char num[24];

    /* A key is written only where its value can at least begin. */
    if (l->cut || !line_has_room(l, strlen(f->key) * 6 + sizeof(num) + 8)) {
        l->cut = true;
        return;
    }
    line_put_str(l, json ? "," : " ");
    if (json)
        line_put_quoted(l, f->key);
    else
        line_put_escaped(l, f->key);
    line_put_str(l, json ? ":" : "=");
    (void)snprintf(num, sizeof(num), "%lld", (long long)f->num);
    if (str && (json || !is_plain(str)))
        line_put_quoted(l, str);
    else
        line_put_escaped(l, str ? str : num);
}

static void line_begin(Line *l, LogLevel level, const char *message)
{
    bool json = config.format == LOG_FORMAT_JSON;
    char time[RFC3339_MAX];

    time_format_rfc3339_micro(clock_realtime_ms(&clock_system), time);
    if (!json) {
        line_put_str(l, time);
        line_put_str(l, " ");
        line_put_str(l, level_names[level]);
        line_put_str(l, " ");
        line_put_str(l, config.component);
        line_put_str(l, ": ");
        line_put_escaped(l, message);
        return;
    }
    line_put_str(l, "{\"time\":\"");
    line_put_str(l, time);
    line_put_str(l, "\"");
    line_put_field(l, &(LogField){.key = "level", .str = level_names[level]});
    line_put_field(l, &(LogField){.key = "component", .str = config.component});
    line_put_field(l, &(LogField){.key = "message", .str = message});
}

static void line_end(Line *l)
{
    bool json = config.format == LOG_FORMAT_JSON;

    if (l->cut)
        line_put_tail(l, json ? ",\"cut\":true" : " cut=true");
    line_put_tail(l, json ? "}\n" : "\n");
}

/* The site's row, a free one for a new site, NULL where the table is full. */
static Site *find_site(const char *name)
{
    size_t i = (size_t)str_hash64(name) % SITES;

    for (size_t n = 0; n < SITES; n++, i = (i + 1) % SITES)
        if (!sites[i].name || strcmp(sites[i].name, name) == 0)
            return &sites[i];
    return NULL;
}

/* Counts the line; false where it is one too many in this second. */
static bool site_allows(const char *name, unsigned *ret_dropped)
{
    int64_t second = clock_monotonic_ms(&clock_system) / 1000;
    Site *site = name ? find_site(name) : NULL;

    *ret_dropped = 0;
    if (!site)
        return true;
    if (!site->name || site->second != second) {
        site->name = name;
        site->second = second;
        site->lines = 0;
    }
    if (++site->lines > LOG_RATE_MAX) {
        site->dropped++;
        return false;
    }
    *ret_dropped = site->dropped;
    site->dropped = 0;
    return true;
}

static void write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(config.fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

void log_write(LogLevel level, const char *site, const LogField *fields, size_t n_fields,
               const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    Line line = {.len = 0};
    unsigned dropped;
    bool allowed;
    va_list ap;

    if (!log_enabled(level))
        return;
    pthread_mutex_lock(&lock);
    allowed = site_allows(site, &dropped);
    pthread_mutex_unlock(&lock);
    if (!allowed)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    line_begin(&line, level, message);
    for (size_t i = 0; i < n_fields; i++)
        if (fields[i].key)
            line_put_field(&line, &fields[i]);
    if (dropped > 0)
        line_put_field(&line, &LOGF_INT("dropped", dropped));
    line_end(&line);
    pthread_mutex_lock(&lock);
    write_all(line.data, line.len);
    pthread_mutex_unlock(&lock);
}
