// Proves the simulator: mistakes of every kind are planted, one at a time, and each
// is found within the first seeds of those that CI runs.

#include "tests/support/sim/sim.h"
#include "tests/support/test.h"

enum { SEEDS = 2000, STEPS = 1000 };

static struct sim sim;

TEST_CASE(test_mistakes_are_found)
{
    for (unsigned plant = SIM_PLANT_NONE + 1; plant < SIM_PLANT_COUNT; plant++) {
        uint64_t seed = 0;
        while (seed < SEEDS && sim_live(&sim, seed, (enum sim_plant)plant, STEPS, UINT64_MAX))
            seed++;
        if (seed == SEEDS)
            fail_msg("a collector or producer that %s was not found",
                     sim_plant_text((enum sim_plant)plant));
        printf("%s: seed %llu: %s\n", sim_plant_text((enum sim_plant)plant),
               (unsigned long long)seed, sim.failure);
    }
}

TEST_MAIN(test_mistakes_are_found)
