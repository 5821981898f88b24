// Planner of small models: folds norms into weights, fuses activations, residual additions and
// concatenations into steps, and places all activations in one arena whose parts are reused.
#pragma once

#include "common/core/base/error.h"
#include "server/device/network.h"
#include "server/workload/zoo/zoo_model.h"
#include "server/workload/zoo/weights.h"

struct zoo_plan;

// Integers for a layer's weights, from compression; steps of other layers stay F32.
struct zoo_layer_int8 {
    const int8_t *values; // in the layout of the layer's weight tensor
    const float *scales;  // one per output channel
    const int8_t *zeros;  // NULL: symmetric
    float input_scale;
    int input_zero;
};

// Plans the model.  `int8` has one entry per layer, of which those without `values` are F32; or it
// is NULL.  Scales of norms are folded into scales of integers.  `model`, `weights` and `int8` are
// borrowed until the call returns.  Fails with STATUS_NOMEM.
MUST_CHECK enum status zoo_plan_new(struct zoo_plan **out, const struct zoo_model *model,
                                    const struct zoo_weights *weights,
                                    const struct zoo_layer_int8 *int8, struct error *err);

// Borrowed until zoo_plan_free.
const struct network_plan *zoo_plan_network(const struct zoo_plan *plan);

void zoo_plan_free(struct zoo_plan *plan); // accepts NULL
