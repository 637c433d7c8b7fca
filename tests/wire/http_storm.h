/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of the suspend storm, see http_storm.c. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STORM_CONNECTIONS_MAX 4096
#define STORM_LOST_MS 15000 /* an answer that takes longer is lost */
#define STORM_EVENTS 3      /* of each stream */
#define STORM_ID_HEADER "X-Id"

#define check(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, __VA_ARGS__);                                                    \
            (void)fprintf(stderr, " (%s)\n", #condition);                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* GET /now is answered at once, POST /later by the loop's thread, both with the X-Id of the request
 * as content; GET /stream sends it STORM_EVENTS times, one line each. All of this runs on the
 * calling thread, for so long, and until the last answer is there. */
void storm_peers_run(uint16_t port, int connections, int64_t seconds);
uint64_t storm_peers_sent(void);
uint64_t storm_peers_left(void);
void storm_peers_print(double seconds);
