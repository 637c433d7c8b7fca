/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in one process with a clock of its own: an API server (server.h), kubelet and garbage
 * collector (cluster.h), people and gateways (users.h), and the controller's reconciler behind a
 * line that loses, delays and repeats (line.h). Everything that happens is an event on one heap; a
 * step is one event. One seed gives one run. check.h says what must hold after each step.
 */
#pragma once

#include "common/base/hashmap.h"
#include "common/base/heap.h"
#include "controller/reconciler.h"
#include "tests/sim/doc.h"

typedef struct Sim Sim;
typedef struct Server Server;
typedef struct Line Line;
typedef struct Check Check;
typedef struct Users Users;

typedef void (*SimFn)(Sim *sim, void *arg);

/* How much goes wrong, in parts of a thousand of what could. */
typedef struct Faults {
    unsigned refuse, conflict, retry, error, lose, watch_cut, restart, clock_jump, pod_fails;
} Faults;

struct Sim {
    uint64_t seed, random;
    int64_t mono_us;        /* since the start */
    int64_t wall_offset_ms; /* wall clock − monotonic */
    Heap timers;
    uint64_t steps, max_steps;
    bool quiet;        /* no faults, no users: things must settle */
    bool ending;       /* nothing new is scheduled */
    int64_t jumped_ms; /* when the wall clock last jumped (monotonic) */
    Faults faults;
    Server *server;
    Line *line;
    Check *check;
    Users *users;
    bool trace;
};

int64_t sim_wall_ms(const Sim *sim);
int64_t sim_mono_ms(const Sim *sim);
/* Calls fn after so many ms; arg is the callee's. */
void sim_after(Sim *sim, int64_t ms, SimFn fn, void *arg);
void sim_at_us(Sim *sim, int64_t mono_us, SimFn fn, void *arg);
uint64_t sim_random(Sim *sim, uint64_t below);
/* Between min and max, both included. */
int64_t sim_between(Sim *sim, int64_t min, int64_t max);
bool sim_chance(Sim *sim, unsigned per_mille);
/* A chance that is none while the simulation is to settle. */
bool sim_fault(Sim *sim, unsigned per_mille);
/* Prints seed, step and the message; ends the process with status 1. */
_noreturn_ void sim_fail(const Sim *sim, const char *fmt, ...) _printf_(2, 3);
void sim_trace(const Sim *sim, const char *fmt, ...) _printf_(2, 3);

/* The planner's settings, with shorter patience. */
PlanConfig sim_plan_config(void);

typedef enum Writer { WRITER_CONTROLLER, WRITER_USER, WRITER_SYSTEM } Writer;

typedef struct SimTotals {
    uint64_t steps, writes, restarts, watch_cuts;
    uint64_t warm, cold, expired, orphans;
    uint64_t budget_checked; /* warm claims whose writes were counted undisturbed */
    uint64_t budget_max, stages_max, events_max;
    int64_t late_max_ms, late_quiet_max_ms;
} SimTotals;
void sim_run(uint64_t seed, uint64_t steps, bool trace, SimTotals *totals);
void sim_totals_add(SimTotals *sum, const SimTotals *one);
void sim_totals_print(const SimTotals *t);
