// A planned network on a device, with seeded inputs and the outputs of a batch of items.  One
// thread uses a batch.
#pragma once

#include "common/core/base/error.h"
#include "server/device/network.h"
#include "server/workload/zoo/zoo_model.h"

struct zoo_batch {
    struct device_network *network;
    size_t items;
    float *inputs[ZOO_INPUTS_MAX], *outputs[ZOO_OUTPUTS_MAX]; // (items, channels, height, width)
};

// Values of an item in an input or output of the network.
size_t zoo_tensor_elements(const struct network_tensor *tensor);

// `plan` is borrowed until the call returns, `device` until zoo_batch_deinit.  Fails as
// device_network_new does, or with STATUS_NOMEM; `*out` must be deinitialised all the same.
MUST_CHECK enum status zoo_batch_init(struct zoo_batch *out, struct device *device,
                                      const struct network_plan *plan, size_t items,
                                      struct error *err);
void zoo_batch_deinit(struct zoo_batch *batch); // accepts a zeroed object

// Fills the inputs with the items from `first` on.
void zoo_batch_seed(struct zoo_batch *batch, const struct zoo_model *model, size_t first,
                    uint64_t seed);

// Computes the outputs.  Fails as device_network_run does.
MUST_CHECK enum status zoo_batch_run(struct zoo_batch *batch, struct error *err);
