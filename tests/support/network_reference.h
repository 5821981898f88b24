// A plain reference of the steps of small networks, in doubles, and tensors for it.
#pragma once

#include <math.h>

#include "server/device/network.h"
#include "tests/support/test.h"

// Computes the result of `step` in the arena of one item.
void network_step_reference(const struct network_step *step, float *arena);

// `count` floats of -1 to 1, which the caller frees.
float *network_random_floats(uint64_t *seed, size_t count);

// Elements of a tensor; where one of them lies in an arena; and all of them, which lie in `from` as
// (channels, height, width), copied into one.
size_t network_elements(const struct network_tensor *tensor);
size_t network_place_of(const struct network_tensor *tensor, size_t y, size_t x, size_t c);
void network_put(float *arena, const struct network_tensor *tensor, const float *from);

// Fails where `result`, (channels, height, width), is not what the tensor has in the arena.
static inline void network_expect(const struct network_step *step, const struct network_tensor *t,
                                  const float *arena, const float *result, double tolerance)
{
    for (size_t c = 0; c < t->channels; c++)
        for (size_t y = 0; y < t->height; y++)
            for (size_t x = 0; x < t->width; x++) {
                const double wanted = (double)arena[network_place_of(t, y, x, c)];
                const double got = (double)result[(c * t->height + y) * t->width + x];
                if (!(fabs(got - wanted) <= tolerance * (1.0 + fabs(wanted))))
                    fail_msg("op %d, kernel %u x %u: (%zu, %zu, %zu) is %g, not %g", (int)step->op,
                             step->kernel[0], step->kernel[1], y, x, c, got, wanted);
            }
}
