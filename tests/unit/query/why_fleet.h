// A store with a fleet of three hosts that answer requests of one model, half of them with former
// days, for the tests of WHY; causes are planted in its window.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/store/why/why.h"

enum { WHY_FLEET_HOSTS = 3 };

// How requests arrive and what they ask for.  Their times spread by a factor of 1.5 at one standard
// deviation, beside that:
enum why_noise {
    WHY_STEADY,      // at any time, one every 2 s and host
    WHY_HEAVY_TAILS, // one of 20 is slower by a Pareto factor of shape 1.2, up to 100
    WHY_DAILY,       // up to 60 % more and less often over the day
    WHY_BURSTS,      // six times as often for 20 s of every 97 s
    WHY_MIXTURE,     // three of ten have prompts of 6,000 tokens and short answers
    WHY_OF_ITEMS,    // of items, without tokens
    WHY_CLOSED_LOOP, // from clients that wait for their answers
    WHY_NOISES
};

struct why_planted {
    bool is[WHY_CAUSE_COUNT];
    bool on[WHY_FLEET_HOSTS];
    int64_t since_ns; // within the window
    enum why_noise noise;
    double factor; // of each cause; 0: 1.6 to 3, by its kind
};

extern uint64_t why_fleet_seed;
double why_fleet_uniform(void); // in [0, 1)

// Fixtures around each test.
int why_fleet_set_up(void **state);
int why_fleet_tear_down(void **state);

// Replaces the fleet.  The window is the 10 minutes before why_fleet_as_of.
void why_fleet_make(const struct why_planted *planted);
int64_t why_fleet_as_of(void);

// Adds a run of a host, the `which`-th; its id.
enum { WHY_FLEET_RUNS = 32 };
int64_t why_fleet_add_run(int host, int which, int64_t since_ns, int64_t until_ns);
