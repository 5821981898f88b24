// Weights of steps: in the layouts of network.h, with norms folded in.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/workload/zoo/plan_parts.h"

static const double epsilon = 1e-5; // of PyTorch's batch norm, and of zoo_model.h

struct folder {
    const struct zoo_model *model;
    const struct zoo_weights *weights;
    const struct zoo_layer_int8 *int8; // of the layer; NULL: F32
};

static const float *tensor(const struct folder *folder, const struct zoo_layer *layer, size_t i)
{
    return folder->weights->values[layer->first_tensor + i];
}

// What a layer's norm multiplies and adds for channel c: y = factor * x + shift.
static void norm_of(const struct folder *folder, const struct zoo_layer *layer, uint32_t c,
                    double *factor, double *shift)
{
    *factor = 1.0;
    *shift = 0.0;
    if (!layer->norm)
        return;
    const size_t first = layer->tensor_count - 4; // behind weight and bias
    *factor = (double)tensor(folder, layer, first)[c] /
              sqrt((double)tensor(folder, layer, first + 3)[c] + epsilon);
    *shift = (double)tensor(folder, layer, first + 1)[c] -
             (double)tensor(folder, layer, first + 2)[c] * *factor;
}

// The place, in PyTorch's layout, of weight (ky, kx, c) of an output channel, as a step stores it.
static size_t place_of(const uint32_t kernel[2], uint32_t channels, size_t i)
{
    const size_t c = i % channels, tap = i / channels;
    return c * kernel[0] * kernel[1] + tap;
}

// Weights and bias of a CONV or DEPTHWISE step.
static enum status fold_products(struct plan_weights *out, const struct folder *folder,
                                 const struct plan_step *planned, uint32_t in, uint32_t channels)
{
    const struct zoo_layer *layer = &folder->model->layers[planned->layer];
    const struct network_step *step = &planned->step;
    const bool depthwise = step->op == NETWORK_DEPTHWISE;
    const size_t k = (size_t)step->kernel[0] * step->kernel[1] * (depthwise ? 1 : in);
    const struct zoo_layer_int8 *int8 = depthwise ? NULL : folder->int8;
    out->weights = int8 ? NULL : calloc(k * channels, sizeof *out->weights);
    out->bias = calloc(channels, sizeof *out->bias);
    if (!out->bias || (!int8 && !out->weights))
        return STATUS_NOMEM;
    const float *values = tensor(folder, layer, 0);
    for (uint32_t o = 0; o < channels; o++) {
        double factor, shift;
        norm_of(folder, layer, o, &factor, &shift);
        const double bias = layer->bias ? (double)tensor(folder, layer, 1)[o] : 0.0;
        out->bias[o] = (float)(bias * factor + shift);
        for (size_t i = 0; !int8 && i < k; i++) {
            const size_t to = depthwise ? i * channels + o : o * k + i;
            const size_t from = o * k + place_of(step->kernel, depthwise ? 1 : in, i);
            out->weights[to] = (float)((double)values[from] * factor);
        }
    }
    return STATUS_OK;
}

static enum status fold_int8(struct plan_weights *out, const struct folder *folder,
                             const struct plan_step *planned, uint32_t in, uint32_t channels)
{
    const struct zoo_layer *layer = &folder->model->layers[planned->layer];
    const struct zoo_layer_int8 *int8 = folder->int8;
    const size_t k = (size_t)planned->step.kernel[0] * planned->step.kernel[1] * in;
    out->int8 = calloc(1, sizeof *out->int8);
    out->values = calloc(k * channels, sizeof *out->values);
    out->scales = calloc(channels, sizeof *out->scales);
    out->zeros = calloc(channels, sizeof *out->zeros);
    if (!out->int8 || !out->values || !out->scales || !out->zeros)
        return STATUS_NOMEM;
    for (uint32_t o = 0; o < channels; o++) {
        double factor, shift;
        norm_of(folder, layer, o, &factor, &shift);
        out->scales[o] = (float)((double)int8->scales[o] * factor);
        out->zeros[o] = int8->zeros ? int8->zeros[o] : 0;
        for (size_t i = 0; i < k; i++)
            out->values[o * k + i] = int8->values[o * k + place_of(planned->step.kernel, in, i)];
    }
    *out->int8 = (struct network_int8){.values = out->values,
                                       .scales = out->scales,
                                       .zeros = int8->zeros ? out->zeros : NULL,
                                       .input_scale = int8->input_scale,
                                       .input_zero = int8->input_zero};
    return STATUS_OK;
}

// Copies tensors of the layer one after another.
static float *joined(const struct folder *folder, const struct zoo_layer *layer, size_t first,
                     size_t count)
{
    const struct zoo_tensor *tensors = &folder->model->tensors[layer->first_tensor];
    size_t total = 0;
    for (size_t i = first; i < first + count; i++)
        total += tensors[i].elements;
    float *out = calloc(total, sizeof *out);
    if (!out)
        return NULL;
    total = 0;
    for (size_t i = first; i < first + count; i++) {
        memcpy(out + total, tensor(folder, layer, i), tensors[i].elements * sizeof *out);
        total += tensors[i].elements;
    }
    return out;
}

static enum status fold(struct plan_weights *out, const struct zoo_plan *plan,
                        const struct folder *folder, const struct plan_step *planned)
{
    const struct zoo_layer *layer = &folder->model->layers[planned->layer];
    const uint32_t channels = plan->values[planned->out].shape.channels;
    enum status status = STATUS_OK;
    switch (planned->step.op) {
    case NETWORK_CONV:
    case NETWORK_DEPTHWISE: {
        const uint32_t in = plan->values[planned->in[0]].shape.channels / planned->step.groups;
        status = fold_products(out, folder, planned, in, channels);
        return status == STATUS_OK && folder->int8 && planned->step.op == NETWORK_CONV
                   ? fold_int8(out, folder, planned, in, channels)
                   : status;
    }
    case NETWORK_EMBED:
        out->weights = joined(folder, layer, 0, 1);
        return out->weights ? STATUS_OK : STATUS_NOMEM;
    case NETWORK_GRU:
        out->weights = joined(folder, layer, 0, 2);
        out->bias = joined(folder, layer, 2, 2);
        return out->weights && out->bias ? STATUS_OK : STATUS_NOMEM;
    case NETWORK_MAX_POOL:
    case NETWORK_AVERAGE_POOL:
    case NETWORK_UPSAMPLE:
    case NETWORK_ADD:
    case NETWORK_MULTIPLY:
    case NETWORK_COPY:
    case NETWORK_OP_COUNT:
        break;
    }
    return STATUS_OK;
}

// The weights of a step with the same layers and layout, or new ones.
static struct plan_weights *find(struct zoo_plan *plan, size_t layer, const uint32_t kernel[2])
{
    for (size_t i = 0; i < plan->weight_count; i++) {
        struct plan_weights *known = &plan->weights[i];
        if (known->layer == layer && known->kernel[0] == kernel[0] && known->kernel[1] == kernel[1])
            return known;
    }
    struct plan_weights *added = &plan->weights[plan->weight_count++];
    *added = (struct plan_weights){.layer = layer, .kernel = {kernel[0], kernel[1]}};
    return added;
}

enum status zoo_plan_fold(struct zoo_plan *plan, const struct zoo_model *model,
                          const struct zoo_weights *weights, const struct zoo_layer_int8 *int8,
                          struct error *err)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        struct plan_step *planned = &plan->steps[i];
        const struct folder folder = {
            .model = model,
            .weights = weights,
            .int8 = int8 && int8[planned->layer].values ? &int8[planned->layer] : NULL};
        // Layers that share weights have inputs of different scales.
        const size_t owner =
            folder.int8 ? planned->layer : model->layers[planned->layer].weights_of;
        const size_t known = plan->weight_count;
        struct plan_weights *folded = find(plan, owner, planned->step.kernel);
        if (known < plan->weight_count && fold(folded, plan, &folder, planned) != STATUS_OK)
            return error_no_memory(err, "plan");
        planned->step.weights = folded->weights;
        planned->step.bias = folded->bias;
        planned->step.int8 = folded->int8;
    }
    return STATUS_OK;
}
