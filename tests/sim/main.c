/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the simulation with several seeds. SIM_SEED (or the first argument) runs one seed alone,
 * SIM_STEPS (or the second) sets the steps a seed, SIM_TRACE=1 prints what happens.
 */
#include "common/base/str.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* A run takes seeds until it has done so many steps. */
#define STEPS_MIN 100000
#define STEPS_PER_SEED 11000
#define LONG_FACTOR 5

/* Where an allocation came from is of no interest in a run that has no errors, and finding out
 * takes a fifth of the time under ASan; a failing seed can be replayed with more. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
    return "malloc_context_size=2:max_malloc_fill_size=64:quarantine_size_mb=16";
}

static bool number_of(const char *env, int argc, char **argv, int arg, uint64_t *ret)
{
    const char *text = argc > arg ? argv[arg] : getenv(env);

    return text && str_to_u64(text, ret) >= 0;
}

/* The same seeds each time, so that a failure is the change's; a long run goes on with new ones. */
static bool is_long(void)
{
    return str_eq(getenv("SANDBOX_TESTS_MODE"), "long");
}

static void run_one(uint64_t seed, uint64_t steps, SimTotals *totals)
{
    SimTotals one = {0};

    (void)printf("seed %" PRIu64 ": ", seed);
    (void)fflush(stdout);
    sim_run(seed, steps, getenv("SIM_TRACE") != NULL, &one);
    sim_totals_print(&one);
    sim_totals_add(totals, &one);
}

int main(int argc, char **argv)
{
    uint64_t seed, steps = STEPS_PER_SEED, fresh = (uint64_t)time(NULL) * 1000;
    SimTotals totals = {0};

    (void)number_of("SIM_STEPS", argc, argv, 2, &steps);
    if (number_of("SIM_SEED", argc, argv, 1, &seed)) {
        run_one(seed, steps, &totals);
        return 0;
    }
    for (seed = 1; totals.steps < STEPS_MIN; seed++)
        run_one(seed, steps, &totals);
    for (seed = fresh; is_long() && totals.steps < STEPS_MIN * LONG_FACTOR; seed++)
        run_one(seed, steps, &totals);
    (void)printf("in all: ");
    sim_totals_print(&totals);
    return 0;
}
