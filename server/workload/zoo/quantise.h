// Compression of tensors: pruning by magnitude, and quantisation of floats to integers of 2 to 8
// bits:
//
//   q = clamp(round_to_even(x / scale) + zero, least, most)        x' = scale * (q - zero)
//
// Symmetric: zero is 0, integers are -(2^(bits-1) - 1) .. 2^(bits-1) - 1.  Affine: all 2^bits
// integers, and `zero` such that 0.0 is exact, which padding and ReLU rely on.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The range of values that the integers cover.
enum zoo_clip {
    ZOO_CLIP_MINMAX,     // all values
    ZOO_CLIP_PERCENTILE, // `percentile` % of them; affine: half of the rest at either end
    ZOO_CLIP_MSE,        // the range with the least squared error, of 49 from 1/4 of all values on
};

struct zoo_quantiser {
    unsigned int bits; // 2..8
    bool affine;
    enum zoo_clip clip;
    double percentile; // above 50, at most 100
};

struct zoo_grid {
    float scale; // > 0
    int zero, least, most;
};

// The grid for n > 0 finite values.  Sorts a copy in `scratch` (n floats) for percentiles.
struct zoo_grid zoo_grid_of(const struct zoo_quantiser *how, const float *values, size_t n,
                            float *scratch);

// The integers of n values.
void zoo_quantise(const struct zoo_grid *grid, int8_t *out, const float *values, size_t n);

// x' of n values.  `out` may be `values`.
void zoo_round_to_grid(const struct zoo_grid *grid, float *out, const float *values, size_t n);

// Sets the floor(share * n) values with the smallest magnitudes to zero, of equal ones the first.
// 0 <= share < 1.  Sorts a copy in `scratch` (n floats).
void zoo_prune(float *values, size_t n, double share, float *scratch);

// Bytes of n values of which some are zeros: a bitmap, and 4 bytes for each other value.
size_t zoo_sparse_bytes(const float *values, size_t n);
