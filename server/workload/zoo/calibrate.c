#include <stdlib.h>
#include <string.h>

#include "server/workload/zoo/compress_parts.h"
#include "server/workload/zoo/zoo_batch.h"

enum {
    ITEMS = 16, // of inputs
    // The first one: others than those that losses are measured with.
    FIRST_ITEM = 1 << 20,
    SAMPLES = 4096, // values of an item that are looked at for percentiles and errors, at most
};

// What a step read for ITEMS items, as the grid of its extremes and samples.
static enum status measure(struct zoo_grid *out, const struct zoo_compression *how,
                           const float *values, size_t count, struct error *err)
{
    struct zoo_quantiser quantiser = how->quantiser;
    const size_t every = count / ((size_t)SAMPLES * ITEMS) + 1;
    float *samples = calloc(2 * (SAMPLES + 2) * ITEMS, sizeof *samples);
    if (!samples)
        return error_no_memory(err, "calibration");
    // The extremes first, so that the samples cover the range of all values.
    samples[0] = samples[1] = values[0];
    size_t kept = 2;
    for (size_t i = 0; i < count; i++) {
        samples[0] = values[i] < samples[0] ? values[i] : samples[0];
        samples[1] = values[i] > samples[1] ? values[i] : samples[1];
        if (i % every == 0)
            samples[kept++] = values[i];
    }
    quantiser.bits = 8;
    quantiser.affine = true; // what follows a ReLU has no negative half
    *out = zoo_grid_of(&quantiser, samples, kept, samples + (SAMPLES + 2) * ITEMS);
    free(samples);
    return STATUS_OK;
}

// The grid of what step `step` reads: the output of a network of the steps before it.
static enum status run_prefix(struct zoo_grid *out, struct device *device,
                              const struct zoo_model *model, const struct network_plan *plan,
                              size_t step, const struct zoo_compression *how, struct error *err)
{
    struct network_plan prefix = *plan;
    struct zoo_batch batch;
    // A network has a step, and the first one leaves its input as it is.
    prefix.step_count = step > 0 ? step : 1;
    prefix.outputs = &plan->steps[step].in[0];
    prefix.output_count = 1;
    enum status status = zoo_batch_init(&batch, device, &prefix, ITEMS, err);
    if (status == STATUS_OK) {
        zoo_batch_seed(&batch, model, FIRST_ITEM, how->seed);
        status = zoo_batch_run(&batch, err);
    }
    if (status == STATUS_OK)
        status =
            measure(out, how, batch.outputs[0], ITEMS * zoo_tensor_elements(prefix.outputs), err);
    zoo_batch_deinit(&batch);
    return status;
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

enum status zoo_calibrate(struct zoo_grid *grids, struct device *device,
                          const struct zoo_model *model, const struct zoo_weights *weights,
                          const struct zoo_compression *how, struct error *err)
{
    struct zoo_plan *plan;
    enum status status = zoo_plan_new(&plan, model, weights, NULL, err);
    if (status != STATUS_OK)
        return status;
    const struct network_plan *network = zoo_plan_network(plan);
    for (size_t s = 0; s < network->step_count && status == STATUS_OK; s++) {
        const struct network_step *step = &network->steps[s];
        size_t layer = 0;
        while (layer < model->layer_count && strcmp(model->layers[layer].name, step->name) != 0)
            layer++;
        if (how->cancelled && how->cancelled())
            status = error_set(err, STATUS_CANCELLED, "%s: cancelled", model->name);
        else if (step->op == NETWORK_CONV && layer < model->layer_count)
            status = run_prefix(&grids[layer], device, model, network, s, how, err);
    }
    zoo_plan_free(plan);
    unite(grids, model);
    return status;
}
