/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/file.h"

#include "common/base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_regular(const char *path, Error **error)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_set(error, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID,
                         "cannot open %s: %s", path, strerror(errno));
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(error, ERROR_INVALID, "%s is no regular file", path);
    return TAKE_FD(fd);
}

static int read_all(int fd, const char *path, Buf *content, Error **error)
{
    char piece[8192];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(error, ERROR_INVALID, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            break;
        if (buf_append(content, piece, (size_t)n) < 0)
            break;
    }
    explicit_bzero(piece, sizeof(piece));
    return buf_check(content, path, error);
}

int file_read_text(const char *path, size_t max_bytes, char **ret, Error **error)
{
    _cleanup_close_ int fd = open_regular(path, error);
    if (fd < 0)
        return fd;
    _cleanup_(buf_wipe) Buf content = BUF_INIT(max_bytes);
    int r = read_all(fd, path, &content, error);
    if (r < 0)
        return r;
    if (memchr(buf_str(&content), '\0', content.len))
        return error_set(error, ERROR_INVALID, "%s is not a text file", path);
    *ret = buf_take(&content, NULL);
    return 0;
}
