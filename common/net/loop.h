/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop of a thread: HTTP transfers (curl multi), monotonic timers, file descriptors,
 * signals and functions posted by other threads, all run on the thread that calls loop_run(). Only
 * loop_post() and loop_wake() may be called from elsewhere. No callback may block. The first loop
 * of a process sets SIGPIPE to be ignored: a write to a lost peer is an error, not a signal.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/heap.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Loop Loop;
typedef void (*LoopFn)(void *userdata);
typedef void (*LoopFdFn)(int fd, uint32_t events, void *userdata); /* events: POLLIN, POLLOUT, … */

/* A timer is a member of its owner's struct. Zero-initialise, set fn and userdata, then arm. */
typedef struct LoopTimer {
    HeapTimer heap;
    LoopFn fn;
    void *userdata;
} LoopTimer;

int loop_new(const Clock *clock, Loop **ret, Error **error);
/* Its HTTP clients are freed before it. Must run on the loop's thread, or after it ended. Timers
 * and posted functions not run are dropped. */
Loop *loop_free(Loop *l);
int64_t loop_now_ms(const Loop *l); /* monotonic, read once per turn */
const Clock *loop_clock(const Loop *l);

/* Arms (or moves) the timer; delay_ms < 0 counts as 0. One shot: re-arm inside the callback. */
void loop_timer_set(Loop *l, LoopTimer *t, int64_t delay_ms);
void loop_timer_stop(Loop *l, LoopTimer *t);

/* Thread-safe: fn(userdata) runs on the loop's thread, in order of posting. -ESHUTDOWN after
 * loop_free began. At most LOOP_POSTS_MAX wait; beyond that -ENOBUFS. */
#define LOOP_POSTS_MAX 65536
int loop_post(Loop *l, LoopFn fn, void *userdata) _warn_unused_;
void loop_wake(Loop *l);

/* Watches fd (level-triggered) until loop_fd_remove. At most 64 descriptors. events: POLLIN |
 * POLLOUT. */
int loop_fd_add(Loop *l, int fd, short events, LoopFdFn fn, void *userdata);
void loop_fd_remove(Loop *l, int fd);
/* Blocks the signals in the calling thread (call before other threads start) and delivers them
 * here. */
int loop_signals(Loop *l, const int *signals, size_t n, void (*fn)(int signo, void *userdata),
                 void *userdata, Error **error);

/* Runs until loop_exit. Returns the code given there. */
int loop_run(Loop *l);
void loop_exit(Loop *l, int code); /* from the loop's thread */
/* One turn, waiting at most max_wait_ms: for tests. */
void loop_turn(Loop *l, int64_t max_wait_ms);
