// Small networks on a CUDA device (server/device/network.h): weights in the order of the kernels,
// one arena per item, and the steps of a batch captured as one graph per number of items.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/cuda/network.cuh"

namespace
{

constexpr size_t GRAPHS_MAX = 8; // numbers of items whose graphs are kept

struct graph {
    size_t items; // 0: none
    cudaGraphExec_t handle;
};

struct network {
    struct device_network base; // must be the first member
    struct cuda *cuda;
    size_t step_count, input_count, output_count;
    struct network_step *steps;          // their pointers to weights and integers are not used
    struct network_arguments *arguments; // of the steps, then of the inputs and outputs
    struct network_integers *integers;   // of the steps; without `weights`: F32
    // Device memory: arenas, rounded inputs, weights, inputs and outputs.  `host` is pinned and has
    // inputs and outputs.
    float *arenas, *weights, *staged, *host;
    int8_t *rounded;
    size_t arena, rounded_item, weight_floats, staged_floats; // staged_floats: of all items
    struct graph graphs[GRAPHS_MAX];
    size_t next_graph; // the one to replace
};

struct network *network_of(struct device_network *network)
{
    return reinterpret_cast<struct network *>(network);
}

const struct network *network_of(const struct device_network *network)
{
    return reinterpret_cast<const struct network *>(network);
}

// ---- Preparing steps ------------------------------------------------------

struct network_view view_of(const struct network_tensor *tensor)
{
    struct network_view view = {};
    view.first = tensor->offset;
    view.height = tensor->height;
    view.width = tensor->width;
    view.channels = tensor->channels;
    view.top = tensor->border[0];
    view.left = tensor->border[1];
    view.rows = tensor->height + tensor->border[0] + tensor->border[2];
    view.columns = tensor->width + tensor->border[1] + tensor->border[3];
    view.pitch = tensor->pitch;
    view.row_pitch = view.columns * tensor->pitch;
    return view;
}

// Elements of a product of a result: of an output channel of a CONV.
size_t products_of(const struct network_step *step)
{
    return (size_t)step->kernel[0] * step->kernel[1] * (step->in[0].channels / step->groups);
}

size_t words_of(const struct network_step *step)
{
    return (step->in[0].channels + 3) / 4;
}

size_t weights_of(const struct network_step *step)
{
    const size_t channels = step->out.channels;
    switch (step->op) {
    case NETWORK_CONV:
        return products_of(step) * channels;
    case NETWORK_DEPTHWISE:
        return (size_t)step->kernel[0] * step->kernel[1] * channels;
    case NETWORK_EMBED:
        return step->kernel[0] * channels;
    case NETWORK_GRU:
        return 3 * channels * (step->in[0].channels + channels);
    default:
        return 0;
    }
}

size_t biases_of(const struct network_step *step)
{
    return step->bias ? step->out.channels * (step->op == NETWORK_GRU ? 6 : 1) : 0;
}

// Words of 32 bits that the weights of a step take.
size_t memory_of(const struct network_step *step)
{
    if (!step->int8)
        return weights_of(step) + biases_of(step);
    const size_t words = (size_t)step->kernel[0] * step->kernel[1] * words_of(step);
    return (words + 3) * step->out.channels + biases_of(step);
}

enum status check_step(const struct cuda *cuda, const struct network_step *step, struct error *err)
{
    if (step->op == NETWORK_GRU && step->out.channels > NETWORK_UNITS_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "device cuda:%d: step '%.40s' has %u units, at most %u are supported",
                         cuda->ordinal, step->name, step->out.channels, NETWORK_UNITS_MAX);
    if (step->int8 && (step->op != NETWORK_CONV || step->groups != 1))
        return error_set(err, STATUS_UNSUPPORTED,
                         "device cuda:%d: step '%.40s': there is no kernel of integers for "
                         "convolutions of groups",
                         cuda->ordinal, step->name);
    // 255 * 255 is the largest product of an integer less its zero.
    if (step->int8 && products_of(step) > INT_MAX / (255 * 255))
        return error_set(err, STATUS_UNSUPPORTED,
                         "device cuda:%d: step '%.40s' sums %zu products, too many for integers",
                         cuda->ordinal, step->name, products_of(step));
    return STATUS_OK;
}

// to[i][r] = from[r][i]
void transpose(float *to, const float *from, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < columns; i++)
            to[i * rows + r] = from[r * columns + i];
}

void pack_gru(float *to, const struct network_step *step)
{
    const size_t units = step->out.channels, inputs = step->in[0].channels;
    const float *from = step->weights;
    for (size_t i = 0; i < 6; i++) {
        const size_t count = i < 3 ? inputs : units;
        transpose(to, from, units, count);
        to += units * count;
        from += units * count;
    }
}

void pack_floats(float *to, const struct network_step *step)
{
    if (step->op == NETWORK_CONV)
        transpose(to, step->weights, step->out.channels, products_of(step));
    else if (step->op == NETWORK_GRU)
        pack_gru(to, step);
    else if (weights_of(step) > 0)
        memcpy(to, step->weights, weights_of(step) * sizeof *to);
}

// Weights, sums, scales and zeros of a CONV of integers: the arrays of struct network_integers.
void pack_integers(float *to, const struct network_step *step)
{
    const struct network_int8 *from = step->int8;
    const size_t channels = step->out.channels, inputs = step->in[0].channels;
    const size_t words = words_of(step), k = products_of(step), pixels = k / inputs;
    int8_t *bytes = reinterpret_cast<int8_t *>(to);
    memset(bytes, 0, pixels * words * channels * 4);
    int *sums = reinterpret_cast<int *>(to + pixels * words * channels);
    float *scales = reinterpret_cast<float *>(sums + channels);
    int *zeros = reinterpret_cast<int *>(scales + channels);
    for (size_t o = 0; o < channels; o++) {
        sums[o] = 0;
        scales[o] = from->scales[o] * from->input_scale;
        zeros[o] = from->zeros ? from->zeros[o] : 0;
        for (size_t i = 0; i < k; i++) {
            const size_t word = i / inputs * words + i % inputs / 4;
            bytes[(word * channels + o) * 4 + i % inputs % 4] = from->values[o * k + i];
            sums[o] += from->values[o * k + i];
        }
    }
}

// Fills what the kernels of step `i` get; `at` is its part of the weights in device memory.
void prepare(struct network *n, size_t i, float *at)
{
    const struct network_step *step = &n->steps[i];
    struct network_arguments *s = &n->arguments[i];
    s->op = step->op;
    s->in = view_of(&step->in[0]);
    s->second = view_of(&step->in[1]);
    s->out = view_of(&step->out);
    s->activation = step->activation;
    s->has_second = step->inputs > 1;
    for (size_t d = 0; d < 2; d++) {
        s->kernel[d] = step->kernel[d];
        s->stride[d] = step->stride[d];
        s->dilation[d] = step->dilation[d];
        s->pad[d] = step->pad[d];
    }
    s->groups = step->groups;
    s->inner = step->groups > 0 ? step->in[0].channels / step->groups : 0;
    s->weights = at;
    s->bias = step->bias ? at + memory_of(step) - biases_of(step) : nullptr;
    s->arenas = n->arenas;
    s->arena = n->arena;
    if (!step->int8)
        return;
    struct network_integers *q = &n->integers[i];
    const size_t channels = step->out.channels;
    q->words = (unsigned int)words_of(step);
    q->k = (unsigned int)products_of(step);
    q->rounded = n->rounded;
    q->item = n->rounded_item;
    q->weights = reinterpret_cast<const int *>(at);
    q->sums = q->weights + (size_t)step->kernel[0] * step->kernel[1] * q->words * channels;
    q->scales = reinterpret_cast<const float *>(q->sums + channels);
    q->zeros = reinterpret_cast<const int *>(q->scales + channels);
    q->per_scale = 1.0F / step->int8->input_scale;
    q->zero = step->int8->input_zero;
}

// Packs the weights of all steps and copies them to the device.
enum status upload_weights(struct network *n, struct error *err)
{
    float *packed = static_cast<float *>(calloc(n->weight_floats, sizeof *packed));
    if (!packed)
        return error_no_memory(err, "device cuda: weights");
    float *at = packed;
    for (size_t i = 0; i < n->step_count; i++) {
        const struct network_step *step = &n->steps[i];
        if (step->int8)
            pack_integers(at, step);
        else
            pack_floats(at, step);
        if (biases_of(step) > 0)
            memcpy(at + memory_of(step) - biases_of(step), step->bias,
                   biases_of(step) * sizeof *at);
        prepare(n, i, n->weights + (at - packed));
        at += memory_of(step);
    }
    enum status status =
        cuda_check(n->cuda,
                   cudaMemcpyAsync(n->weights, packed, n->weight_floats * sizeof *packed,
                                   cudaMemcpyHostToDevice, n->cuda->tensors),
                   "cudaMemcpyAsync", err);
    if (status == STATUS_OK)
        status = cuda_check(n->cuda, cudaStreamSynchronize(n->cuda->tensors),
                            "cudaStreamSynchronize", err);
    free(packed);
    return status;
}

// ---- Making ---------------------------------------------------------------

size_t elements_of(const struct network_tensor *tensor)
{
    return (size_t)tensor->channels * tensor->height * tensor->width;
}

// Copies the plan and computes sizes.
enum status copy_plan(struct network *n, const struct network_plan *plan, struct error *err)
{
    const size_t ends = plan->input_count + plan->output_count;
    n->step_count = plan->step_count;
    n->input_count = plan->input_count;
    n->output_count = plan->output_count;
    n->arena = plan->arena;
    n->steps = static_cast<struct network_step *>(calloc(plan->step_count, sizeof *n->steps));
    n->arguments = static_cast<struct network_arguments *>(
        calloc(plan->step_count + ends, sizeof *n->arguments));
    n->integers =
        static_cast<struct network_integers *>(calloc(plan->step_count, sizeof *n->integers));
    if (!n->steps || !n->arguments || !n->integers)
        return error_no_memory(err, "device cuda: network");
    memcpy(n->steps, plan->steps, plan->step_count * sizeof *n->steps);
    n->weight_floats = 1; // cudaMalloc refuses a size of 0
    for (size_t i = 0; i < n->step_count; i++) {
        const struct network_step *step = &n->steps[i];
        const enum status status = check_step(n->cuda, step, err);
        if (status != STATUS_OK)
            return status;
        n->weight_floats += memory_of(step);
        const struct network_view in = view_of(&step->in[0]);
        const size_t rounded = (size_t)in.rows * in.columns * words_of(step) * 4;
        if (step->int8 && rounded > n->rounded_item)
            n->rounded_item = rounded;
    }
    for (size_t i = 0; i < ends; i++) {
        const bool is_input = i < n->input_count;
        const struct network_tensor *tensor =
            is_input ? &plan->inputs[i] : &plan->outputs[i - n->input_count];
        n->arguments[n->step_count + i].in = n->arguments[n->step_count + i].out = view_of(tensor);
        n->staged_floats += elements_of(tensor) * n->base.batch;
    }
    return STATUS_OK;
}

template <typename T>
enum status allocate(struct network *n, T **out, size_t count, struct error *err)
{
    void *memory = nullptr;
    const enum status status = cuda_check_memory(n->cuda, cudaMalloc(&memory, count * sizeof **out),
                                                 "cudaMalloc", count * sizeof **out, err);
    *out = static_cast<T *>(status == STATUS_OK ? memory : nullptr);
    return status;
}

enum status allocate_all(struct network *n, struct error *err)
{
    void *host = nullptr;
    const size_t host_bytes = n->staged_floats * sizeof *n->host;
    enum status status = allocate(n, &n->arenas, n->base.batch * n->arena, err);
    if (status == STATUS_OK && n->rounded_item > 0)
        status = allocate(n, &n->rounded, n->base.batch * n->rounded_item, err);
    if (status == STATUS_OK)
        status = allocate(n, &n->weights, n->weight_floats, err);
    if (status == STATUS_OK)
        status = allocate(n, &n->staged, n->staged_floats, err);
    if (status == STATUS_OK)
        status = cuda_check_memory(n->cuda, cudaHostAlloc(&host, host_bytes, cudaHostAllocPortable),
                                   "cudaHostAlloc", host_bytes, err);
    n->host = static_cast<float *>(host);
    for (size_t i = 0; i < n->input_count + n->output_count; i++) {
        n->arguments[n->step_count + i].arenas = n->arenas;
        n->arguments[n->step_count + i].arena = n->arena;
    }
    return status;
}

} // namespace

void cuda_network_free(struct device_network *network)
{
    struct network *n = network_of(network);
    (void)cudaStreamSynchronize(n->cuda->tensors);
    for (const struct graph &graph : n->graphs)
        if (graph.items > 0)
            (void)cudaGraphExecDestroy(graph.handle);
    (void)cudaFree(n->arenas);
    (void)cudaFree(n->rounded);
    (void)cudaFree(n->weights);
    (void)cudaFree(n->staged);
    (void)cudaFreeHost(n->host);
    free(n->steps);
    free(n->arguments);
    free(n->integers);
    free(n);
}

enum status cuda_network_new(struct device *device, struct device_network **out,
                             const struct network_plan *plan, size_t batch, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    if (batch > CUDA_GRID_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "device cuda:%d: a batch of %zu items: at most %zu are supported",
                         cuda->ordinal, batch, CUDA_GRID_MAX);
    struct network *n = static_cast<struct network *>(calloc(1, sizeof *n));
    if (!n)
        return error_no_memory(err, "device cuda: network");
    n->base.device = device;
    n->cuda = cuda;
    n->base.batch = batch;
    enum status status = copy_plan(n, plan, err);
    if (status == STATUS_OK)
        status = allocate_all(n, err);
    if (status == STATUS_OK)
        status = upload_weights(n, err);
    if (status != STATUS_OK) {
        cuda_network_free(&n->base);
        return status;
    }
    *out = &n->base;
    return STATUS_OK;
}

void cuda_network_memory(const struct device_network *network, struct network_memory *out)
{
    const struct network *n = network_of(network);
    out->weight_bytes = n->weight_floats * sizeof *n->weights;
    out->activation_bytes = n->base.batch * (n->arena * sizeof *n->arenas + n->rounded_item);
}

// ---- Running --------------------------------------------------------------

// Floats of an input or output of one item; place i counts the inputs, then the outputs.
static size_t end_size(const struct network *n, size_t i)
{
    const struct network_view *view = &n->arguments[n->step_count + i].in;
    return (size_t)view->channels * view->height * view->width;
}

static enum status copy(struct network *n, bool is_input, size_t at, size_t floats,
                        struct error *err)
{
    float *to = is_input ? n->staged : n->host, *from = is_input ? n->host : n->staged;
    return cuda_check(n->cuda,
                      cudaMemcpyAsync(to + at, from + at, floats * sizeof *to,
                                      is_input ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                      n->cuda->tensors),
                      "cudaMemcpyAsync", err);
}

// Queues all work of a run: inputs to the arenas, the steps, outputs to the host.
static enum status queue_run(struct network *n, size_t items, struct error *err)
{
    struct cuda *cuda = n->cuda;
    enum status status = STATUS_OK;
    size_t at = 0;
    for (size_t i = 0; i < n->input_count && status == STATUS_OK; i++) {
        const size_t floats = end_size(n, i) * items;
        status = copy(n, true, at, floats, err);
        if (status == STATUS_OK)
            status = cuda_network_load(cuda, &n->arguments[n->step_count + i], n->staged + at,
                                       items, err);
        at += floats;
    }
    for (size_t i = 0; i < n->step_count && status == STATUS_OK; i++)
        status = cuda_network_queue(cuda, &n->arguments[i],
                                    n->steps[i].int8 ? &n->integers[i] : nullptr, items, err);
    for (size_t i = n->input_count; i < n->input_count + n->output_count && status == STATUS_OK;
         i++) {
        const size_t floats = end_size(n, i) * items;
        status =
            cuda_network_store(cuda, &n->arguments[n->step_count + i], n->staged + at, items, err);
        if (status == STATUS_OK)
            status = copy(n, false, at, floats, err);
        at += floats;
    }
    return status;
}

// Captures a run as a graph; a capture that has begun is always ended.
static enum status capture(struct network *n, size_t items, cudaGraphExec_t *out, struct error *err)
{
    struct cuda *cuda = n->cuda;
    cudaGraph_t graph = nullptr;
    enum status status =
        cuda_check(cuda, cudaStreamBeginCapture(cuda->tensors, cudaStreamCaptureModeThreadLocal),
                   "cudaStreamBeginCapture", err);
    if (status != STATUS_OK)
        return status;
    status = queue_run(n, items, err);
    const cudaError_t code = cudaStreamEndCapture(cuda->tensors, &graph);
    if (status == STATUS_OK)
        status = cuda_check(cuda, code, "cudaStreamEndCapture", err);
    if (status == STATUS_OK)
        status = cuda_check(cuda, cudaGraphInstantiate(out, graph, 0), "cudaGraphInstantiate", err);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return status;
}

// The graph of a run of so many items, captured when it is first needed.
static enum status find_graph(struct network *n, size_t items, cudaGraphExec_t *out,
                              struct error *err)
{
    for (const struct graph &graph : n->graphs)
        if (graph.items == items) {
            *out = graph.handle;
            return STATUS_OK;
        }
    const enum status status = capture(n, items, out, err);
    if (status != STATUS_OK)
        return status;
    struct graph *place = &n->graphs[n->next_graph++ % GRAPHS_MAX];
    if (place->items > 0)
        (void)cudaGraphExecDestroy(place->handle);
    place->items = items;
    place->handle = *out;
    return STATUS_OK;
}

enum status cuda_network_run(struct device_network *network, const float *const *inputs,
                             float *const *outputs, size_t items, struct error *err)
{
    struct network *n = network_of(network);
    cudaGraphExec_t graph = nullptr;
    enum status status = find_graph(n, items, &graph, err);
    if (status != STATUS_OK)
        return status;
    size_t at = 0;
    for (size_t i = 0; i < n->input_count; i++) {
        memcpy(n->host + at, inputs[i], end_size(n, i) * items * sizeof *n->host);
        at += end_size(n, i) * items;
    }
    status = cuda_check(n->cuda, cudaGraphLaunch(graph, n->cuda->tensors), "cudaGraphLaunch", err);
    if (status == STATUS_OK)
        status = cuda_check(n->cuda, cudaStreamSynchronize(n->cuda->tensors),
                            "cudaStreamSynchronize", err);
    for (size_t i = 0; i < n->output_count && status == STATUS_OK; i++) {
        const size_t floats = end_size(n, n->input_count + i) * items;
        memcpy(outputs[i], n->host + at, floats * sizeof *n->host);
        at += floats;
    }
    return status;
}
