/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/scan.h"
#include "common/base/str.h"

#include <string.h>

typedef struct Scanner {
    const char *start;
    const char *p;
    const char *end;
    int depth_left;
    int max_depth;
    JsonScan *out;
    Error **error;
} Scanner;

static int scan_value(Scanner *s);

static int fail(Scanner *s, const char *expected)
{
    size_t offset = (size_t)(s->p - s->start);

    if (s->p == s->end)
        return error_set(s->error, ERROR_INVALID, "JSON ends at byte %zu, expected %s", offset,
                         expected);
    return error_set(s->error, ERROR_INVALID, "JSON is broken at byte %zu, expected %s", offset,
                     expected);
}

/* The byte at the scanner, or NUL at the end (where no byte that is looked for is NUL). */
static char peek(const Scanner *s)
{
    return s->p < s->end ? *s->p : '\0';
}

static bool take(Scanner *s, char c)
{
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static void skip_space(Scanner *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind a backslash. */
static int scan_escape(Scanner *s, bool is_key)
{
    char c = peek(s);

    if (c != 'u') {
        if (c == '\0' || !strchr("\"\\/bfnrt", c))
            return fail(s, "an escape sequence");
        s->p++;
        return 0;
    }
    s->p++;
    for (int i = 0; i < 4; i++)
        if (s->end - s->p <= i || !is_hex(s->p[i]))
            return fail(s, "four hex digits");
    if (is_key && memcmp(s->p, "0000", 4) == 0)
        return fail(s, "a key without NUL");
    s->p += 4;
    return 0;
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

static int scan_string(Scanner *s, bool is_key)
{
    if (!take(s, '"'))
        return fail(s, is_key ? "a key in double quotes" : "a value");
    for (;;) {
        size_t n;
        int r;

        while (s->p < s->end && is_plain(*s->p))
            s->p++;
        if (take(s, '"'))
            return 0;
        if (take(s, '\\')) {
            r = scan_escape(s, is_key);
            if (r < 0)
                return r;
            continue;
        }
        if (s->p == s->end)
            return fail(s, "the end of a string");
        n = (unsigned char)*s->p < 0x20 ? 0 : str_utf8_len(s->p, (size_t)(s->end - s->p));
        if (n == 0)
            return fail(s, "UTF-8 without control bytes");
        s->p += n;
    }
}

static size_t scan_digits(Scanner *s)
{
    const char *start = s->p;

    while (s->p < s->end && is_digit(*s->p))
        s->p++;
    return (size_t)(s->p - start);
}

/* Whether -digits or digits fits int64_t. */
static bool fits_int64(const char *digits, size_t len, bool negative)
{
    static const char limits[2][20] = {"9223372036854775807", "9223372036854775808"};

    return len < 19 || (len == 19 && memcmp(digits, limits[negative], 19) <= 0);
}

static void note_wide(Scanner *s)
{
    JsonScan *out = s->out;

    if ((out->n_wide & (out->n_wide - 1)) == 0) /* 0 and the powers of two: full */
        out->wide = xreallocarray(out->wide, out->n_wide ? out->n_wide * 2 : 1, sizeof(size_t));
    out->wide[out->n_wide++] = (size_t)(s->p - s->start);
}

static int scan_number(Scanner *s)
{
    bool negative = take(s, '-'), whole = true;
    const char *digits = s->p;
    size_t n_digits;

    n_digits = peek(s) == '0' ? (size_t)take(s, '0') : scan_digits(s);
    if (n_digits == 0)
        return fail(s, negative ? "a digit" : "a value");
    if (take(s, '.')) {
        whole = false;
        if (scan_digits(s) == 0)
            return fail(s, "a digit");
    }
    if (take(s, 'e') || take(s, 'E')) {
        whole = false;
        if (!take(s, '-'))
            (void)take(s, '+');
        if (scan_digits(s) == 0)
            return fail(s, "a digit");
    }
    if (whole && !fits_int64(digits, n_digits, negative))
        note_wide(s);
    return 0;
}

static int scan_word(Scanner *s, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
        return fail(s, "a value");
    s->p += len;
    return 0;
}

static int scan_member(Scanner *s)
{
    int r = scan_string(s, true);

    if (r < 0)
        return r;
    s->out->n_members++;
    skip_space(s);
    if (!take(s, ':'))
        return fail(s, "':'");
    return scan_value(s);
}

/* Members or elements up to the closing bracket; the opening one is taken. */
static int scan_sequence(Scanner *s, char close, int (*scan_one)(Scanner *))
{
    if (--s->depth_left < 0)
        return error_set(s->error, ERROR_INVALID, "JSON is nested deeper than %d levels",
                         s->max_depth);
    skip_space(s);
    if (!take(s, close)) {
        do {
            int r;

            skip_space(s);
            r = scan_one(s);
            if (r < 0)
                return r;
            skip_space(s);
        } while (take(s, ','));
        if (!take(s, close))
            return fail(s, close == '}' ? "',' or '}'" : "',' or ']'");
    }
    s->depth_left++;
    return 0;
}

static int scan_value(Scanner *s)
{
    skip_space(s);
    switch (peek(s)) {
    case '{':
        s->p++;
        return scan_sequence(s, '}', scan_member);
    case '[':
        s->p++;
        return scan_sequence(s, ']', scan_value);
    case '"':
        return scan_string(s, false);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return scan_number(s);
    }
}

int json_scan(const char *text, size_t len, int max_depth, JsonScan *ret, Error **error)
{
    JsonScan out = {0};
    Scanner s = {
        .start = text,
        .p = text,
        .end = text + len,
        .depth_left = max_depth,
        .max_depth = max_depth,
        .out = &out,
        .error = error,
    };
    int r = scan_value(&s);

    if (r == 0) {
        skip_space(&s);
        if (s.p < s.end)
            r = fail(&s, "the end");
    }
    if (r < 0) {
        json_scan_done(&out);
        return r;
    }
    *ret = out;
    return 0;
}

bool json_is_wide_integer(const char *s, size_t len)
{
    bool negative = len > 0 && *s == '-';
    size_t sign = negative ? 1 : 0;

    for (size_t i = sign; i < len; i++)
        if (!is_digit(s[i]))
            return false;
    return !fits_int64(s + sign, len - sign, negative);
}

void json_scan_done(JsonScan *s)
{
    free(s->wide);
    *s = (JsonScan){0};
}
