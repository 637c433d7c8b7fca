/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/sim.h"

#include "common/base/str.h"
#include "controller/names.h"
#include "tests/sim/check.h"
#include "tests/sim/line.h"
#include "tests/sim/server.h"
#include "tests/sim/users.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define WALL_START_MS (INT64_C(1790000000) * 1000)

typedef struct SimEvent {
    HeapTimer timer; /* monotonic µs */
    SimFn fn;
    void *arg;
} SimEvent;

int64_t sim_mono_ms(const Sim *sim)
{
    return sim->mono_us / 1000;
}

int64_t sim_wall_ms(const Sim *sim)
{
    return sim_mono_ms(sim) + sim->wall_offset_ms;
}

void sim_at_us(Sim *sim, int64_t mono_us, SimFn fn, void *arg)
{
    SimEvent *e;

    if (sim->ending) {
        free(arg);
        return;
    }
    e = xnew(SimEvent);
    e->fn = fn;
    e->arg = arg;
    heap_set(&sim->timers, &e->timer, mono_us);
}

void sim_after(Sim *sim, int64_t ms, SimFn fn, void *arg)
{
    sim_at_us(sim, sim->mono_us + ms * 1000, fn, arg);
}

uint64_t sim_random(Sim *sim, uint64_t below)
{
    return random_next(&sim->random) % below;
}

int64_t sim_between(Sim *sim, int64_t min, int64_t max)
{
    return min + (int64_t)sim_random(sim, (uint64_t)(max - min) + 1);
}

bool sim_chance(Sim *sim, unsigned per_mille)
{
    return sim_random(sim, 1000) < per_mille;
}

bool sim_fault(Sim *sim, unsigned per_mille)
{
    return !sim->quiet && sim_chance(sim, per_mille);
}

_printf_(3, 0) static void report(const Sim *sim, const char *word, const char *fmt, va_list ap)
{
    (void)fprintf(stderr, "[seed %" PRIu64 " step %" PRIu64 " t=%.3fs] %s", sim->seed, sim->steps,
                  (double)sim->mono_us / 1e6, word);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
}

void sim_fail(const Sim *sim, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report(sim, "FAILED: ", fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "replay: SIM_SEED=%" PRIu64 " (and SIM_TRACE=1 to watch)\n", sim->seed);
    _exit(1);
}

void sim_trace(const Sim *sim, const char *fmt, ...)
{
    va_list ap;

    if (!sim->trace)
        return;
    va_start(ap, fmt);
    report(sim, "", fmt, ap);
    va_end(ap);
}

PlanConfig sim_plan_config(void)
{
    PlanConfig c = plan_config_default;

    c.readiness_grace_ms = 20 * 1000;
    c.unschedulable_recheck_ms = 5 * 1000;
    c.pool_batch_max = 4;
    return c;
}

static void misfortunes(Sim *sim)
{
    if (sim_fault(sim, sim->faults.restart))
        line_restart(sim);
    if (sim_fault(sim, sim->faults.watch_cut))
        line_cut_watch(sim, (ObjKind)sim_random(sim, OBJ_KIND_MAX));
    if (sim_fault(sim, sim->faults.clock_jump) && sim_chance(sim, 100)) {
        sim->wall_offset_ms += sim_between(sim, -30000, 30000);
        sim->jumped_ms = sim_mono_ms(sim);
        sim_trace(sim, "the wall clock jumps");
        check_clock_jump(sim);
    }
}

/* Takes the next event; false where there is none before the instant. */
static bool step(Sim *sim, int64_t until_us)
{
    HeapTimer *t = heap_peek(&sim->timers);
    SimEvent *e;

    if (!t || t->due_ms > until_us)
        return false;
    t = heap_pop_due(&sim->timers, t->due_ms);
    e = CONTAINER_OF(t, SimEvent, timer);
    if (t->due_ms > sim->mono_us)
        sim->mono_us = t->due_ms;
    sim->steps++;
    e->fn(sim, e->arg);
    free(e->arg);
    free(e);
    line_step(sim);
    check_step(sim);
    return true;
}

static void drain(Sim *sim)
{
    HeapTimer *t;

    sim->ending = true;
    if (line_reconciler(sim))
        line_restart(sim); /* the process is gone, and none follows */
    while ((t = heap_peek(&sim->timers))) {
        SimEvent *e;
        t = heap_pop_due(&sim->timers, t->due_ms);
        e = CONTAINER_OF(t, SimEvent, timer);
        e->fn(sim, e->arg);
        free(e->arg);
        free(e);
    }
    heap_done(&sim->timers);
}

/* Trouble for a while, then peace until everything is as it should be. */
static void episode(Sim *sim, uint64_t steps)
{
    uint64_t end = sim->steps + steps;

    sim->quiet = false;
    sim_after(sim, 1, users_act, NULL);
    while (sim->steps < end && step(sim, INT64_MAX))
        misfortunes(sim);
    sim->quiet = true;
    sim_trace(sim, "all is quiet");
    int64_t until = sim->mono_us + INT64_C(300) * 1000 * 1000;
    while (step(sim, until))
        continue;
    /* What is read again every so often may be on its way just now. */
    while (line_reconciler(sim) && reconciler_stats(line_reconciler(sim)).inflight > 0 &&
           step(sim, until + 1000 * 1000))
        continue;
    check_settled(sim);
}

static const Faults mildness[] = {
    {0},
    {.pod_fails = 20, .watch_cut = 1},
    {.refuse = 20,
     .conflict = 20,
     .retry = 20,
     .error = 20,
     .lose = 20,
     .watch_cut = 2,
     .restart = 1,
     .clock_jump = 2,
     .pod_fails = 50},
    {.refuse = 60,
     .conflict = 100,
     .retry = 60,
     .error = 60,
     .lose = 100,
     .watch_cut = 4,
     .restart = 4,
     .clock_jump = 5,
     .pod_fails = 100},
};

void sim_run(uint64_t seed, uint64_t steps, bool trace, SimTotals *totals)
{
    Sim sim = {
        .seed = seed,
        .random = seed,
        .wall_offset_ms = WALL_START_MS,
        .trace = trace,
        .jumped_ms = -1000000,
    };

    sim.server = server_new();
    sim.check = check_new();
    sim.line = line_new(&sim);
    users_start(&sim);
    for (size_t i = 0; sim.steps < steps; i++) {
        sim.faults = mildness[(seed + i) % ARRAY_SIZE(mildness)];
        episode(&sim, 3000);
    }
    check_totals(&sim, totals);
    totals->steps += sim.steps;
    drain(&sim);
    sim.line = line_free(sim.line);
    sim.check = check_free(sim.check);
    sim.server = server_free(sim.server);
}
