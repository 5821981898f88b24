#include "server/workload/zoo/plan.h"

#include <stdlib.h>
#include <string.h>

#include "server/workload/zoo/plan_parts.h"

enum { HEIGHT, WIDTH };

// The plan while it is made.
struct draft {
    struct zoo_plan *plan;
    const struct zoo_model *model;
    size_t *value_of; // of each layer
    size_t *uses;     // readers of each layer's result, of which an output is one
};

static struct plan_value *add_value(struct draft *draft, const struct zoo_shape *shape,
                                    size_t *index)
{
    struct zoo_plan *plan = draft->plan;
    *index = plan->value_count++;
    struct plan_value *value = &plan->values[*index];
    *value = (struct plan_value){.shape = *shape, .step = NO_INDEX, .parent = NO_INDEX};
    return value;
}

static size_t source_value(const struct draft *draft, const struct zoo_layer *layer, size_t i)
{
    return draft->value_of[layer->sources[i]];
}

static enum network_op op_of(const struct zoo_layer *layer)
{
    static const enum network_op ops[ZOO_KIND_COUNT] = {
        [ZOO_CONV] = NETWORK_CONV,
        [ZOO_DEPTHWISE] = NETWORK_DEPTHWISE,
        [ZOO_DENSE] = NETWORK_CONV,
        [ZOO_EMBED] = NETWORK_EMBED,
        [ZOO_GRU] = NETWORK_GRU,
        [ZOO_MAX_POOL] = NETWORK_MAX_POOL,
        [ZOO_AVERAGE_POOL] = NETWORK_AVERAGE_POOL,
        [ZOO_UPSAMPLE] = NETWORK_UPSAMPLE,
        [ZOO_ADD] = NETWORK_ADD,
        [ZOO_MULTIPLY] = NETWORK_MULTIPLY,
        [ZOO_CONCAT] = NETWORK_COPY,
        [ZOO_ACTIVATE] = NETWORK_COPY,
    };
    return ops[layer->kind];
}

// Appends a step that computes the layer from the values `in`; its result is the value `out`.
static void add_step(struct draft *draft, size_t index, const size_t in[2], size_t out)
{
    struct zoo_plan *plan = draft->plan;
    const struct zoo_layer *layer = &draft->model->layers[index];
    plan->values[out].step = plan->step_count;
    struct plan_step *planned = &plan->steps[plan->step_count++];
    const bool has_two = layer->kind == ZOO_ADD || layer->kind == ZOO_MULTIPLY;
    *planned =
        (struct plan_step){.in = {in[0], has_two ? in[1] : NO_INDEX}, .out = out, .layer = index};
    struct network_step *step = &planned->step;
    *step = (struct network_step){.op = op_of(layer),
                                  .activation = layer->activation,
                                  .inputs = has_two ? 2 : 1,
                                  .stride = {1, 1},
                                  .dilation = {1, 1},
                                  .groups = 1};
    memcpy(step->name, layer->name, sizeof step->name);
    if (layer->kind == ZOO_DENSE) { // the kernel covers the input
        const struct zoo_shape *shape = &plan->values[in[0]].shape;
        step->kernel[HEIGHT] = shape->height;
        step->kernel[WIDTH] = shape->width;
        return;
    }
    for (size_t d = 0; d < 2; d++) {
        step->kernel[d] = layer->kernel[d];
        if (layer->stride[d] > 0)
            step->stride[d] = layer->stride[d];
        if (layer->dilation[d] > 0)
            step->dilation[d] = layer->dilation[d];
        step->pad[d] = layer->pad[d];
    }
    if (layer->kind == ZOO_CONV || layer->kind == ZOO_DEPTHWISE)
        step->groups = layer->groups;
    if (layer->kind == ZOO_EMBED)
        step->kernel[HEIGHT] = draft->model->layers[layer->sources[0]].vocabulary;
}

// The step that writes the layer's source `i`, if that can still change: no other layer reads the
// value, and no activation was applied to it.
static struct plan_step *open_step(struct draft *draft, const struct zoo_layer *layer, size_t i)
{
    const struct plan_value *value = &draft->plan->values[source_value(draft, layer, i)];
    if (draft->uses[layer->sources[i]] != 1 || value->step == NO_INDEX)
        return NULL;
    struct plan_step *step = &draft->plan->steps[value->step];
    return step->step.activation == NETWORK_LINEAR ? step : NULL;
}

static bool has_products(const struct plan_step *step)
{
    return step->step.op == NETWORK_CONV || step->step.op == NETWORK_DEPTHWISE;
}

// Whether step `step` runs after the value is written.
static bool is_after(const struct draft *draft, const struct plan_step *step, size_t value)
{
    const struct plan_value *other = &draft->plan->values[value];
    const size_t index = (size_t)(step - draft->plan->steps);
    if (other->is_parent) { // it is written where its slices are
        for (size_t v = 0; v < draft->plan->value_count; v++)
            if (draft->plan->values[v].parent == value && !is_after(draft, step, v))
                return false;
        return true;
    }
    return other->step == NO_INDEX || other->step < index;
}

static bool fuse_add(struct draft *draft, const struct zoo_layer *layer, size_t index)
{
    for (size_t i = 0; i < 2; i++) {
        struct plan_step *step = open_step(draft, layer, i);
        const size_t other = source_value(draft, layer, 1 - i);
        if (!step || !has_products(step) || step->step.inputs > 1 || !is_after(draft, step, other))
            continue;
        step->step.inputs = 2;
        step->in[1] = other;
        step->step.activation = layer->activation;
        draft->value_of[index] = step->out;
        return true;
    }
    return false;
}

// Lets an earlier step compute the layer, if it can.
static bool fuse(struct draft *draft, const struct zoo_layer *layer, size_t index)
{
    if (layer->kind == ZOO_ADD)
        return fuse_add(draft, layer, index);
    struct plan_step *step = layer->kind == ZOO_ACTIVATE ? open_step(draft, layer, 0) : NULL;
    if (!step)
        return false;
    step->step.activation = layer->activation;
    draft->value_of[index] = step->out;
    return true;
}

// Makes the sources slices of the result, or copies those that are slices or have slices already.
static void concatenate(struct draft *draft, const struct zoo_layer *layer, size_t index)
{
    struct zoo_plan *plan = draft->plan;
    size_t out, channel = 0;
    add_value(draft, &layer->shape, &out)->is_parent = true;
    draft->value_of[index] = out;
    for (size_t i = 0; i < layer->source_count; i++) {
        size_t slice = source_value(draft, layer, i);
        const uint32_t channels = plan->values[slice].shape.channels;
        if (plan->values[slice].parent != NO_INDEX || plan->values[slice].is_parent) {
            size_t copied;
            (void)add_value(draft, &plan->values[slice].shape, &copied);
            add_step(draft, index, (const size_t[]){slice, NO_INDEX}, copied);
            slice = copied;
        }
        plan->values[slice].parent = out;
        plan->values[slice].channel = channel;
        channel += channels;
    }
}

static void add_layer(struct draft *draft, size_t index)
{
    const struct zoo_layer *layer = &draft->model->layers[index];
    size_t out;
    if (layer->kind == ZOO_CONCAT) {
        concatenate(draft, layer, index);
    } else if (layer->kind == ZOO_INPUT) {
        (void)add_value(draft, &layer->shape, &out);
        draft->value_of[index] = out;
    } else if (!fuse(draft, layer, index)) {
        size_t in[2] = {NO_INDEX, NO_INDEX};
        for (size_t i = 0; i < 2 && i < layer->source_count; i++)
            in[i] = source_value(draft, layer, i);
        (void)add_value(draft, &layer->shape, &out);
        add_step(draft, index, in, out);
        draft->value_of[index] = out;
    }
}

static void count_uses(struct draft *draft)
{
    for (size_t i = 0; i < draft->model->layer_count; i++)
        for (size_t s = 0; s < draft->model->layers[i].source_count; s++)
            draft->uses[draft->model->layers[i].sources[s]]++;
    for (size_t i = 0; i < draft->model->output_count; i++)
        draft->uses[draft->model->outputs[i]]++;
}

static struct network_tensor tensor_of(const struct zoo_plan *plan, size_t index)
{
    const struct plan_value *value = &plan->values[index];
    const struct plan_value *whole =
        value->parent == NO_INDEX ? value : &plan->values[value->parent];
    struct network_tensor tensor = {.height = value->shape.height,
                                    .width = value->shape.width,
                                    .channels = value->shape.channels,
                                    .pitch = whole->shape.channels,
                                    .offset = whole->offset + value->channel};
    memcpy(tensor.border, whole->border, sizeof tensor.border);
    return tensor;
}

static void finish(const struct draft *draft)
{
    struct zoo_plan *plan = draft->plan;
    const struct zoo_model *model = draft->model;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *planned = &plan->steps[i];
        plan->network_steps[i] = planned->step;
        struct network_step *step = &plan->network_steps[i];
        for (size_t k = 0; k < step->inputs; k++)
            step->in[k] = tensor_of(plan, planned->in[k]);
        step->out = tensor_of(plan, planned->out);
    }
    for (size_t i = 0; i < model->input_count; i++)
        plan->inputs[i] = tensor_of(plan, draft->value_of[model->inputs[i]]);
    for (size_t i = 0; i < model->output_count; i++)
        plan->outputs[i] = tensor_of(plan, draft->value_of[model->outputs[i]]);
    plan->network.steps = plan->network_steps;
    plan->network.step_count = plan->step_count;
    plan->network.inputs = plan->inputs;
    plan->network.input_count = model->input_count;
    plan->network.outputs = plan->outputs;
    plan->network.output_count = model->output_count;
}

enum status zoo_plan_new(struct zoo_plan **out, const struct zoo_model *model,
                         const struct zoo_weights *weights, const struct zoo_layer_int8 *int8,
                         struct error *err)
{
    struct zoo_plan *plan = calloc(1, sizeof *plan);
    // A layer makes at most one value and one step, a concatenation copies of its sources too.
    size_t most = model->layer_count;
    for (size_t i = 0; i < model->layer_count; i++)
        most += model->layers[i].source_count;
    struct draft draft = {.plan = plan,
                          .model = model,
                          .value_of = calloc(most + 1, sizeof *draft.value_of),
                          .uses = calloc(most + 1, sizeof *draft.uses)};
    enum status status = STATUS_OK;
    if (plan) {
        plan->values = calloc(most + 1, sizeof *plan->values);
        plan->steps = calloc(most + 1, sizeof *plan->steps);
        plan->network_steps = calloc(most + 1, sizeof *plan->network_steps);
        plan->weights = calloc(most + 1, sizeof *plan->weights);
    }
    if (!plan || !draft.value_of || !draft.uses || !plan->values || !plan->steps ||
        !plan->network_steps || !plan->weights) {
        status = error_no_memory(err, "plan");
    } else {
        count_uses(&draft);
        for (size_t i = 0; i < model->layer_count; i++)
            add_layer(&draft, i);
        status = zoo_plan_fold(plan, model, weights, int8, err);
        if (status == STATUS_OK)
            status = zoo_plan_place(plan, model, draft.value_of, err);
        if (status == STATUS_OK)
            finish(&draft);
    }
    free(draft.value_of);
    free(draft.uses);
    if (status != STATUS_OK) {
        zoo_plan_free(plan);
        return status;
    }
    *out = plan;
    return STATUS_OK;
}

const struct network_plan *zoo_plan_network(const struct zoo_plan *plan)
{
    return &plan->network;
}

void zoo_plan_free(struct zoo_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->weight_count; i++) {
        free(plan->weights[i].weights);
        free(plan->weights[i].bias);
        free(plan->weights[i].int8);
        free(plan->weights[i].values);
        free(plan->weights[i].zeros);
        free(plan->weights[i].scales);
    }
    free(plan->weights);
    free(plan->network_steps);
    free(plan->steps);
    free(plan->values);
    free(plan);
}
