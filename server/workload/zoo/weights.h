// Weights of a small model: seeded, or loaded by name from a GGUF file, and saved to one.
//
// Element i of a seeded tensor comes from u = unit(mix(seed + fnv1a64(name) + (i + 1) * G)): G is
// 0x9e3779b97f4a7c15, mix the finaliser of splitmix64, unit the top 24 bits / 2^24, fnv1a64 the
// 64-bit FNV-1a hash of the tensor's name.  All sums are modulo 2^64.
//   weight of conv, depthwise, dense    (2 u - 1) * sqrt(6 / fan_in)
//   weight of embed                     2 u - 1
//   weights and biases of gru           (2 u - 1) / sqrt(units)
//   bias, norm.bias, norm.mean          (2 u - 1) * 0.1
//   norm.weight, norm.variance          0.5 + u
// Inputs of item n come from the name "input.NAME.n": 2 u - 1, ids floor(u * vocabulary).
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/workload/zoo/zoo_model.h"

// Values of all tensors of a model, in its order.
struct zoo_weights {
    float **values; // values[t]: tensors[t].elements floats
    size_t count;
};

// Allocates values that the caller sets.  Fails with STATUS_NOMEM, as the next does.
MUST_CHECK enum status zoo_weights_new(struct zoo_weights *out, const struct zoo_model *model,
                                       struct error *err);

MUST_CHECK enum status zoo_weights_seeded(struct zoo_weights *out, const struct zoo_model *model,
                                          uint64_t seed, struct error *err);

// Loads tensors of any type of tensor_types.h by name.  Fails as gguf_read does, with
// STATUS_CORRUPT if a tensor is missing, left over, of another shape (both are named) or has a NaN
// or an infinite value (named with its place), and with STATUS_UNSUPPORTED if it has another type.
// `cancelled` as in gguf_read.
MUST_CHECK enum status zoo_weights_load(struct zoo_weights *out, const struct zoo_model *model,
                                        const char *path, bool (*cancelled)(void),
                                        struct error *err);

// Saves the tensors as F32, with the model's name and text as metadata.  Fails as gguf_writer_open
// and gguf_writer_close do.
MUST_CHECK enum status zoo_weights_save(const struct zoo_weights *weights,
                                        const struct zoo_model *model, const char *path,
                                        struct error *err);

void zoo_weights_free(struct zoo_weights *weights); // accepts a zeroed object

// Fills the input `input` of item `item`: floats in the layout (channels, height, width).
void zoo_input_seeded(float *out, const struct zoo_model *model, size_t input, size_t item,
                      uint64_t seed);
