/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of the given directories, in order of their names: the corpus
 * as an ordinary test, with any compiler. Fails where a directory cannot be read or has no files,
 * so that a corpus that went missing is noticed.
 */
#include "common/base/buf.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX_BYTES (16U << 20)

static int read_file(int dir_fd, const char *name, Buf *out)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do {
        char piece[4096];

        n = read(fd, piece, sizeof(piece));
        if (n < 0)
            return -errno;
        if (buf_append(out, piece, (size_t)n) < 0)
            return -E2BIG;
    } while (n > 0);
    return 0;
}

static int replay_file(int dir_fd, const char *name)
{
    _cleanup_buf_ Buf input = BUF_INIT(INPUT_MAX_BYTES);
    _cleanup_free_ uint8_t *exact = NULL; /* the sanitizer guards its end */
    int r = read_file(dir_fd, name, &input);

    if (r < 0) {
        (void)fprintf(stderr, "%s: %s\n", name, strerror(-r));
        return r;
    }
    exact = xmemdup(buf_str(&input), input.len);
    (void)fprintf(stderr, "%s (%zu bytes)\n", name, input.len);
    (void)LLVMFuzzerTestOneInput(exact, input.len);
    return 1;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Returns how many files were replayed, or a negative errno. */
static int replay_dir(const char *path)
{
    _cleanup_close_ int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **entries = NULL;
    int n = dir_fd < 0 ? -1 : scandir(path, &entries, is_input, alphasort), r = n < 0 ? -errno : 0;

    for (int i = 0; i < n; i++) {
        if (r >= 0)
            r = replay_file(dir_fd, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return r < 0 ? r : n;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s CORPUS_DIRECTORY...\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (int i = 1; i < argc; i++) {
        int n = replay_dir(argv[i]);

        if (n <= 0) {
            (void)fprintf(stderr, "%s: %s\n", argv[i], n < 0 ? strerror(-n) : "no inputs");
            return EXIT_FAILURE;
        }
        (void)printf("%s: %d inputs\n", argv[i], n);
    }
    return EXIT_SUCCESS;
}
