// The delivery protocol against the world: see tests/support/sim/sim.h.  Lives of a
// run, each from one seed, with the faults that the seed chooses; after every step
// all of the world is recounted.
//
//   INFERSTAT_TEST_VOLUME=N   N times 1000 seeds, from 0
//   INFERSTAT_SIM_SEED=N      this seed alone, told step by step
//   INFERSTAT_SIM_STEPS=N     steps with faults of each (default 1000)

#include "tests/support/sim/sim.h"
#include "tests/support/test.h"

enum {
    SEEDS = 1000,
    STEPS = 1000,
    TOLD = 150, // steps of a life before it fails
};

static struct sim sim;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

// Over all lives.
static struct {
    uint64_t lives, steps;
    uint64_t happened[SIM_FAULT_COUNT], outcomes[SIM_OUTCOME_COUNT];
} total;

static void count_life(void)
{
    total.lives++;
    total.steps += sim.steps;
    for (unsigned i = 0; i < SIM_FAULT_COUNT; i++)
        total.happened[i] += sim.happened[i];
    for (unsigned i = 0; i < SIM_OUTCOME_COUNT; i++)
        total.outcomes[i] += sim.outcomes[i];
}

static void tell_what_happened(void)
{
    printf("%llu lives, %llu steps\nfaults:", (unsigned long long)total.lives,
           (unsigned long long)total.steps);
    for (unsigned i = 0; i < SIM_FAULT_COUNT; i++)
        printf(" %s %llu", sim_fault_name((enum sim_fault)i),
               (unsigned long long)total.happened[i]);
    printf("\noutcomes:");
    for (unsigned i = 0; i < SIM_OUTCOME_COUNT; i++)
        printf(" %s %llu", sim_outcome_name((enum sim_outcome)i),
               (unsigned long long)total.outcomes[i]);
    printf("\n");
}

// In so many lives every kind of fault was survived, with every outcome.
static void check_that_all_happened(void)
{
    for (unsigned i = 0; i < SIM_FAULT_COUNT; i++)
        if (total.happened[i] == 0)
            fail_msg("no %s in all these lives", sim_fault_name((enum sim_fault)i));
    for (unsigned i = 0; i < SIM_OUTCOME_COUNT; i++)
        if (total.outcomes[i] == 0)
            fail_msg("no %s in all these lives", sim_outcome_name((enum sim_outcome)i));
}

TEST_CASE(test_lives)
{
    const bool alone = getenv("INFERSTAT_SIM_SEED") != NULL;
    const uint64_t first = number_from("INFERSTAT_SIM_SEED", 0);
    const uint64_t count = alone ? 1 : test_volume(SEEDS);
    const uint64_t steps_each = number_from("INFERSTAT_SIM_STEPS", STEPS);
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (!sim_live(&sim, seed, SIM_PLANT_NONE, steps_each, alone ? 0 : UINT64_MAX)) {
            const uint64_t told = sim.steps > TOLD ? sim.steps - TOLD : 0;
            if (!alone)
                (void)sim_live(&sim, seed, SIM_PLANT_NONE, steps_each, told);
            fail_msg("seed %llu: %s (replay: INFERSTAT_SIM_SEED=%llu test_delivery_sim)",
                     (unsigned long long)seed, sim.failure, (unsigned long long)seed);
        }
        count_life();
    }
    tell_what_happened();
    if (!alone)
        check_that_all_happened();
}

TEST_MAIN(test_lives)
