// Losses of a compressed model, beside the original, over seeded inputs.  The distillation loss of
// a student beside its teacher (Hinton et al., arXiv:1503.02531) is
//
//   L = alpha * T^2 * KL(softmax(t / T) || softmax(s / T)) + (1 - alpha) * CE(argmax t, softmax(s))
//
// T^2 keeps the first term's gradients, which shrink by 1 / T^2, as large at any temperature.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/workload/zoo/compress.h"

struct zoo_distillation {
    double temperature; // > 0
    double alpha;       // 0..1
};

// L of one position's logits, of `classes` >= 1 each, `stride` floats apart.  Logits of any finite
// size give a finite loss.
double zoo_distillation_loss(const struct zoo_distillation *how, const float *teacher,
                             const float *student, size_t classes, size_t stride);

// The first largest of n values that are `stride` apart.
size_t zoo_top1(const float *values, size_t n, size_t stride);

struct zoo_loss_options {
    struct zoo_distillation distillation;
    uint32_t inputs; // > 0
    uint64_t seed;
    bool (*cancelled)(void); // polled; NULL: never
};

// Classes are the channels of outputs that end in a softmax; each pixel counts.
struct zoo_losses {
    size_t positions;      // with classes; 0: the model has none, and the next two are NaN
    double distillation;   // mean over positions
    double agreement;      // share of positions whose most likely class is the original's
    double relative_error; // of all outputs: |difference| / |original|, Euclidean norms
    double max_error;      // the largest difference of an output value; NaN: one is no number
};

// Runs both models on `device`.  Fails as zoo_plan_new, device_network_new and device_network_run
// do, with STATUS_CANCELLED, or STATUS_NOMEM.
MUST_CHECK enum status
zoo_losses_measure(struct zoo_losses *out, struct device *device, const struct zoo_model *model,
                   const struct zoo_weights *weights, const struct zoo_compressed *compressed,
                   const struct zoo_loss_options *options, struct error *err);
