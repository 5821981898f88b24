// A plain reference of the steps of small networks, in doubles.
#pragma once

#include "server/device/network.h"

// Computes the result of `step` in the arena of one item.
void network_step_reference(const struct network_step *step, float *arena);
