// A layer's weights (out, in * kernel) as a product of two narrow matrices, by singular values
// (Denton et al., arXiv:1404.0736).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/workload/zoo/compress_parts.h"
#include "server/workload/zoo/svd.h"

// The factors of one layer's weights.
struct factors {
    double *a, *u, *s, *vt;
    size_t rows, columns, k;
};

static void free_factors(struct factors *factors)
{
    free(factors->a);
    free(factors->u);
    free(factors->s);
    free(factors->vt);
    *factors = (struct factors){0};
}

static enum status decompose(struct factors *out, const struct svd *svd,
                             const struct zoo_tensor *tensor, const float *values,
                             struct error *err)
{
    const size_t rows = tensor->dims[0], columns = tensor->elements / rows;
    *out = (struct factors){.rows = rows, .columns = columns};
    const size_t k = out->k = rows < columns ? rows : columns;
    out->a = calloc(tensor->elements, sizeof *out->a);
    out->u = calloc(rows * k, sizeof *out->u);
    out->s = calloc(k, sizeof *out->s);
    out->vt = calloc(k * columns, sizeof *out->vt);
    if (!out->a || !out->u || !out->s || !out->vt)
        return error_no_memory(err, tensor->name);
    for (size_t i = 0; i < tensor->elements; i++)
        out->a[i] = (double)values[i];
    enum status status = svd_compute(svd, out->a, rows, columns, out->u, out->s, out->vt, err);
    return status == STATUS_OK ? status : error_prefix(err, status, "%s", tensor->name);
}

// The least rank with the share of the energy, or the rank given; 0 if it saves no weights.
static struct zoo_factored choose_rank(const struct factors *factors, double amount)
{
    double total = 0.0, kept = 0.0;
    for (size_t i = 0; i < factors->k; i++)
        total += factors->s[i] * factors->s[i];
    size_t rank = 0;
    while (rank < factors->k &&
           (amount < 1.0 ? rank == 0 || kept < amount * total : (double)rank < amount)) {
        kept += factors->s[rank] * factors->s[rank];
        rank++;
    }
    const bool whole = amount >= 1.0 && (double)rank < amount;
    if (whole || rank * (factors->rows + factors->columns) >= factors->rows * factors->columns)
        return (struct zoo_factored){0};
    return (struct zoo_factored){.rank = rank, .energy = total > 0.0 ? kept / total : 1.0};
}

static bool can_factor(const struct zoo_layer *layer)
{
    return layer->kind == ZOO_DENSE || (layer->kind == ZOO_CONV && layer->groups == 1);
}

static float *copy_floats(const float *values, size_t n)
{
    float *copy = malloc(n * sizeof *copy);
    if (copy)
        memcpy(copy, values, n * sizeof *copy);
    return copy;
}

// ---- Layers and tensors of the new model ------------------------------------

// Adds a tensor, which takes ownership of `values`.
static enum status add_tensor(struct zoo_compressed *out, const struct zoo_tensor *tensor,
                              float *values, struct error *err)
{
    if (!values)
        return error_no_memory(err, tensor->name);
    out->weights.values[out->weights.count++] = values;
    out->model->tensors[out->model->tensor_count++] = *tensor;
    out->model->parameters += tensor->elements;
    return STATUS_OK;
}

// Adds V' (rank, in, kernel...) or U S (out, rank, 1...) in place of a weight.
static enum status add_factor(struct zoo_compressed *out, const struct factors *factors,
                              size_t rank, const struct zoo_tensor *weight, const char *name,
                              bool second, struct error *err)
{
    struct zoo_tensor tensor = *weight;
    (void)snprintf(tensor.name, sizeof tensor.name, "%s", name);
    tensor.dims[0] = second ? weight->dims[0] : (uint32_t)rank;
    if (second) {
        tensor.dims[1] = (uint32_t)rank;
        tensor.dims[2] = tensor.dims[3] = 1;
    }
    tensor.elements = rank * (second ? factors->rows : factors->columns);
    float *values = calloc(tensor.elements + 1, sizeof *values);
    for (size_t i = 0; values && i < tensor.elements; i++)
        values[i] =
            (float)(second ? factors->u[i / rank * factors->k + i % rank] * factors->s[i % rank]
                           : factors->vt[i]);
    return add_tensor(out, &tensor, values, err);
}

// Adds the weights of a layer that has its own; the first is replaced if it was factored.
static enum status add_weights(struct zoo_compressed *out, const struct zoo_model *model,
                               const struct zoo_weights *weights, const struct zoo_layer *layer,
                               const struct factors *factors, struct error *err)
{
    const size_t rank = out->factored[layer - model->layers].rank;
    enum status status = STATUS_OK;
    for (size_t t = 0; t < layer->tensor_count && status == STATUS_OK; t++) {
        const struct zoo_tensor *tensor = &model->tensors[layer->first_tensor + t];
        const float *values = weights->values[layer->first_tensor + t];
        char name[sizeof tensor->name];
        if (t > 0 || rank == 0) {
            status = add_tensor(out, tensor, copy_floats(values, tensor->elements), err);
            continue;
        }
        (void)snprintf(name, sizeof name, "%s.low.weight", layer->name);
        status = add_factor(out, factors, rank, tensor, name, false, err);
        if (status == STATUS_OK)
            status = add_factor(out, factors, rank, tensor, tensor->name, true, err);
    }
    return status;
}

// Adds a layer, or the two that it became.  `last` has each original layer's index in the new model
// (of two the second).
static void add_layer(struct zoo_compressed *out, const struct zoo_model *model, size_t index,
                      size_t *last)
{
    const struct zoo_layer *layer = &model->layers[index];
    struct zoo_model *to = out->model;
    const bool owner = layer->weights_of == index;
    const size_t rank = out->factored[layer->weights_of].rank;
    struct zoo_layer second = *layer;
    for (size_t s = 0; s < layer->source_count; s++)
        second.sources[s] = last[layer->sources[s]];
    if (rank > 0) {
        struct zoo_layer first = second;
        char name[ZOO_NAME_SIZE + 8];
        (void)snprintf(name, sizeof name, "%.*s.low", ZOO_NAME_SIZE - 5, layer->name);
        memcpy(first.name, name, ZOO_NAME_SIZE);
        first.activation = NETWORK_LINEAR;
        first.shape.channels = (uint32_t)rank;
        first.bias = first.norm = false;
        first.tensor_count = 1;
        first.weights_of = owner ? to->layer_count : last[layer->weights_of] - 1;
        first.first_tensor = owner ? to->tensor_count : to->layers[first.weights_of].first_tensor;
        const uint64_t pixels = (uint64_t)layer->shape.height * layer->shape.width;
        first.macs = layer->macs / layer->shape.channels * rank;
        second.macs = pixels * rank * layer->shape.channels;
        to->macs += first.macs + second.macs - layer->macs;
        second.sources[0] = to->layer_count;
        second.kernel[0] = second.kernel[1] = second.stride[0] = second.stride[1] = 1;
        second.dilation[0] = second.dilation[1] = 1;
        memset(second.pad, 0, sizeof second.pad);
        to->layers[to->layer_count++] = first;
        second.first_tensor = first.first_tensor + 1;
    } else {
        second.first_tensor =
            owner ? to->tensor_count : to->layers[last[layer->weights_of]].first_tensor;
    }
    second.weights_of = owner ? to->layer_count : last[layer->weights_of];
    last[index] = to->layer_count;
    to->layers[to->layer_count++] = second;
}

static enum status start_model(struct zoo_compressed *out, const struct zoo_model *model,
                               struct error *err)
{
    struct zoo_model *copy = calloc(1, sizeof *copy);
    out->model = copy;
    if (!copy)
        return error_no_memory(err, model->name);
    *copy = *model;
    copy->layers = calloc(2 * model->layer_count, sizeof *copy->layers);
    copy->tensors = calloc(2 * model->tensor_count + 1, sizeof *copy->tensors);
    copy->layer_count = copy->tensor_count = copy->parameters = 0;
    copy->text = calloc(1, 1); // the original's describes other layers
    out->weights.values = calloc(2 * model->tensor_count + 1, sizeof *out->weights.values);
    out->factored = calloc(model->layer_count, sizeof *out->factored);
    if (!copy->text || !copy->layers || !copy->tensors || !out->weights.values || !out->factored)
        return error_no_memory(err, model->name);
    return STATUS_OK;
}

static enum status add_all(struct zoo_compressed *out, const struct zoo_model *model,
                           const struct zoo_weights *weights, const struct zoo_compression *how,
                           const struct svd *svd, size_t *last, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < model->layer_count && status == STATUS_OK; i++) {
        const struct zoo_layer *layer = &model->layers[i];
        struct factors factors = {0};
        const bool owner = layer->weights_of == i;
        if (how->cancelled && how->cancelled())
            return error_set(err, STATUS_CANCELLED, "%s: cancelled", model->name);
        if (svd && owner && can_factor(layer)) {
            status = decompose(&factors, svd, &model->tensors[layer->first_tensor],
                               weights->values[layer->first_tensor], err);
            if (status == STATUS_OK)
                out->factored[i] = choose_rank(&factors, how->amount);
        }
        memcpy(out->factored[i].name, layer->name, sizeof layer->name);
        out->changed += out->factored[i].rank > 0;
        if (status == STATUS_OK) {
            add_layer(out, model, i, last);
            if (owner)
                status = add_weights(out, model, weights, layer, &factors, err);
        }
        free_factors(&factors);
    }
    return status;
}

enum status zoo_factor(struct zoo_compressed *out, const struct zoo_model *model,
                       const struct zoo_weights *weights, const struct zoo_compression *how,
                       struct error *err)
{
    size_t *last = calloc(model->layer_count, sizeof *last);
    struct svd *svd = NULL;
    enum status status = last ? start_model(out, model, err) : error_no_memory(err, model->name);
    if (status == STATUS_OK && how->method == ZOO_LOW_RANK)
        status = svd_open(&svd, how->lapacke, err);
    if (status == STATUS_OK)
        status = add_all(out, model, weights, how, svd, last, err);
    for (size_t i = 0; i < model->output_count && status == STATUS_OK; i++)
        out->model->outputs[i] = last[model->outputs[i]];
    for (size_t i = 0; i < model->input_count && status == STATUS_OK; i++)
        out->model->inputs[i] = last[model->inputs[i]];
    svd_close(svd);
    free(last);
    if (status == STATUS_OK && out->model->layer_count > ZOO_LAYERS_MAX)
        return error_set(err, STATUS_UNSUPPORTED, "%s: %zu layers with factors: at most %d",
                         model->name, out->model->layer_count, ZOO_LAYERS_MAX);
    return status;
}
