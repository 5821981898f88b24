// Losses of a compressed model, beside the original, over seeded inputs.
#ifndef INFERSTAT_SERVER_WORKLOAD_ZOO_LOSSES_H
#define INFERSTAT_SERVER_WORKLOAD_ZOO_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/workload/zoo/compress.h"
#include "server/workload/zoo/distillation.h"

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
    double max_error;      // the largest difference of an output value
};

// Runs both models on `device`.  Fails as zoo_plan_new, device_network_new and device_network_run
// do, with STATUS_CANCELLED, or STATUS_NOMEM.
MUST_CHECK enum status
zoo_losses_measure(struct zoo_losses *out, struct device *device, const struct zoo_model *model,
                   const struct zoo_weights *weights, const struct zoo_compressed *compressed,
                   const struct zoo_loss_options *options, struct error *err);

#endif
