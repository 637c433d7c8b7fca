/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of an exec stream, whole and in pieces, give the same output, trailer, listing and
 * status; the trailer is the first line that begins with the nonce, and nothing of it is output.
 * Input: a seed, then messages, each a length byte and as many bytes, the first of them the
 * channel.
 */
#include "common/base/str.h"
#include "common/kube/exec.h"
#include "gateway/transport/checksum.h"
#include "gateway/transport/failure.h"
#include "gateway/transport/listing.h"
#include "gateway/transport/output.h"
#include "gateway/transport/trailer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/split.h"

#include <string.h>

#define NONCE "0123456789abcdef0123456789abcd99"
#define ID "00112233aabbccdd"
#define ALL_MAX (1U << 20)
#define KEEP_MAX 1024
#define ENTRIES_MAX 5

typedef struct Run {
    ExecDemux demux;
    TrailerScan scans[2];
    Buf raw[2]; /* as it came */
    Buf out[2]; /* without the trailer */
    OutputKeeper kept;
    Listing listing;
    int result;
} Run;

static void add_out(const char *data, size_t len, void *userdata)
{
    Run *run = userdata;

    FUZZ_CHECK(len > 0);
    (void)buf_append(&run->out[0], data, len);
    output_add(&run->kept, data, len);
    listing_feed(&run->listing, data, len);
}

static void add_err(const char *data, size_t len, void *userdata)
{
    Run *run = userdata;
    (void)buf_append(&run->out[1], data, len);
}

static void on_data(ExecChannel channel, const char *data, size_t len, void *userdata)
{
    Run *run = userdata;
    size_t i = channel == EXEC_STDOUT ? 0 : 1;

    FUZZ_CHECK(channel == EXEC_STDOUT || channel == EXEC_STDERR);
    (void)buf_append(&run->raw[i], data, len);
    trailer_feed(&run->scans[i], data, len, i == 0 ? add_out : add_err, run);
}

static void feed_message(Run *run, const char *data, size_t len, uint32_t *random)
{
    size_t at = 0;

    do {
        size_t n = *random ? next_piece(random, len - at) : len - at;
        run->result =
            exec_demux_feed(&run->demux, data + at, n, at == 0, at + n == len, on_data, run, NULL);
        at += n;
    } while (at < len && run->result == 0);
}

static void run_all(Run *run, const char *data, size_t size, uint32_t random)
{
    *run = (Run){.demux = EXEC_DEMUX_INIT,
                 .raw = {BUF_INIT(ALL_MAX), BUF_INIT(ALL_MAX)},
                 .out = {BUF_INIT(ALL_MAX), BUF_INIT(ALL_MAX)},
                 .kept = OUTPUT_KEEPER_INIT(KEEP_MAX)};
    trailer_init(&run->scans[0], NONCE);
    trailer_init(&run->scans[1], NONCE);
    listing_init(&run->listing, ID, ENTRIES_MAX);
    while (size > 0 && run->result == 0) {
        size_t len = (unsigned char)data[0];
        len = len < size - 1 ? len : size - 1;
        feed_message(run, data + 1, len, &random);
        data += 1 + len;
        size -= 1 + len;
    }
}

static bool same(const Buf *a, const Buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void check_trailer(const Run *run, size_t i)
{
    const Buf *raw = &run->raw[i], *out = &run->out[i];
    const char *at = raw->len > 0 ? memmem(raw->data, raw->len, NONCE, strlen(NONCE)) : NULL;

    FUZZ_CHECK(run->scans[i].found == (at != NULL));
    FUZZ_CHECK(out->len <= raw->len);
    FUZZ_CHECK(out->len == 0 || memcmp(out->data, raw->data, out->len) == 0);
    FUZZ_CHECK(!at || out->len == (size_t)(at - raw->data));
    FUZZ_CHECK(
        !run->scans[i].complete ||
        memchr(at + strlen(NONCE), '\n', (size_t)(raw->data + raw->len - at) - strlen(NONCE)));
}

static void check_output(Run *run)
{
    size_t len = 0;
    bool truncated = false;

    FUZZ_CHECK(run->kept.total == run->out[0].len);
    _cleanup_free_ char *text = output_take(&run->kept, &len, &truncated);
    FUZZ_CHECK(truncated == (run->out[0].len > KEEP_MAX));
    FUZZ_CHECK(truncated ? len <= KEEP_MAX : len == run->out[0].len);
    FUZZ_CHECK(text[len] == '\0');
}

static bool check_listing(Run *run, uint64_t *ret_total)
{
    FileEntry *entries = NULL;
    size_t n = 0;
    bool ok = listing_finish(&run->listing, &entries, &n, ret_total);

    FUZZ_CHECK(n <= ENTRIES_MAX && (!ok || *ret_total >= n));
    for (size_t i = 1; i < n; i++)
        FUZZ_CHECK(strcmp(entries[i - 1].name, entries[i].name) <= 0);
    for (size_t i = 0; i < n; i++)
        free(entries[i].name);
    free(entries);
    return ok;
}

/* Nothing to compare with: they must not break. */
static void use_texts(const Run *run)
{
    ExecStatus status = {.exit_code = -1};

    if (exec_status_parse(buf_str(&run->demux.status), run->demux.status.len, &status, NULL) == 0)
        (void)failure_of_status(&status, NULL);
    exec_status_done(&status);
    (void)checksum_line_matches(run->scans[0].line, run->out[0].data, run->out[0].len);
    (void)failure_of_word(run->scans[0].line, "/p", buf_str(&run->out[1]), NULL);
    (void)failure_is_absence(buf_str(&run->out[1]));
}

static void run_done(Run *run)
{
    exec_demux_done(&run->demux);
    for (size_t i = 0; i < 2; i++) {
        buf_done(&run->raw[i]);
        buf_done(&run->out[i]);
    }
    output_done(&run->kept);
    listing_done(&run->listing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Run whole, pieces;
    uint64_t totals[2] = {0};

    if (size == 0 || size > ALL_MAX / 2)
        return 0;
    run_all(&whole, (const char *)data + 1, size - 1, 0);
    run_all(&pieces, (const char *)data + 1, size - 1, data[0] + 1U);
    FUZZ_CHECK(whole.result == pieces.result);
    for (size_t i = 0; i < 2; i++) {
        FUZZ_CHECK(same(&whole.raw[i], &pieces.raw[i]));
        FUZZ_CHECK(same(&whole.out[i], &pieces.out[i]));
        FUZZ_CHECK(strcmp(whole.scans[i].line, pieces.scans[i].line) == 0);
        FUZZ_CHECK(whole.scans[i].complete == pieces.scans[i].complete);
        check_trailer(&whole, i);
    }
    FUZZ_CHECK(same(&whole.demux.status, &pieces.demux.status));
    use_texts(&whole);
    check_output(&whole);
    check_output(&pieces);
    FUZZ_CHECK(check_listing(&whole, &totals[0]) == check_listing(&pieces, &totals[1]));
    FUZZ_CHECK(totals[0] == totals[1]);
    run_done(&whole);
    run_done(&pieces);
    return 0;
}
