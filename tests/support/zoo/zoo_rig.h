// A small model with its weights and seeded inputs, planned, on a device.
#pragma once

#include "server/device/network.h"
#include "server/workload/zoo/plan.h"
#include "server/workload/zoo/weights.h"
#include "server/workload/zoo/zoo_model.h"

struct zoo_rig {
    struct zoo_model *model;
    struct zoo_weights weights;
    struct zoo_plan *plan;
    struct device *device;
    struct device_network *network;
    size_t items;
    float *inputs[ZOO_INPUTS_MAX], *outputs[ZOO_OUTPUTS_MAX]; // of all items
};

struct zoo_rig_options {
    const char *model;   // of a model that is compiled in, or the path of a description
    const char *weights; // GGUF file; NULL: seeded
    uint64_t seed;
    size_t items;
    struct device_options device;
};

// Parses the model called `name`, or the description at the path `name`.
MUST_CHECK enum status zoo_rig_model(struct zoo_model **out, const char *name, struct error *err);

// The caller closes `rig` also after a failure.
MUST_CHECK enum status zoo_rig_open(struct zoo_rig *rig, const struct zoo_rig_options *options,
                                    struct error *err);
void zoo_rig_close(struct zoo_rig *rig); // accepts a zeroed object

// Computes the outputs of all items.
MUST_CHECK enum status zoo_rig_run(struct zoo_rig *rig, struct error *err);

// Computes the outputs of one item by network_step_reference.
MUST_CHECK enum status zoo_rig_reference(struct zoo_rig *rig, size_t item, struct error *err);

size_t zoo_rig_elements(const struct zoo_rig *rig, size_t layer); // of its result
