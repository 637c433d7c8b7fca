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

#define SEEDS 6
#define STEPS_PER_SEED 20000

static bool number_of(const char *env, int argc, char **argv, int arg, uint64_t *ret)
{
    const char *text = argc > arg ? argv[arg] : getenv(env);

    return text && str_to_u64(text, ret) >= 0;
}

int main(int argc, char **argv)
{
    uint64_t first = (uint64_t)time(NULL), seeds = SEEDS, steps = STEPS_PER_SEED;
    bool trace = getenv("SIM_TRACE") != NULL;
    SimTotals totals = {0};

    if (number_of("SIM_SEED", argc, argv, 1, &first))
        seeds = 1;
    (void)number_of("SIM_STEPS", argc, argv, 2, &steps);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
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
