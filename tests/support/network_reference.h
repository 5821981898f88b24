// A plain reference of the steps of small networks, in doubles, and tensors for it.
#pragma once

#include "server/device/network.h"

// Computes the result of `step` in the arena of one item.
void network_step_reference(const struct network_step *step, float *arena);

// `count` floats of -1 to 1, which the caller frees.
float *network_random_floats(uint64_t *seed, size_t count);

// Elements of a tensor; where one of them lies in an arena; and all of them, which lie in `from` as
// (channels, height, width), copied into one.
size_t network_elements(const struct network_tensor *tensor);
size_t network_place_of(const struct network_tensor *tensor, size_t y, size_t x, size_t c);
void network_put(float *arena, const struct network_tensor *tensor, const float *from);
