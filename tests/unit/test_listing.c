/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transport/listing.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "00112233aabbccdd"
#define DIR_RECORD ID " d 41ed 4096 1700000000 /d/.\n"

typedef struct Result {
    bool ok;
    FileEntry *entries;
    size_t n;
    uint64_t total;
} Result;

static Result list(const char *text, size_t len, size_t piece, uint64_t max_entries)
{
    Listing l;
    Result r = {.ok = false};

    listing_init(&l, ID, max_entries);
    for (size_t at = 0; at < len; at += piece)
        listing_feed(&l, text + at, len - at < piece ? len - at : piece);
    r.ok = listing_finish(&l, &r.entries, &r.n, &r.total);
    listing_done(&l);
    return r;
}

static void result_done(Result *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->entries[i].name);
    free(r->entries);
}

static void test_kinds_names_and_order(void **state)
{
    static const char text[] =
        DIR_RECORD ID " f 81a4 12 1700000001 /d/./b\n" ID " f 41ed 4096 -5 /d/./a dir\n" ID
                      " f 11a4 0 1 /d/./line\nbreak\n\n" ID " l a1ff 4 2 /d/./to file\n" ID
                      " l a1ff 4 3 /d/./loose\n" ID " t 81a4 99 1700000009 /d/./to file\n";
    (void)state;

    for (size_t piece = 1; piece < 200; piece++) {
        Result r = list(text, strlen(text), piece, 100);
        assert_true(r.ok);
        assert_int_equal(r.total, 5);
        assert_int_equal(r.n, 5);
        assert_string_equal(r.entries[0].name, "a dir");
        assert_int_equal(r.entries[0].type, FILE_TYPE_DIRECTORY);
        assert_true(r.entries[0].mod_time == -5.0);
        assert_string_equal(r.entries[1].name, "b");
        assert_int_equal(r.entries[1].type, FILE_TYPE_FILE);
        assert_int_equal(r.entries[1].size, 12);
        assert_string_equal(r.entries[2].name, "line\nbreak\n");
        assert_int_equal(r.entries[2].type, FILE_TYPE_OTHER);
        assert_string_equal(r.entries[3].name, "loose");
        assert_int_equal(r.entries[3].type, FILE_TYPE_OTHER);
        assert_string_equal(r.entries[4].name, "to file");
        assert_int_equal(r.entries[4].type, FILE_TYPE_FILE);
        assert_int_equal(r.entries[4].size, 99);
        result_done(&r);
    }
}

static void test_target_may_come_before_its_link(void **state)
{
    static const char text[] = DIR_RECORD ID " t 41ed 7 8 /d/./x\n" ID " l a1ff 4 2 /d/./x\n";
    (void)state;

    Result r = list(text, strlen(text), 10, 100);
    assert_true(r.ok);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.total, 1);
    assert_int_equal(r.entries[0].type, FILE_TYPE_DIRECTORY);
    result_done(&r);
}

/* The first names of many, whatever their order, links included. */
static void test_ceiling_keeps_the_first_names(void **state)
{
    static const uint64_t ceilings[] = {0, 1, 7, 499, 500, 501};
    (void)state;

    for (size_t c = 0; c < ARRAY_SIZE(ceilings); c++) {
        _cleanup_buf_ Buf text = BUF_INIT(1 << 20);
        buf_append_str(&text, DIR_RECORD);
        for (unsigned i = 0; i < 500; i++) {
            unsigned k = i * 271 % 500; /* each once, out of order */
            buf_printf(&text, ID " %c 81a4 1 2 /d/./n%03u\n", k % 5 ? 'f' : 'l', k);
        }
        for (unsigned k = 0; k < 500; k += 5)
            buf_printf(&text, ID " t 81a4 77 2 /d/./n%03u\n", k);
        Result r = list(text.data, text.len, 1000, ceilings[c]);
        assert_true(r.ok);
        assert_int_equal(r.total, 500);
        assert_int_equal(r.n, ceilings[c] < 500 ? ceilings[c] : 500);
        for (unsigned i = 0; i < r.n; i++) {
            char name[8];
            snprintf(name, sizeof(name), "n%03u", i % 1000);
            assert_string_equal(r.entries[i].name, name);
            assert_int_equal(r.entries[i].size, i % 5 ? 1 : 77);
        }
        result_done(&r);
    }
}

static void test_what_is_no_listing(void **state)
{
    static const char *const texts[] = {
        "",
        ID " f 81a4 12 1 /d/./b\n", /* no directory */
        "stat: usage\n" DIR_RECORD,
        DIR_RECORD ID " f 81a4 12 1 /d/./cut",
        DIR_RECORD ID " f 81a4 12 1\n",
        DIR_RECORD ID " q 81a4 12 1 /d/./b\n",
        DIR_RECORD ID " ff 81a4 12 1 /d/./b\n",
        DIR_RECORD ID " f zz 12 1 /d/./b\n",
        DIR_RECORD ID " f 81a4 x 1 /d/./b\n",
        DIR_RECORD ID " f 81a4 1 y /d/./b\n",
        DIR_RECORD ID " f 81a4 1 1 /d/./\n",
        DIR_RECORD ID,
        DIR_RECORD ID " ",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        for (size_t piece = 1; piece < 100; piece += 13) {
            Result r = list(texts[i], strlen(texts[i]), piece, 100);
            assert_false(r.ok);
            assert_int_equal(r.n, 0);
        }
}

static void test_endless_record_is_broken(void **state)
{
    Listing l;
    char block[1000];
    FileEntry *entries = NULL;
    size_t n = 0;
    uint64_t total = 0;
    (void)state;

    memset(block, 'x', sizeof(block));
    listing_init(&l, ID, 10);
    listing_feed(&l, DIR_RECORD, strlen(DIR_RECORD));
    listing_feed(&l, ID " f 1 1 1 /", strlen(ID " f 1 1 1 /"));
    for (size_t i = 0; i < 100; i++)
        listing_feed(&l, block, sizeof(block));
    assert_true(l.broken);
    assert_true(l.pending.len < 20000);
    assert_false(listing_finish(&l, &entries, &n, &total));
    listing_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_names_and_order),
        cmocka_unit_test(test_target_may_come_before_its_link),
        cmocka_unit_test(test_ceiling_keeps_the_first_names),
        cmocka_unit_test(test_what_is_no_listing),
        cmocka_unit_test(test_endless_record_is_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
