// Convolutions in integers of 8 bits, for the CPU back end's networks (network.h): a step's input
// is rounded once, and products with the weights are summed in integers of 32 bits.  The sums are
// exact, so that every table gives the same bits.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/network.h"

enum {
    INT8_OUTPUTS = 16,   // of a block: output channels that a tile computes
    INT8_PIXELS_MAX = 12 // of a tile
};

// The sums of a tile: sums[p][o] = sum_i in[p][i] * weights[o][i], over the runs of a kernel.  The
// integers of a run lie next to each other, in groups of `unit`: those of the input are int16_t for
// a unit of 2, uint8_t for 4; `weights` are (runs, groups, INT8_OUTPUTS, unit).
struct int8_tile {
    const void *in[INT8_PIXELS_MAX]; // where each pixel's kernel begins
    const uint32_t *runs;            // begin of each run, in elements from there
    size_t run_count, groups;        // groups of each run
    const int8_t *weights;
    size_t outputs; // sums needed: 1..INT8_OUTPUTS
};

// Where a tile's sums go: out[p][o] = clamp((sums[p][o] - offsets[o]) * scales[o] + bias[o] +
// add[p][o], least, most), for `outputs` channels.
struct int8_results {
    float *out[INT8_PIXELS_MAX];
    const float *add[INT8_PIXELS_MAX]; // NULL: nothing is added
    const int32_t *offsets;
    const float *scales, *bias;
    float least, most;
    size_t outputs;
};

struct int8_kernels {
    const char *name;
    size_t unit;   // 2 or 4
    size_t pixels; // of `tile`: 1..INT8_PIXELS_MAX
    void (*tile)(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS]);
    void (*pixel)(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS]); // one pixel
    // Rounds n floats to x * inverse + zero, within -128..127.  For a unit of 2, stores the
    // difference from `zero`; for 4 stores it plus 128.
    void (*round)(void *out, const float *in, size_t n, float inverse, int zero);
    void (*finish)(const struct int8_results *results, int32_t sums[][INT8_OUTPUTS], size_t pixels);
};

extern const struct int8_kernels int8_kernels_plain;
#if defined(__x86_64__)
// NULL if the processor lacks AVX2, or AVX-512 with VNNI.
const struct int8_kernels *int8_kernels_avx2(void);
const struct int8_kernels *int8_kernels_vnni(void);
#endif
// The fastest of them.
const struct int8_kernels *int8_kernels_best(void);

// A step with its weights in the order of a table's kernels.
struct int8_conv;

// Takes a CONV step with `int8`, whose tensors must stay where they are in the arena.  Fails with
// STATUS_UNSUPPORTED if its sums could overflow (NETWORK_INT8_PRODUCTS_MAX), or STATUS_NOMEM.
MUST_CHECK enum status int8_conv_new(struct int8_conv **out, const struct network_step *step,
                                     const struct int8_kernels *kernels, struct error *err);
void int8_conv_free(struct int8_conv *conv); // accepts NULL

size_t int8_conv_weight_bytes(const struct int8_conv *conv);

// Bytes for the rounded input.
size_t int8_conv_scratch(const struct int8_conv *conv);

// Rounds the input, then computes output pixels first..last - 1 (row by row), with the addition and
// the activation if that is linear, ReLU or ReLU6.  Different threads may compute different pixels
// after one has rounded.
void int8_conv_round(const struct int8_conv *conv, void *scratch, const float *arena);
void int8_conv_run(const struct int8_conv *conv, const void *scratch, float *arena, size_t first,
                   size_t last);
