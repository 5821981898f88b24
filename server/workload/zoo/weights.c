#include "server/workload/zoo/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

// Element `index` of the sequence `start`, from 0 to 1 (not reached).
static double unit_at(uint64_t start, size_t index)
{
    uint64_t bits = start + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    bits ^= bits >> 31;
    return (double)(bits >> 40) / (1 << 24);
}

// Values are low + u * width.
struct range {
    double low, width;
};

static struct range symmetric(double bound)
{
    return (struct range){-bound, 2.0 * bound};
}

static struct range range_of(const struct zoo_layer *layer, const struct zoo_tensor *tensor)
{
    const char *part = tensor->name + strlen(layer->name) + 1;
    if (strcmp(part, "norm.weight") == 0 || strcmp(part, "norm.variance") == 0)
        return (struct range){0.5, 1.0};
    if (layer->kind == ZOO_GRU)
        return symmetric(1.0 / sqrt((double)layer->shape.channels));
    if (strcmp(part, "weight") != 0)
        return symmetric(0.1);
    if (layer->kind == ZOO_EMBED)
        return symmetric(1.0);
    const double fan_in = (double)tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
    return symmetric(sqrt(6.0 / fan_in));
}

enum status zoo_weights_new(struct zoo_weights *out, const struct zoo_model *model,
                            struct error *err)
{
    *out = (struct zoo_weights){.values = calloc(model->tensor_count + 1, sizeof *out->values)};
    if (!out->values)
        return error_no_memory(err, model->name);
    for (; out->count < model->tensor_count; out->count++) {
        out->values[out->count] = malloc(model->tensors[out->count].elements * sizeof(float));
        if (!out->values[out->count]) {
            zoo_weights_free(out);
            return error_no_memory(err, model->name);
        }
    }
    return STATUS_OK;
}

enum status zoo_weights_seeded(struct zoo_weights *out, const struct zoo_model *model,
                               uint64_t seed, struct error *err)
{
    enum status status = zoo_weights_new(out, model, err);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct zoo_layer *layer = &model->layers[i];
        for (size_t j = 0; layer->weights_of == i && j < layer->tensor_count; j++) {
            const struct zoo_tensor *tensor = &model->tensors[layer->first_tensor + j];
            const struct range range = range_of(layer, tensor);
            const uint64_t start = seed + hash_name(tensor->name);
            float *values = out->values[layer->first_tensor + j];
            for (size_t k = 0; k < tensor->elements; k++)
                values[k] = (float)(range.low + unit_at(start, k) * range.width);
        }
    }
    return STATUS_OK;
}

void zoo_weights_free(struct zoo_weights *weights)
{
    for (size_t i = 0; i < weights->count; i++)
        free(weights->values[i]);
    free(weights->values);
    *weights = (struct zoo_weights){0};
}

void zoo_input_seeded(float *out, const struct zoo_model *model, size_t input, size_t item,
                      uint64_t seed)
{
    const struct zoo_layer *layer = &model->layers[model->inputs[input]];
    char name[ZOO_NAME_SIZE + 40];
    (void)snprintf(name, sizeof name, "input.%s.%zu", layer->name, item);
    const uint64_t start = seed + hash_name(name);
    const size_t elements = zoo_elements(&layer->shape);
    for (size_t i = 0; i < elements; i++) {
        const double unit = unit_at(start, i);
        out[i] =
            (float)(layer->vocabulary > 0 ? floor(unit * layer->vocabulary) : 2.0 * unit - 1.0);
    }
}
