#include "server/workload/zoo/losses.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

// A model on the device, and its outputs for one item.
struct side {
    struct device_network *network;
    float *outputs[ZOO_OUTPUTS_MAX];
};

// Sums over the items.
struct sums {
    double distillation, agreeing, squared_difference, squared_original;
};

static size_t elements_of(const struct zoo_layer *layer)
{
    return (size_t)layer->shape.channels * layer->shape.height * layer->shape.width;
}

static void close_side(struct side *side)
{
    device_network_free(side->network);
    for (size_t i = 0; i < ZOO_OUTPUTS_MAX; i++)
        free(side->outputs[i]);
}

static enum status open_side(struct side *side, struct device *device,
                             const struct zoo_model *model, const struct zoo_weights *weights,
                             const struct zoo_layer_int8 *int8, struct error *err)
{
    struct zoo_plan *plan;
    for (size_t i = 0; i < model->output_count; i++) {
        side->outputs[i] = calloc(elements_of(&model->layers[model->outputs[i]]), sizeof(float));
        if (!side->outputs[i])
            return error_no_memory(err, model->name);
    }
    enum status status = zoo_plan_new(&plan, model, weights, int8, err);
    if (status != STATUS_OK)
        return status;
    status = device_network_new(device, &side->network, zoo_plan_network(plan), 1, err);
    zoo_plan_free(plan);
    return status;
}

// Makes logits of probabilities, but for a constant that a softmax does not see.
static void take_logarithms(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = logf(fmaxf(values[i], FLT_MIN));
}

static void add_classes(struct zoo_losses *out, struct sums *sums,
                        const struct zoo_distillation *how, const struct zoo_layer *layer,
                        float *original, float *compressed)
{
    const size_t classes = layer->shape.channels, pixels = elements_of(layer) / classes;
    take_logarithms(original, classes * pixels);
    take_logarithms(compressed, classes * pixels);
    for (size_t i = 0; i < pixels; i++) {
        sums->distillation +=
            zoo_distillation_loss(how, original + i, compressed + i, classes, pixels);
        sums->agreeing +=
            zoo_top1(original + i, classes, pixels) == zoo_top1(compressed + i, classes, pixels);
    }
    out->positions += pixels;
}

static void add_item(struct zoo_losses *out, struct sums *sums, const struct zoo_distillation *how,
                     const struct zoo_model *model, const struct side *original,
                     const struct side *compressed)
{
    for (size_t o = 0; o < model->output_count; o++) {
        const struct zoo_layer *layer = &model->layers[model->outputs[o]];
        float *x = original->outputs[o], *y = compressed->outputs[o];
        for (size_t i = 0; i < elements_of(layer); i++) {
            const double difference = (double)y[i] - (double)x[i];
            sums->squared_difference += difference * difference;
            sums->squared_original += (double)x[i] * (double)x[i];
            out->max_error = fmax(out->max_error, fabs(difference));
        }
        if (layer->activation == NETWORK_SOFTMAX && layer->shape.channels > 1)
            add_classes(out, sums, how, layer, x, y);
    }
}

static enum status run_items(struct zoo_losses *out, const struct zoo_model *model,
                             struct side *original, struct side *compressed, float *const *inputs,
                             const struct zoo_loss_options *options, struct error *err)
{
    struct sums sums = {0};
    const float *const *in = (const float *const *)inputs;
    enum status status = STATUS_OK;
    for (size_t item = 0; item < options->inputs && status == STATUS_OK; item++) {
        if (options->cancelled && options->cancelled())
            return error_set(err, STATUS_CANCELLED, "%s: cancelled", model->name);
        for (size_t i = 0; i < model->input_count; i++)
            zoo_input_seeded(inputs[i], model, i, item, options->seed);
        status = device_network_run(original->network, in, original->outputs, 1, err);
        if (status == STATUS_OK)
            status = device_network_run(compressed->network, in, compressed->outputs, 1, err);
        if (status == STATUS_OK)
            add_item(out, &sums, &options->distillation, model, original, compressed);
    }
    const double positions = out->positions > 0 ? (double)out->positions : (double)NAN;
    out->distillation = sums.distillation / positions;
    out->agreement = sums.agreeing / positions;
    out->relative_error = sqrt(sums.squared_difference / sums.squared_original);
    return status;
}

enum status zoo_losses_measure(struct zoo_losses *out, struct device *device,
                               const struct zoo_model *model, const struct zoo_weights *weights,
                               const struct zoo_compressed *compressed,
                               const struct zoo_loss_options *options, struct error *err)
{
    struct side original = {0}, other = {0};
    float *inputs[ZOO_INPUTS_MAX] = {NULL};
    *out = (struct zoo_losses){0};
    enum status status = open_side(&original, device, model, weights, NULL, err);
    if (status == STATUS_OK)
        status = open_side(&other, device, compressed->model, &compressed->weights,
                           compressed->int8, err);
    for (size_t i = 0; i < model->input_count && status == STATUS_OK; i++) {
        inputs[i] = calloc(elements_of(&model->layers[model->inputs[i]]), sizeof(float));
        if (!inputs[i])
            status = error_no_memory(err, model->name);
    }
    if (status == STATUS_OK)
        status = run_items(out, model, &original, &other, inputs, options, err);
    for (size_t i = 0; i < ZOO_INPUTS_MAX; i++)
        free(inputs[i]);
    close_side(&original);
    close_side(&other);
    return status;
}
