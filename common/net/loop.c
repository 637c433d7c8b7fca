/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/loop.h"

#include "common/base/cleanup.h"
#include "common/net/loop-internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#define FDS_MAX 64
#define CONNECTIONS_KEPT_MAX 64L

typedef struct Post {
    LoopFn fn;
    void *userdata;
} Post;

typedef struct Posts {
    Post *items;
    size_t len;
    size_t cap;
} Posts;

typedef struct FdWatch {
    int fd;
    uint32_t generation; /* tells an event of an earlier watch in this slot from one of this */
    LoopFdFn fn;         /* NULL: the slot is free */
    void *userdata;
} FdWatch;

struct Loop {
    const Clock *clock;
    int64_t now_ms;
    CURLM *multi;
    bool performing;
    Heap timers;

    int epoll_fd; /* all watched descriptors behind one, so that HUP and ERR are seen too */
    FdWatch fds[FDS_MAX];
    uint32_t generation;

    int signal_fd;
    void (*on_signal)(int signo, void *userdata);
    void *signal_userdata;

    pthread_mutex_t lock; /* posts, closed */
    Posts posts;
    bool closed;

    Posts batch; /* of the current turn; its memory is reused */
    bool exiting;
    int exit_code;
};

static void process_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    (void)signal(SIGPIPE, SIG_IGN);
}

static int loop_open(Loop *l, Error **error)
{
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0)
        return error_set(error, ERROR_INTERNAL, "cannot create an epoll set: %s", strerror(errno));
    l->multi = curl_multi_init();
    if (!l->multi)
        return error_set(error, ERROR_INTERNAL, "cannot create a curl multi handle");
    curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT_MAX);
    curl_multi_setopt(l->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return 0;
}

int loop_new(const Clock *clock, Loop **ret, Error **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, process_init);

    Loop *l = xnew(Loop);
    l->clock = clock;
    l->now_ms = clock_monotonic_ms(clock);
    l->epoll_fd = -1;
    l->signal_fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    int r = loop_open(l, error);
    if (r < 0) {
        loop_free(l);
        return r;
    }
    *ret = l;
    return 0;
}

Loop *loop_free(Loop *l)
{
    if (!l)
        return NULL;
    pthread_mutex_lock(&l->lock);
    l->closed = true;
    pthread_mutex_unlock(&l->lock);
    closep(&l->signal_fd);
    closep(&l->epoll_fd);
    if (l->multi)
        curl_multi_cleanup(l->multi);
    heap_done(&l->timers);
    free(l->posts.items);
    free(l->batch.items);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

int64_t loop_now_ms(const Loop *l)
{
    return l->now_ms;
}

const Clock *loop_clock(const Loop *l)
{
    return l->clock;
}

CURLM *loop__multi(Loop *l)
{
    return l->multi;
}

bool loop__performing(const Loop *l)
{
    return l->performing;
}

/* --- timers --- */

static int64_t add_clamped(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void loop_timer_set(Loop *l, LoopTimer *t, int64_t delay_ms)
{
    /* From the clock, not from the turn's start: a slow callback must not make waits shorter. */
    int64_t now = clock_monotonic_ms(l->clock);
    heap_set(&l->timers, &t->heap, add_clamped(now, delay_ms < 0 ? 0 : delay_ms));
}

void loop_timer_stop(Loop *l, LoopTimer *t)
{
    heap_remove(&l->timers, &t->heap);
}

/* A timer that a callback arms with no delay waits for the next turn, so descriptors and transfers
 * get theirs. */
static void run_timers(Loop *l)
{
    for (size_t budget = l->timers.len; budget > 0; budget--) {
        HeapTimer *due = heap_pop_due(&l->timers, l->now_ms);
        if (!due)
            return;
        LoopTimer *t = CONTAINER_OF(due, LoopTimer, heap);
        t->fn(t->userdata);
    }
}

/* --- posts --- */

static void posts_push(Posts *p, LoopFn fn, void *userdata)
{
    if (p->len == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 64;
        p->items = xreallocarray(p->items, p->cap, sizeof(Post));
    }
    p->items[p->len++] = (Post){.fn = fn, .userdata = userdata};
}

int loop_post(Loop *l, LoopFn fn, void *userdata)
{
    int r = 0;
    bool first = false;
    pthread_mutex_lock(&l->lock);
    if (l->closed)
        r = -ESHUTDOWN;
    else if (l->posts.len >= LOOP_POSTS_MAX)
        r = -ENOBUFS;
    else {
        first = l->posts.len == 0;
        posts_push(&l->posts, fn, userdata);
    }
    pthread_mutex_unlock(&l->lock);
    if (first)
        loop_wake(l);
    return r;
}

void loop_wake(Loop *l)
{
    (void)curl_multi_wakeup(l->multi);
}

static bool posts_waiting(Loop *l)
{
    pthread_mutex_lock(&l->lock);
    bool waiting = l->posts.len > 0;
    pthread_mutex_unlock(&l->lock);
    return waiting;
}

static void run_posts(Loop *l)
{
    l->batch.len = 0;
    pthread_mutex_lock(&l->lock);
    Posts taken = l->posts;
    l->posts = l->batch;
    pthread_mutex_unlock(&l->lock);
    l->batch = taken;
    for (size_t i = 0; i < l->batch.len; i++)
        l->batch.items[i].fn(l->batch.items[i].userdata);
}

/* --- descriptors --- */

static FdWatch *fd_find(Loop *l, int fd)
{
    for (size_t i = 0; i < FDS_MAX; i++)
        if (l->fds[i].fn && l->fds[i].fd == fd)
            return &l->fds[i];
    return NULL;
}

static FdWatch *fd_free_slot(Loop *l)
{
    for (size_t i = 0; i < FDS_MAX; i++)
        if (!l->fds[i].fn)
            return &l->fds[i];
    return NULL;
}

int loop_fd_add(Loop *l, int fd, short events, LoopFdFn fn, void *userdata)
{
    if (fd_find(l, fd))
        return -EEXIST;
    FdWatch *slot = fd_free_slot(l);
    if (!slot)
        return -ENOBUFS;
    uint32_t generation = ++l->generation;
    struct epoll_event e = {.events = (uint32_t)(unsigned short)events};
    e.data.u64 = ((uint64_t)generation << 32) | (uint64_t)(slot - l->fds);
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
        return -errno;
    *slot = (FdWatch){.fd = fd, .generation = generation, .fn = fn, .userdata = userdata};
    return 0;
}

void loop_fd_remove(Loop *l, int fd)
{
    FdWatch *w = fd_find(l, fd);
    if (!w)
        return;
    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    *w = (FdWatch){.fd = -1};
}

static void run_fds(Loop *l)
{
    struct epoll_event events[FDS_MAX];
    int n = epoll_wait(l->epoll_fd, events, FDS_MAX, 0);
    for (int i = 0; i < n; i++) {
        FdWatch *w = &l->fds[events[i].data.u64 & UINT32_MAX];
        if (w->fn && w->generation == (uint32_t)(events[i].data.u64 >> 32))
            w->fn(w->fd, events[i].events, w->userdata);
    }
}

/* --- signals --- */

static void signal_ready(int fd, uint32_t events, void *userdata)
{
    (void)events;
    Loop *l = userdata;
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        l->on_signal((int)info.ssi_signo, l->signal_userdata);
}

int loop_signals(Loop *l, const int *signals, size_t n, void (*fn)(int signo, void *userdata),
                 void *userdata, Error **error)
{
    if (l->signal_fd >= 0)
        return error_set(error, ERROR_INTERNAL, "signals are delivered to this loop already");
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return error_set(error, ERROR_INTERNAL, "cannot block signals");
    l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signal_fd < 0)
        return error_set(error, ERROR_INTERNAL, "cannot create a signalfd: %s", strerror(errno));
    l->on_signal = fn;
    l->signal_userdata = userdata;
    int r = loop_fd_add(l, l->signal_fd, EPOLLIN, signal_ready, l);
    if (r < 0)
        return error_set(error, ERROR_INTERNAL, "cannot watch a signalfd: %s", strerror(-r));
    return 0;
}

/* --- turns --- */

static int wait_ms(Loop *l, int64_t max_wait_ms)
{
    if (posts_waiting(l))
        return 0;
    int64_t wait = max_wait_ms < 0 ? 0 : max_wait_ms;
    const HeapTimer *next = heap_peek(&l->timers);
    if (next) {
        int64_t until = next->due_ms - clock_monotonic_ms(l->clock);
        if (until < wait)
            wait = until < 0 ? 0 : until;
    }
    return wait > INT_MAX ? INT_MAX : (int)wait;
}

static void run_transfers(Loop *l)
{
    int running = 0;
    l->performing = true;
    CURLMcode code = curl_multi_perform(l->multi, &running);
    l->performing = false;
    assert(code == CURLM_OK);
    (void)code;

    const CURLMsg *msg;
    int left;
    while ((msg = curl_multi_info_read(l->multi, &left))) {
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode result = msg->data.result;
        void *private = NULL;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &private);
        LoopJob *job = private;
        job->ended(job, result);
    }
}

void loop_turn(Loop *l, int64_t max_wait_ms)
{
    struct curl_waitfd wait_fd = {.fd = l->epoll_fd, .events = CURL_WAIT_POLLIN};
    (void)curl_multi_poll(l->multi, &wait_fd, 1, wait_ms(l, max_wait_ms), NULL);
    l->now_ms = clock_monotonic_ms(l->clock);
    run_transfers(l);
    if (wait_fd.revents)
        run_fds(l);
    run_posts(l);
    run_timers(l);
}

int loop_run(Loop *l)
{
    while (!l->exiting)
        loop_turn(l, INT64_MAX);
    l->exiting = false;
    return l->exit_code;
}

void loop_exit(Loop *l, int code)
{
    l->exiting = true;
    l->exit_code = code;
}
