// A plain reference of the steps of small networks, in doubles.
#ifndef INFERSTAT_TESTS_SUPPORT_NETWORK_REFERENCE_H
#define INFERSTAT_TESTS_SUPPORT_NETWORK_REFERENCE_H

#include "server/device/network.h"

// Computes the result of `step` in the arena of one item.
void network_step_reference(const struct network_step *step, float *arena);

#endif
