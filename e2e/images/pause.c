/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The process that holds a pod's namespaces: it does nothing but reap children that were left to it (where
 * the pod shares its process namespace) and end when it is told to. It is linked statically and is all
 * that its image contains, so the image also serves as one without a shell.
 */

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_child(int signal_number) {
    (void) signal_number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void on_end(int signal_number) {
    (void) signal_number;
    _exit(EXIT_SUCCESS);
}

int main(void) {
    struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    struct sigaction end = {.sa_handler = on_end};

    if (sigaction(SIGCHLD, &child, NULL) < 0 || sigaction(SIGINT, &end, NULL) < 0 ||
        sigaction(SIGTERM, &end, NULL) < 0)
        return EXIT_FAILURE;

    for (;;)
        pause();
}
