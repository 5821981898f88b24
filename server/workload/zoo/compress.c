#include "server/workload/zoo/compress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "server/workload/zoo/compress_parts.h"

// ---- Words of the command line ----------------------------------------------

// The number behind a word's colon; NULL if `text` is another word.
static const char *after_word(const char *text, const char *word)
{
    const size_t size = strlen(word);
    return strncmp(text, word, size) == 0 && text[size] == ':' ? text + size + 1 : NULL;
}

enum status zoo_compression_parse(struct zoo_compression *out, const char *text, struct error *err)
{
    const char *number;
    double amount = 0.0;
    enum status status = STATUS_OK;
    if (strcmp(text, "int8") == 0 || strcmp(text, "int4") == 0) {
        out->method = text[3] == '8' ? ZOO_INT8 : ZOO_INT4;
    } else if ((number = after_word(text, "lowrank"))) {
        out->method = ZOO_LOW_RANK;
        status = parse_real(&amount, number, 0.0, 1e6, "--compress lowrank", err);
        if (status == STATUS_OK && (amount <= 0.0 || (amount > 1.0 && amount != floor(amount))))
            return error_set(err, STATUS_INVALID,
                             "--compress %.60s: expected a rank (1, 2, ...) or a share of the "
                             "energy below 1",
                             text);
    } else if ((number = after_word(text, "prune"))) {
        out->method = ZOO_PRUNE;
        status = parse_real(&amount, number, 0.0, 1.0, "--compress prune", err);
        if (status == STATUS_OK && (amount <= 0.0 || amount >= 1.0))
            return error_set(err, STATUS_INVALID,
                             "--compress %.60s: expected a share of the weights between 0 and 1",
                             text);
    } else {
        return error_set(err, STATUS_INVALID,
                         "--compress: unknown method '%.60s' (int8, int4, lowrank:RANK, "
                         "lowrank:ENERGY or prune:SHARE)",
                         text);
    }
    out->amount = amount;
    return status;
}

enum status zoo_clip_parse(struct zoo_quantiser *out, const char *text, struct error *err)
{
    const char *number = after_word(text, "percentile");
    if (number) {
        out->clip = ZOO_CLIP_PERCENTILE;
        return parse_real(&out->percentile, number, 50.0, 100.0, "--clip percentile", err);
    }
    out->clip = strcmp(text, "mse") == 0 ? ZOO_CLIP_MSE : ZOO_CLIP_MINMAX;
    if (out->clip == ZOO_CLIP_MINMAX && strcmp(text, "minmax") != 0)
        return error_set(err, STATUS_INVALID,
                         "--clip: unknown word '%.60s' (minmax, percentile:P or mse)", text);
    return STATUS_OK;
}

// ---- Weights ------------------------------------------------------------------

// Matrices and kernels are compressed; biases and norms stay F32.
static bool is_matrix(const struct zoo_tensor *tensor)
{
    return tensor->rank > 1;
}

// Bytes of what is not a matrix: of convolutions and dense layers one bias a channel, which has
// absorbed the norm.
static size_t vector_bytes(const struct zoo_model *model, const struct zoo_layer *layer)
{
    size_t elements = 0;
    if (layer->kind == ZOO_GRU)
        for (size_t t = 0; t < layer->tensor_count; t++) {
            const struct zoo_tensor *tensor = &model->tensors[layer->first_tensor + t];
            elements += is_matrix(tensor) ? 0 : tensor->elements;
        }
    else if (layer->bias || layer->norm)
        elements = layer->shape.channels;
    return elements * sizeof(float);
}

// The bytes of the model's weights in F32, or, pruned, with bitmaps.
static size_t model_bytes(const struct zoo_model *model, const struct zoo_weights *weights,
                          bool sparse)
{
    size_t bytes = 0;
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct zoo_layer *layer = &model->layers[i];
        if (layer->weights_of != i)
            continue;
        bytes += vector_bytes(model, layer);
        for (size_t t = layer->first_tensor; t < layer->first_tensor + layer->tensor_count; t++)
            if (is_matrix(&model->tensors[t]))
                bytes += sparse ? zoo_sparse_bytes(weights->values[t], model->tensors[t].elements)
                                : model->tensors[t].elements * sizeof(float);
    }
    return bytes;
}

// The integers of one weight tensor.
struct zoo_integers {
    int8_t *values;
    float *scales; // one per row, also if all are the same
    int8_t *zeros;
};

static void free_integers(struct zoo_integers *integers)
{
    free(integers->values);
    free(integers->scales);
    free(integers->zeros);
    *integers = (struct zoo_integers){0};
}

// Replaces the values by those that their integers stand for.
static enum status quantise_tensor(struct zoo_integers *out, const struct zoo_tensor *tensor,
                                   float *values, const struct zoo_compression *how,
                                   struct error *err)
{
    const size_t rows = tensor->dims[0];
    const size_t parts = how->per_tensor ? 1 : rows, size = tensor->elements / parts;
    struct zoo_quantiser quantiser = how->quantiser;
    quantiser.bits = how->method == ZOO_INT4 ? 4 : 8;
    float *scratch = malloc(size * sizeof *scratch);
    *out = (struct zoo_integers){.values = malloc(tensor->elements),
                                 .scales = malloc(rows * sizeof *out->scales),
                                 .zeros = malloc(rows)};
    if (!scratch || !out->values || !out->scales || !out->zeros) {
        free(scratch);
        free_integers(out);
        return error_no_memory(err, tensor->name);
    }
    for (size_t part = 0; part < parts; part++) {
        float *from = values + part * size;
        const struct zoo_grid grid = zoo_grid_of(&quantiser, from, size, scratch);
        zoo_quantise(&grid, out->values + part * size, from, size);
        zoo_round_to_grid(&grid, from, from, size);
        for (size_t row = part * rows / parts; row < (part + 1) * rows / parts; row++) {
            out->scales[row] = grid.scale;
            out->zeros[row] = (int8_t)grid.zero;
        }
    }
    free(scratch);
    return STATUS_OK;
}

// Bytes of the integers, packed, with their scales and zeros.  A norm makes a scale of its own for
// each channel.
static size_t integer_bytes(const struct zoo_layer *layer, const struct zoo_tensor *tensor,
                            const struct zoo_compression *how)
{
    const size_t bits = how->method == ZOO_INT4 ? 4 : 8;
    const size_t grids = how->per_tensor ? 1 : tensor->dims[0];
    const size_t scales = layer->norm ? tensor->dims[0] : grids;
    return (tensor->elements * bits + 7) / 8 + scales * sizeof(float) +
           (how->quantiser.affine ? grids : 0);
}

// Only these have kernels of integers; their sums must not overflow.
static bool runs_in_integers(const struct zoo_layer *layer, const struct zoo_tensor *tensor)
{
    return (layer->kind == ZOO_CONV || layer->kind == ZOO_DENSE) &&
           tensor->elements / tensor->dims[0] <= NETWORK_INT8_PRODUCTS_MAX;
}

static enum status quantise_layer(struct zoo_compressed *out, size_t index,
                                  const struct zoo_compression *how, struct error *err)
{
    const struct zoo_model *model = out->model;
    const struct zoo_layer *layer = &model->layers[index];
    out->bytes += vector_bytes(model, layer);
    for (size_t t = layer->first_tensor; t < layer->first_tensor + layer->tensor_count; t++) {
        const struct zoo_tensor *tensor = &model->tensors[t];
        struct zoo_integers integers;
        if (!is_matrix(tensor))
            continue;
        enum status status = quantise_tensor(&integers, tensor, out->weights.values[t], how, err);
        if (status != STATUS_OK)
            return status;
        out->changed += t == layer->first_tensor;
        out->bytes += integer_bytes(layer, tensor, how);
        if (out->int8 && runs_in_integers(layer, tensor)) {
            out->integers[index] = integers;
            out->int8[index] =
                (struct zoo_layer_int8){.values = integers.values,
                                        .scales = integers.scales,
                                        .zeros = how->quantiser.affine ? integers.zeros : NULL};
        } else {
            free_integers(&integers);
        }
    }
    return STATUS_OK;
}

// Sets the ranges of the inputs of layers in integers.
static enum status calibrate(struct zoo_compressed *out, struct device *device,
                             const struct zoo_model *model, const struct zoo_weights *weights,
                             const struct zoo_compression *how, struct error *err)
{
    struct zoo_grid *grids = calloc(model->layer_count + 1, sizeof *grids);
    if (!grids)
        return error_no_memory(err, model->name);
    enum status status = zoo_calibrate(grids, device, model, weights, how, err);
    for (size_t i = 0; i < model->layer_count && status == STATUS_OK; i++) {
        struct zoo_layer_int8 *layer = &out->int8[i];
        // A layer like another has its integers, but not its inputs.
        if (model->layers[i].weights_of != i)
            *layer = out->int8[model->layers[i].weights_of];
        layer->input_scale = grids[i].scale;
        layer->input_zero = grids[i].zero;
    }
    free(grids);
    return status;
}

static enum status quantise(struct zoo_compressed *out, struct device *device,
                            const struct zoo_model *model, const struct zoo_weights *weights,
                            const struct zoo_compression *how, struct error *err)
{
    enum status status = STATUS_OK;
    if (how->method == ZOO_INT8 && !how->simulate) {
        out->int8 = calloc(model->layer_count + 1, sizeof *out->int8);
        out->integers = calloc(model->layer_count + 1, sizeof *out->integers);
        if (!out->int8 || !out->integers)
            return error_no_memory(err, model->name);
    }
    out->bytes = 0;
    for (size_t i = 0; i < model->layer_count && status == STATUS_OK; i++)
        if (model->layers[i].weights_of == i)
            status = quantise_layer(out, i, how, err);
    if (status == STATUS_OK && out->int8)
        status = calibrate(out, device, model, weights, how, err);
    return status;
}

static enum status prune(struct zoo_compressed *out, double share, struct error *err)
{
    const struct zoo_model *model = out->model;
    for (size_t t = 0; t < model->tensor_count; t++) {
        const struct zoo_tensor *tensor = &model->tensors[t];
        if (!is_matrix(tensor) || share * (double)tensor->elements < 1.0)
            continue;
        float *scratch = malloc(tensor->elements * sizeof *scratch);
        if (!scratch)
            return error_no_memory(err, tensor->name);
        zoo_prune(out->weights.values[t], tensor->elements, share, scratch);
        free(scratch);
        out->changed++;
    }
    out->bytes = model_bytes(model, &out->weights, true);
    return STATUS_OK;
}

static void name_model(char *out, const char *name, const struct zoo_compression *how)
{
    char suffix[32];
    if (how->method == ZOO_LOW_RANK || how->method == ZOO_PRUNE)
        (void)snprintf(suffix, sizeof suffix, "%s-%.6g",
                       how->method == ZOO_PRUNE ? "prune" : "lowrank", how->amount);
    else
        (void)snprintf(suffix, sizeof suffix, "%s%s", how->method == ZOO_INT4 ? "int4" : "int8",
                       how->method == ZOO_INT8 && how->simulate ? "-simulated" : "");
    const int room = ZOO_NAME_SIZE - 2 - (int)strlen(suffix);
    (void)snprintf(out, ZOO_NAME_SIZE, "%.*s-%s", room, name, suffix);
}

enum status zoo_compress(struct zoo_compressed *out, struct device *device,
                         const struct zoo_model *model, const struct zoo_weights *weights,
                         const struct zoo_compression *how, struct error *err)
{
    *out = (struct zoo_compressed){.original_bytes = model_bytes(model, weights, false)};
    enum status status = zoo_factor(out, model, weights, how, err);
    if (status == STATUS_OK) {
        out->bytes = model_bytes(out->model, &out->weights, false);
        name_model(out->model->name, model->name, how);
    }
    if (status == STATUS_OK && (how->method == ZOO_INT8 || how->method == ZOO_INT4))
        status = quantise(out, device, model, weights, how, err);
    if (status == STATUS_OK && how->method == ZOO_PRUNE)
        status = prune(out, how->amount, err);
    if (status == STATUS_OK && out->changed == 0)
        status = error_set(err, STATUS_INVALID, "%s: %s", model->name,
                           how->method == ZOO_LOW_RANK
                               ? "no layer has fewer weights with factors of that rank"
                           : how->method == ZOO_PRUNE ? "no layer has so many weights to prune"
                                                      : "no layer has weights to compress");
    if (status != STATUS_OK)
        zoo_compressed_free(out);
    return status;
}

void zoo_compressed_free(struct zoo_compressed *compressed)
{
    for (size_t i = 0; compressed->integers && i < compressed->model->layer_count; i++)
        free_integers(&compressed->integers[i]);
    free(compressed->integers);
    free(compressed->int8);
    free(compressed->factored);
    zoo_weights_free(&compressed->weights);
    zoo_model_free(compressed->model);
    *compressed = (struct zoo_compressed){0};
}
