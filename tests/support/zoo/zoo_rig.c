#include "tests/support/zoo/zoo_rig.h"

#include <stdlib.h>

#include "tests/support/network_reference.h"

enum status zoo_rig_model(struct zoo_model **out, const char *name, struct error *err)
{
    const struct zoo_text *text = zoo_text_find(name);
    return text ? zoo_model_parse(out, name, text->text, text->size, err)
                : zoo_model_read(out, name, err);
}

size_t zoo_rig_elements(const struct zoo_rig *rig, size_t layer)
{
    const struct zoo_shape *shape = &rig->model->layers[layer].shape;
    return (size_t)shape->channels * shape->height * shape->width;
}

static enum status make_arrays(struct zoo_rig *rig, uint64_t seed, struct error *err)
{
    const struct zoo_model *model = rig->model;
    for (size_t i = 0; i < model->input_count; i++) {
        const size_t elements = zoo_rig_elements(rig, model->inputs[i]);
        rig->inputs[i] = calloc(rig->items * elements, sizeof(float));
        if (!rig->inputs[i])
            return error_no_memory(err, model->name);
        for (size_t item = 0; item < rig->items; item++)
            zoo_input_seeded(rig->inputs[i] + item * elements, model, i, item, seed);
    }
    for (size_t i = 0; i < model->output_count; i++) {
        rig->outputs[i] =
            calloc(rig->items * zoo_rig_elements(rig, model->outputs[i]), sizeof(float));
        if (!rig->outputs[i])
            return error_no_memory(err, model->name);
    }
    return STATUS_OK;
}

enum status zoo_rig_open(struct zoo_rig *rig, const struct zoo_rig_options *options,
                         struct error *err)
{
    *rig = (struct zoo_rig){.items = options->items};
    enum status status = zoo_rig_model(&rig->model, options->model, err);
    if (status != STATUS_OK)
        return status;
    if (options->weights)
        status = zoo_weights_load(&rig->weights, rig->model, options->weights, NULL, err);
    else
        status = zoo_weights_seeded(&rig->weights, rig->model, options->seed, err);
    if (status == STATUS_OK)
        status = zoo_plan_new(&rig->plan, rig->model, &rig->weights, NULL, err);
    if (status == STATUS_OK)
        status = device_open(&rig->device, &options->device, err);
    if (status == STATUS_OK)
        status = device_network_new(rig->device, &rig->network, zoo_plan_network(rig->plan),
                                    rig->items, err);
    if (status == STATUS_OK)
        status = make_arrays(rig, options->seed, err);
    return status;
}

void zoo_rig_close(struct zoo_rig *rig)
{
    for (size_t i = 0; i < ZOO_INPUTS_MAX; i++)
        free(rig->inputs[i]);
    for (size_t i = 0; i < ZOO_OUTPUTS_MAX; i++)
        free(rig->outputs[i]);
    device_network_free(rig->network);
    device_close(rig->device);
    zoo_plan_free(rig->plan);
    zoo_weights_free(&rig->weights);
    zoo_model_free(rig->model);
    *rig = (struct zoo_rig){0};
}

enum status zoo_rig_run(struct zoo_rig *rig, struct error *err)
{
    const float *inputs[ZOO_INPUTS_MAX];
    for (size_t i = 0; i < ZOO_INPUTS_MAX; i++)
        inputs[i] = rig->inputs[i];
    return device_network_run(rig->network, inputs, rig->outputs, rig->items, err);
}

// Copies between an array of the layout (channels, height, width) and a tensor of the arena.
static void transfer(const struct network_tensor *tensor, float *arena, float *array, bool to_arena)
{
    for (size_t c = 0; c < tensor->channels; c++)
        for (size_t y = 0; y < tensor->height; y++)
            for (size_t x = 0; x < tensor->width; x++) {
                float *own = &arena[network_place_of(tensor, y, x, c)];
                float *other = &array[(c * tensor->height + y) * tensor->width + x];
                *(to_arena ? own : other) = *(to_arena ? other : own);
            }
}

enum status zoo_rig_reference(struct zoo_rig *rig, size_t item, struct error *err)
{
    const struct network_plan *plan = zoo_plan_network(rig->plan);
    float *arena = calloc(plan->arena, sizeof *arena);
    if (!arena)
        return error_no_memory(err, rig->model->name);
    for (size_t i = 0; i < plan->input_count; i++)
        transfer(&plan->inputs[i], arena,
                 rig->inputs[i] + item * zoo_rig_elements(rig, rig->model->inputs[i]), true);
    for (size_t i = 0; i < plan->step_count; i++)
        network_step_reference(&plan->steps[i], arena);
    for (size_t i = 0; i < plan->output_count; i++)
        transfer(&plan->outputs[i], arena,
                 rig->outputs[i] + item * zoo_rig_elements(rig, rig->model->outputs[i]), false);
    free(arena);
    return STATUS_OK;
}
