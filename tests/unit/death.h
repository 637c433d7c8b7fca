/* SPDX-License-Identifier: Apache-2.0 */
/* Runs what must end the process in a child and tells how it ended and what it wrote to stderr. */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline size_t read_all(int fd, char *out, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while (len + 1 < size && (n = read(fd, out + len, size - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = '\0';
    return len;
}

/* Returns the wait status; stderr_text gets what came, cut at size - 1 bytes. */
static inline int run_in_child(void (*fn)(void), char *stderr_text, size_t size)
{
    int fds[2], status = 0;
    pid_t pid;

    if (pipe(fds) != 0)
        abort();
    pid = fork();
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        fn();
        _exit(77); /* it came back */
    }
    (void)close(fds[1]);
    (void)read_all(fds[0], stderr_text, size);
    (void)close(fds[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    return status;
}
