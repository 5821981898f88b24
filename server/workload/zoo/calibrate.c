#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "server/workload/zoo/compress_parts.h"

enum {
    ITEMS = 16, // of inputs
    // The first one: others than those that losses are measured with.
    FIRST_ITEM = 1 << 20,
    SAMPLES = 4096, // values of an item that are looked at for percentiles and errors, at most
};

// The inputs of a model for ITEMS items, and room for what one step reads.
struct calibration {
    const struct zoo_model *model;
    const struct zoo_compression *how;
    float *inputs[ZOO_INPUTS_MAX];
    float *values, *samples, *scratch;
};

static size_t elements_of(const struct network_tensor *tensor)
{
    return (size_t)tensor->height * tensor->width * tensor->channels;
}

static enum status prepare(struct calibration *calibration, const struct network_plan *plan,
                           struct error *err)
{
    const struct zoo_model *model = calibration->model;
    size_t most = 1;
    for (size_t s = 0; s < plan->step_count; s++)
        if (elements_of(&plan->steps[s].in[0]) > most)
            most = elements_of(&plan->steps[s].in[0]);
    calibration->values = calloc(most * ITEMS, sizeof(float));
    calibration->samples = calloc((SAMPLES + 2) * ITEMS, sizeof(float));
    calibration->scratch = calloc((SAMPLES + 2) * ITEMS, sizeof(float));
    bool whole = calibration->values && calibration->samples && calibration->scratch;
    for (size_t i = 0; i < plan->input_count; i++) {
        const size_t elements = elements_of(&plan->inputs[i]);
        calibration->inputs[i] = calloc(elements * ITEMS, sizeof(float));
        whole = whole && calibration->inputs[i];
        for (size_t item = 0; whole && item < ITEMS; item++)
            zoo_input_seeded(calibration->inputs[i] + item * elements, model, i, FIRST_ITEM + item,
                             calibration->how->seed);
    }
    return whole ? STATUS_OK : error_no_memory(err, model->name);
}

// The grid of what step `step` reads: the output of a network of the steps before it.
static enum status measure(struct calibration *calibration, struct device *device,
                           const struct network_plan *plan, size_t step, struct zoo_grid *out,
                           struct error *err)
{
    const size_t elements = elements_of(&plan->steps[step].in[0]) * ITEMS;
    struct network_plan prefix = *plan;
    struct device_network *network;
    // A network has a step, and the first one leaves its input as it is.
    prefix.step_count = step > 0 ? step : 1;
    prefix.outputs = &plan->steps[step].in[0];
    prefix.output_count = 1;
    enum status status = device_network_new(device, &network, &prefix, ITEMS, err);
    if (status != STATUS_OK)
        return status;
    status = device_network_run(network, (const float *const *)calibration->inputs,
                                &calibration->values, ITEMS, err);
    device_network_free(network);
    if (status != STATUS_OK)
        return status;
    // The extremes first, so that the samples cover the range of all values.
    const float *values = calibration->values;
    float *samples = calibration->samples;
    const size_t every = elements / ((size_t)SAMPLES * ITEMS) + 1;
    size_t count = 2;
    samples[0] = samples[1] = values[0];
    for (size_t i = 0; i < elements; i++) {
        samples[0] = values[i] < samples[0] ? values[i] : samples[0];
        samples[1] = values[i] > samples[1] ? values[i] : samples[1];
        if (i % every == 0)
            samples[count++] = values[i];
    }
    struct zoo_quantiser quantiser = calibration->how->quantiser;
    quantiser.bits = 8;
    quantiser.affine = true; // what follows a ReLU has no negative half
    *out = zoo_grid_of(&quantiser, samples, count, calibration->scratch);
    return STATUS_OK;
}

// Layers with the same weights get one grid for the ranges of all, since their steps share it.
static void unite(struct zoo_grid *grids, const struct zoo_model *model)
{
    const struct zoo_quantiser all = {.bits = 8, .affine = true};
    for (size_t i = 0; i < model->layer_count; i++) {
        struct zoo_grid *grid = &grids[i], *owner = &grids[model->layers[i].weights_of];
        if (grid == owner || !(grid->scale > 0.0F))
            continue;
        float scratch[4];
        const float ends[4] = {grid->scale * (float)(grid->least - grid->zero),
                               grid->scale * (float)(grid->most - grid->zero),
                               owner->scale * (float)(owner->least - owner->zero),
                               owner->scale * (float)(owner->most - owner->zero)};
        *owner = zoo_grid_of(&all, ends, 4, scratch);
    }
    for (size_t i = 0; i < model->layer_count; i++)
        grids[i] = grids[model->layers[i].weights_of];
}

static enum status calibrate_steps(struct calibration *calibration, struct device *device,
                                   const struct network_plan *plan, struct zoo_grid *grids,
                                   struct error *err)
{
    const struct zoo_model *model = calibration->model;
    enum status status = prepare(calibration, plan, err);
    for (size_t s = 0; s < plan->step_count && status == STATUS_OK; s++) {
        const struct network_step *step = &plan->steps[s];
        if (calibration->how->cancelled && calibration->how->cancelled())
            return error_set(err, STATUS_CANCELLED, "%s: cancelled", model->name);
        for (size_t i = 0; i < model->layer_count && step->op == NETWORK_CONV; i++)
            if (strcmp(model->layers[i].name, step->name) == 0) {
                status = measure(calibration, device, plan, s, &grids[i], err);
                break;
            }
    }
    unite(grids, model);
    return status;
}

enum status zoo_calibrate(struct zoo_grid *grids, struct device *device,
                          const struct zoo_model *model, const struct zoo_weights *weights,
                          const struct zoo_compression *how, struct error *err)
{
    struct calibration calibration = {.model = model, .how = how};
    struct zoo_plan *plan;
    enum status status = zoo_plan_new(&plan, model, weights, NULL, err);
    if (status != STATUS_OK)
        return status;
    status = calibrate_steps(&calibration, device, zoo_plan_network(plan), grids, err);
    for (size_t i = 0; i < ZOO_INPUTS_MAX; i++)
        free(calibration.inputs[i]);
    free(calibration.values);
    free(calibration.samples);
    free(calibration.scratch);
    zoo_plan_free(plan);
    return status;
}
