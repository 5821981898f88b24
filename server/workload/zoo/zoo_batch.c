#include "server/workload/zoo/zoo_batch.h"

#include <stdlib.h>

#include "server/workload/zoo/weights.h"

size_t zoo_tensor_elements(const struct network_tensor *tensor)
{
    return (size_t)tensor->height * tensor->width * tensor->channels;
}

static bool make_arrays(float **out, const struct network_tensor *tensors, size_t count,
                        size_t items)
{
    bool whole = true;
    for (size_t i = 0; i < count && whole; i++)
        whole = (out[i] = calloc(items * zoo_tensor_elements(&tensors[i]), sizeof(float)));
    return whole;
}

enum status zoo_batch_init(struct zoo_batch *out, struct device *device,
                           const struct network_plan *plan, size_t items, struct error *err)
{
    *out = (struct zoo_batch){.items = items};
    const enum status status = device_network_new(device, &out->network, plan, items, err);
    if (status != STATUS_OK)
        return status;
    if (make_arrays(out->inputs, plan->inputs, plan->input_count, items) &&
        make_arrays(out->outputs, plan->outputs, plan->output_count, items))
        return STATUS_OK;
    return error_no_memory(err, "batch");
}

void zoo_batch_deinit(struct zoo_batch *batch)
{
    device_network_free(batch->network);
    for (size_t i = 0; i < ZOO_INPUTS_MAX; i++)
        free(batch->inputs[i]);
    for (size_t i = 0; i < ZOO_OUTPUTS_MAX; i++)
        free(batch->outputs[i]);
    *batch = (struct zoo_batch){0};
}

void zoo_batch_seed(struct zoo_batch *batch, const struct zoo_model *model, size_t first,
                    uint64_t seed)
{
    for (size_t i = 0; i < model->input_count; i++) {
        const size_t elements = zoo_elements(&model->layers[model->inputs[i]].shape);
        for (size_t item = 0; item < batch->items; item++)
            zoo_input_seeded(batch->inputs[i] + item * elements, model, i, first + item, seed);
    }
}

enum status zoo_batch_run(struct zoo_batch *batch, struct error *err)
{
    return device_network_run(batch->network, (const float *const *)batch->inputs, batch->outputs,
                              batch->items, err);
}
