/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/wallclock.h"

#include "common/base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>

#define FAR_AWAY_S (100L * 365 * 24 * 3600)

struct WallClock {
    Loop *loop;
    int fd;
    LoopFn on_jump;
    void *userdata;
};

/* A timer that never runs out, but is cancelled by a step of the clock (timerfd_create(2)). */
static int arm(int fd, Error **error)
{
    struct itimerspec at = {.it_value.tv_sec =
                                clock_realtime_ms(&clock_system) / 1000 + FAR_AWAY_S};
    if (timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) < 0 &&
        errno != ECANCELED)
        return error_set(error, ERROR_INTERNAL, "cannot watch the wall clock: %s", strerror(errno));
    return 0;
}

static void on_ready(int fd, uint32_t events, void *userdata)
{
    (void)events;
    WallClock *w = userdata;
    uint64_t expirations;
    if (read(fd, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED)
        return;
    (void)arm(fd, NULL);
    w->on_jump(w->userdata);
}

int wallclock_new(Loop *l, LoopFn on_jump, void *userdata, WallClock **ret, Error **error)
{
    _cleanup_close_ int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return error_set(error, ERROR_INTERNAL, "cannot create a timer: %s", strerror(errno));
    int r = arm(fd, error);
    if (r < 0)
        return r;
    WallClock *w = xnew(WallClock);
    *w = (WallClock){.loop = l, .fd = fd, .on_jump = on_jump, .userdata = userdata};
    r = loop_fd_add(l, fd, POLLIN, on_ready, w);
    if (r < 0) {
        free(w);
        return error_set(error, ERROR_INTERNAL, "cannot watch the wall clock");
    }
    (void)TAKE_FD(fd);
    *ret = w;
    return 0;
}

WallClock *wallclock_free(WallClock *w)
{
    if (!w)
        return NULL;
    loop_fd_remove(w->loop, w->fd);
    (void)close(w->fd);
    free(w);
    return NULL;
}
