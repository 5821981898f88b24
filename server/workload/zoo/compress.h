// Compression of small models: the weights as integers of 8 or 4 bits, as products of narrow
// matrices, or with the smallest set to zero.  The result is a model of its own.
//
// Convolutions and dense layers of a model with integers of 8 bits run in integers, their inputs
// rounded to the range seen over seeded inputs; other layers, and all layers of other results, run
// in F32 with the weights that the stored ones stand for.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/workload/zoo/plan.h"
#include "server/workload/zoo/quantise.h"

enum zoo_method {
    ZOO_UNCOMPRESSED,
    ZOO_INT8,
    ZOO_INT4,
    // W = U S V': a convolution or dense layer becomes one with the rows of V' and a 1 x 1
    // convolution or dense layer with U S, where these have fewer weights.
    ZOO_LOW_RANK,
    // Each tensor loses the same share: of a common threshold, layers with many inputs, whose
    // weights are small, would lose all.
    ZOO_PRUNE,
};

struct zoo_compression {
    enum zoo_method method;
    double amount; // rank (from 1 on) or least share of the energy (below 1); share of the weights
    bool per_tensor; // one scale a tensor, not one for each of its rows (output channels)
    bool simulate;   // integers of 8 bits run in F32, too
    struct zoo_quantiser quantiser; // of the weights; `bits` is not used
    uint64_t seed;                  // of the inputs that give the ranges of activations
    const char *lapacke;            // as of svd_open
    bool (*cancelled)(void);        // polled; NULL: never
};

// Parses "int8", "int4", "lowrank:8" (rank), "lowrank:0.9" (share of the energy) or "prune:0.5"
// (share of the weights) into `method` and `amount`.  Fails with STATUS_INVALID.
MUST_CHECK enum status zoo_compression_parse(struct zoo_compression *out, const char *text,
                                             struct error *err);

// Parses "minmax", "percentile:99.9" or "mse".  Fails with STATUS_INVALID.
MUST_CHECK enum status zoo_clip_parse(struct zoo_quantiser *out, const char *text,
                                      struct error *err);

// A layer that became two.
struct zoo_factored {
    char name[ZOO_NAME_SIZE];
    size_t rank;   // 0: the layer is as it was
    double energy; // kept: the share of the squared singular values
};

struct zoo_integers;

struct zoo_compressed {
    struct zoo_model *model; // named MODEL-int8, MODEL-lowrank-8, ...
    struct zoo_weights weights;
    struct zoo_layer_int8 *int8;   // one per layer; NULL: all F32
    struct zoo_integers *integers; // that `int8` points to, one per layer
    struct zoo_factored *factored; // of each of the original's layers
    size_t changed;                // layers
    // Of the stored weights: with scales, zeros and bitmaps; norms are folded into a bias.
    size_t original_bytes, bytes;
};

// Compresses a model.  `device` computes the activations of a model that is to run in integers.
// Fails with STATUS_INVALID if no layer would change, as svd_open, svd_compute, zoo_plan_new,
// device_network_new and device_network_run do, with STATUS_CANCELLED, or STATUS_NOMEM.
MUST_CHECK enum status zoo_compress(struct zoo_compressed *out, struct device *device,
                                    const struct zoo_model *model,
                                    const struct zoo_weights *weights,
                                    const struct zoo_compression *how, struct error *err);

void zoo_compressed_free(struct zoo_compressed *compressed); // accepts a zeroed object
