// Internal parts of the planner: the draft of a plan (plan.c), the weights of its steps
// (plan_fold.c), and the memory of its values (plan_arena.c).
#pragma once

#include "server/workload/zoo/plan.h"

#define NO_INDEX SIZE_MAX

// A result in the arena.  A value of a concatenation is a slice of its parent's channels.
struct plan_value {
    struct zoo_shape shape;
    size_t step;   // that writes it; NO_INDEX: an input or a concatenation
    size_t parent; // NO_INDEX: it has memory of its own
    size_t channel;
    bool is_parent;
    uint32_t border[4];
    size_t first, last; // times of its first write and its last read: step + 1, 0 for inputs
    size_t offset;
};

struct plan_step {
    struct network_step step; // its tensors are set last
    size_t in[2], out;        // values
    size_t layer;
};

// Folded weights, shared by steps with the same layers of weights.
struct plan_weights {
    size_t layer; // the owner
    uint32_t kernel[2];
    float *weights, *bias;
    struct network_int8 *int8;
    int8_t *values, *zeros;
    float *scales;
};

struct zoo_plan {
    struct network_plan network;
    struct network_step *network_steps;
    struct network_tensor inputs[ZOO_INPUTS_MAX], outputs[ZOO_OUTPUTS_MAX];
    struct plan_value *values;
    size_t value_count;
    struct plan_step *steps;
    size_t step_count;
    struct plan_weights *weights;
    size_t weight_count;
};

// Gives every value its border, times and place in the arena.  Fails with STATUS_NOMEM.
MUST_CHECK enum status zoo_plan_place(struct zoo_plan *plan, const struct zoo_model *model,
                                      const size_t *value_of, struct error *err);

// Sets weights and biases of all steps.  Fails with STATUS_NOMEM.
MUST_CHECK enum status zoo_plan_fold(struct zoo_plan *plan, const struct zoo_model *model,
                                     const struct zoo_weights *weights,
                                     const struct zoo_layer_int8 *int8, struct error *err);
