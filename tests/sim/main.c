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

/* In a long run the second half are new ones. */
#define SEEDS 8
#define STEPS_PER_SEED 11000

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

/* The same seeds each time, so that a failure is the change's; a long run tries new ones too. */
static bool wants_fresh_seeds(void)
{
    return str_eq(getenv("SANDBOX_TESTS_MODE"), "long");
}

int main(int argc, char **argv)
{
    uint64_t first = 1, seeds = SEEDS, steps = STEPS_PER_SEED;
    bool trace = getenv("SIM_TRACE") != NULL, fresh = wants_fresh_seeds();
    SimTotals totals = {0};

    if (number_of("SIM_SEED", argc, argv, 1, &first))
        seeds = 1;
    (void)number_of("SIM_STEPS", argc, argv, 2, &steps);
    for (uint64_t i = 0; i < seeds; i++) {
        uint64_t seed = i < SEEDS / 2 || !fresh ? first + i : (uint64_t)time(NULL) * SEEDS + i;
        (void)printf("seed %" PRIu64 ": ", seed);
        (void)fflush(stdout);
        SimTotals one = {0};
        sim_run(seed, steps, trace, &one);
        sim_totals_print(&one);
        sim_totals_add(&totals, &one);
    }
    (void)printf("in all: ");
    sim_totals_print(&totals);
    return 0;
}
