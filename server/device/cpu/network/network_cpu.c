#include "server/device/cpu/network/network_cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/cpu/network/network_int8.h"
#include "server/device/cpu/thread_pool.h"

enum {
    ALIGNMENT = 64,
    // Multiplications of a step below which waking the other threads costs more than it saves.
    PARALLEL_MIN = 48 * 1024,
    // Items that a thread runs together, step by step, where that reads the weights of dense layers
    // once for them; and the floats of their arenas, which should stay in the second cache.
    TOGETHER_MAX = 16,
    TOGETHER_FLOATS_MAX = 64 * 1024,
};

struct cpu_network {
    struct device_network base;
    const struct network_kernels *kernels;
    struct thread_pool *pool;
    struct cpu_step *steps;
    size_t step_count;
    struct network_tensor *inputs, *outputs;
    bool *clears_input; // whether other tensors use the memory of an input's border
    size_t input_count, output_count;
    float *arenas; // of `stride` floats; a step's scratch lies behind its arena
    size_t arena, stride, arena_count;
    size_t together; // items that a thread runs together, each in an arena
    size_t weight_floats;
};

const struct network_kernels *network_kernels_at(size_t i)
{
    const struct network_kernels *tables[3] = {&network_kernels_plain};
    size_t count = 1;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        tables[count++] = &network_kernels_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        tables[count++] = &network_kernels_avx512;
#endif
    return i < count ? tables[i] : NULL;
}

// ---- Making a network -----------------------------------------------------

static size_t end_of(const struct network_tensor *t)
{
    const size_t rows = (size_t)t->height + t->border[0] + t->border[2];
    return t->offset + rows * network_tensor_row(t) - t->pitch + t->channels;
}

// Whether what is written to the elements of `other` changes the border of `tensor`.  Pixels of
// the same shape at the same place, or slices of them, do not.
static bool spoils(const struct network_tensor *other, const struct network_tensor *tensor)
{
    if (other->offset >= end_of(tensor) || tensor->offset >= end_of(other))
        return false;
    const bool is_first = tensor->offset < other->offset;
    const size_t apart = is_first ? other->offset - tensor->offset : tensor->offset - other->offset;
    const bool is_slice = apart + (is_first ? other : tensor)->channels <= tensor->pitch;
    return !is_slice || other->height != tensor->height || other->width != tensor->width ||
           other->pitch != tensor->pitch ||
           memcmp(other->border, tensor->border, sizeof tensor->border) != 0;
}

static bool must_clear(const struct network_plan *plan, const struct network_tensor *tensor)
{
    static const uint32_t none[4];
    if (memcmp(tensor->border, none, sizeof none) == 0)
        return false;
    for (size_t i = 0; i < plan->input_count; i++)
        if (spoils(&plan->inputs[i], tensor))
            return true;
    for (size_t i = 0; i < plan->step_count; i++)
        if (spoils(&plan->steps[i].out, tensor))
            return true;
    return false;
}

static void *copy_of(const void *from, size_t size)
{
    void *to = malloc(size);
    if (to)
        memcpy(to, from, size);
    return to;
}

// A convolution in integers; activations that are not bounds follow in floats.
static void run_int8(const struct cpu_step *step, float *arena, float *scratch, size_t first,
                     size_t last)
{
    int8_conv_run(step->int8, scratch, arena, first, last);
    if (step->step.activation <= NETWORK_RELU6)
        return;
    struct cpu_step activate = {.step = step->step,
                                .kernels = step->kernels,
                                .tiles = {.least = -INFINITY, .most = INFINITY}};
    activate.step.op = NETWORK_COPY;
    activate.step.in[0] = step->step.out;
    activate.step.inputs = 1;
    activate.step.bias = NULL;
    step->kernels->ops[NETWORK_COPY](&activate, arena, scratch, first, last);
}

static enum status pack_int8(struct cpu_step *step, struct error *err)
{
    const struct network_step *from = &step->step;
    const bool is_plain = step->kernels == &network_kernels_plain;
    const struct int8_kernels *kernels = is_plain ? &int8_kernels_plain : int8_kernels_best();
    if (from->op != NETWORK_CONV)
        return error_set(err, STATUS_UNSUPPORTED,
                         "network: step '%.40s': integers of 8 bits are of convolutions only",
                         from->name);
    const enum status status = int8_conv_new(&step->int8, from, kernels, err);
    if (status != STATUS_OK)
        return status;
    step->run = run_int8;
    step->units = (size_t)from->out.height * from->out.width;
    step->work = step->units * from->out.channels * from->kernel[0] * from->kernel[1] *
                 (from->in[0].channels / from->groups);
    step->packed_floats = (int8_conv_weight_bytes(step->int8) + 3) / sizeof(float);
    step->scratch = (int8_conv_scratch(step->int8) + 3) / sizeof(float);
    return STATUS_OK;
}

// The narrowest vectors that hold the channels of a convolution, since processors take as long for
// unused lanes (Zen 4 twice as long for 16 as for 8).  Plain C is no choice: it rounds differently.
static const struct network_kernels *kernels_of(const struct cpu_network *network,
                                                const struct network_step *step)
{
    if (network->kernels == &network_kernels_plain ||
        (step->op != NETWORK_CONV && step->op != NETWORK_DEPTHWISE))
        return network->kernels;
    const size_t groups = step->op == NETWORK_CONV ? step->groups : 1;
    size_t i = 1;
    while (network_kernels_at(i) != network->kernels &&
           network_kernels_at(i)->lanes < step->out.channels / groups)
        i++;
    return network_kernels_at(i);
}

static enum status add_step(struct cpu_network *network, const struct network_plan *plan, size_t i,
                            struct error *err)
{
    struct cpu_step *step = &network->steps[network->step_count++];
    *step =
        (struct cpu_step){.step = plan->steps[i], .kernels = kernels_of(network, &plan->steps[i])};
    const enum status status = step->step.int8 ? pack_int8(step, err) : cpu_step_pack(step, err);
    step->clears = must_clear(plan, &step->step.out);
    network->weight_floats += step->packed_floats;
    if (network->stride < network->arena + step->scratch)
        network->stride = network->arena + step->scratch;
    return status;
}

// Of `most` items, which a thread has to run.
static size_t items_together(const struct cpu_network *network, size_t most)
{
    bool has_dense = false;
    for (size_t i = 0; i < network->step_count; i++)
        has_dense = has_dense || network->steps[i].by_block;
    if (most > TOGETHER_MAX)
        most = TOGETHER_MAX;
    if (most > TOGETHER_FLOATS_MAX / network->stride)
        most = TOGETHER_FLOATS_MAX / network->stride;
    return has_dense && most > 1 ? most : 1;
}

static enum status build(struct cpu_network *network, const struct network_plan *plan, size_t batch,
                         struct error *err)
{
    network->steps = calloc(plan->step_count, sizeof *network->steps);
    network->inputs = copy_of(plan->inputs, plan->input_count * sizeof *plan->inputs);
    network->outputs = copy_of(plan->outputs, plan->output_count * sizeof *plan->outputs);
    network->clears_input = calloc(plan->input_count, sizeof *network->clears_input);
    if (!network->steps || !network->inputs || !network->outputs || !network->clears_input)
        return error_no_memory(err, "network");
    network->input_count = plan->input_count;
    network->output_count = plan->output_count;
    network->arena = network->stride = plan->arena;
    for (size_t i = 0; i < plan->input_count; i++)
        network->clears_input[i] = must_clear(plan, &plan->inputs[i]);
    for (size_t i = 0; i < plan->step_count; i++) {
        const enum status status = add_step(network, plan, i, err);
        if (status != STATUS_OK)
            return status;
    }
    const size_t line = ALIGNMENT / sizeof(float), threads = thread_pool_threads(network->pool);
    network->stride = (network->stride + line - 1) / line * line;
    network->together = items_together(network, batch / threads);
    network->arena_count = batch < threads ? 1 : threads * network->together;
    if (network->stride > SIZE_MAX / sizeof(float) / network->arena_count)
        return error_no_memory(err, "network");
    const size_t size = network->stride * network->arena_count * sizeof(float);
    network->arenas = aligned_alloc(ALIGNMENT, size);
    if (!network->arenas)
        return error_no_memory(err, "network");
    memset(network->arenas, 0, size);
    return STATUS_OK;
}

enum status cpu_network_new_with(const struct network_kernels *kernels, struct device *device,
                                 struct device_network **out, const struct network_plan *plan,
                                 size_t batch, struct error *err)
{
    struct cpu_network *network = calloc(1, sizeof *network);
    if (!network)
        return error_no_memory(err, "network");
    network->base.device = device;
    network->base.batch = batch;
    network->kernels = kernels;
    network->pool = cpu_thread_pool(device);
    const enum status status = build(network, plan, batch, err);
    if (status != STATUS_OK) {
        cpu_network_free(&network->base);
        return status;
    }
    struct network_memory memory;
    cpu_network_memory(&network->base, &memory);
    device_count_memory(device, (int64_t)(memory.weight_bytes + memory.activation_bytes));
    *out = &network->base;
    return STATUS_OK;
}

enum status cpu_network_new(struct device *device, struct device_network **out,
                            const struct network_plan *plan, size_t batch, struct error *err)
{
    size_t best = 0;
    while (network_kernels_at(best + 1))
        best++;
    return cpu_network_new_with(network_kernels_at(best), device, out, plan, batch, err);
}

void cpu_network_free(struct device_network *base)
{
    struct cpu_network *network = (struct cpu_network *)base;
    if (network->arenas) {
        struct network_memory memory;
        cpu_network_memory(base, &memory);
        device_count_memory(base->device,
                            -(int64_t)(memory.weight_bytes + memory.activation_bytes));
    }
    for (size_t i = 0; i < network->step_count; i++)
        cpu_step_free(&network->steps[i]);
    free(network->steps);
    free(network->inputs);
    free(network->outputs);
    free(network->clears_input);
    free(network->arenas);
    free(network);
}

void cpu_network_memory(const struct device_network *base, struct network_memory *out)
{
    const struct cpu_network *network = (const struct cpu_network *)base;
    *out = (struct network_memory){.weight_bytes = network->weight_floats * sizeof(float),
                                   .activation_bytes =
                                       network->stride * network->arena_count * sizeof(float)};
}

// ---- Running --------------------------------------------------------------

static void clear_border(const struct network_tensor *t, float *arena)
{
    const size_t row = network_tensor_row(t), size = t->channels * sizeof *arena;
    const size_t columns = (size_t)t->width + t->border[1] + t->border[3];
    for (size_t y = 0; y < (size_t)t->height + t->border[0] + t->border[2]; y++) {
        float *at = arena + t->offset + y * row;
        const bool is_border = y < t->border[0] || y >= (size_t)t->border[0] + t->height;
        for (size_t x = 0; x < columns; x++) {
            if (!is_border && x == t->border[1])
                x += t->width;
            if (x < columns)
                memset(at + x * t->pitch, 0, size);
        }
    }
}

struct part_task {
    const struct cpu_step *step;
    float *arena, *scratch;
    size_t parts;
};

static void run_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct part_task *task = context;
    const size_t units = task->step->units;
    task->step->run(task->step, task->arena, task->scratch, units * part / task->parts,
                    units * (part + 1) / task->parts);
}

static void put_input(const struct cpu_network *network, size_t i, const float *from, float *arena)
{
    const struct network_tensor *t = &network->inputs[i];
    const size_t plane = (size_t)t->height * t->width, row = network_tensor_row(t);
    if (network->clears_input[i])
        clear_border(t, arena);
    for (size_t y = 0; y < t->height; y++)
        network->kernels->interleave(arena + network_tensor_begin(t) + y * row, t->pitch,
                                     from + y * t->width, plane, t->channels, t->width);
}

static void get_output(const struct cpu_network *network, size_t i, float *to, const float *arena)
{
    const struct network_tensor *t = &network->outputs[i];
    const size_t plane = (size_t)t->height * t->width, row = network_tensor_row(t);
    for (size_t y = 0; y < t->height; y++)
        network->kernels->separate(to + y * t->width, plane,
                                   arena + network_tensor_begin(t) + y * row, t->pitch, t->channels,
                                   t->width);
}

static size_t elements(const struct network_tensor *t)
{
    return (size_t)t->height * t->width * t->channels;
}

struct run {
    const struct cpu_network *network;
    const float *const *inputs;
    float *const *outputs;
    size_t items;
    size_t threads; // that share a step
};

// A dense layer of several items as a convolution: their results are the pixels of a row.
static void run_dense(const struct cpu_step *step, float *arena, size_t stride, size_t items)
{
    struct cpu_step row = *step;
    row.by_block = false;
    row.tiles.width = (uint32_t)items;
    row.tiles.in_step = row.tiles.out_step = row.tiles.add_step = stride;
    row.step.out = (struct network_tensor){.height = 1,
                                           .width = (uint32_t)items,
                                           .channels = step->step.out.channels,
                                           .pitch = (uint32_t)stride,
                                           .offset = network_tensor_begin(&step->step.out)};
    step->run(&row, arena, NULL, 0, items);
}

// A dense layer's activations that are not bounds need all its channels.
static bool is_divisible(const struct cpu_step *step, size_t parts)
{
    return step->work >= PARALLEL_MIN && step->units >= parts &&
           !(step->by_block && step->step.activation > NETWORK_RELU6);
}

static void run_step(const struct run *run, const struct cpu_step *step, float *arena)
{
    struct part_task task = {.step = step,
                             .arena = arena,
                             .scratch = arena + run->network->arena,
                             .parts = run->threads};
    if (step->clears)
        clear_border(&step->step.out, arena);
    if (step->int8)
        int8_conv_round(step->int8, task.scratch, arena);
    if (run->threads > 1 && is_divisible(step, task.parts))
        thread_pool_run(run->network->pool, run_part, &task, task.parts);
    else
        step->run(step, arena, task.scratch, 0, step->units);
}

// Items first..first + count - 1, each in an arena.
static void run_group(const struct run *run, size_t first, size_t count, float *arenas)
{
    const struct cpu_network *network = run->network;
    const size_t stride = network->stride;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < network->input_count; i++)
            put_input(network, i, run->inputs[i] + (first + k) * elements(&network->inputs[i]),
                      arenas + k * stride);
    for (size_t i = 0; i < network->step_count; i++) {
        const struct cpu_step *step = &network->steps[i];
        if (step->by_block && !step->clears && count > 1)
            run_dense(step, arenas, stride, count);
        else
            for (size_t k = 0; k < count; k++)
                run_step(run, step, arenas + k * stride);
    }
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < network->output_count; i++)
            get_output(network, i, run->outputs[i] + (first + k) * elements(&network->outputs[i]),
                       arenas + k * stride);
}

static void run_items(void *context, size_t part, unsigned int thread)
{
    const struct run *run = context;
    const size_t together = run->network->together, first = part * together;
    const size_t left = run->items - first;
    run_group(run, first, left < together ? left : together,
              run->network->arenas + thread * together * run->network->stride);
}

enum status cpu_network_run(struct device_network *base, const float *const *inputs,
                            float *const *outputs, size_t items, struct error *err)
{
    (void)err;
    const struct cpu_network *network = (const struct cpu_network *)base;
    const size_t threads = thread_pool_threads(network->pool), together = network->together;
    struct run run = {
        .network = network, .inputs = inputs, .outputs = outputs, .items = items, .threads = 1};
    if (items >= threads) {
        thread_pool_run(network->pool, run_items, &run, (items + together - 1) / together);
        return STATUS_OK;
    }
    run.threads = threads;
    for (size_t item = 0; item < items; item++)
        run_group(&run, item, 1, network->arenas);
    return STATUS_OK;
}
