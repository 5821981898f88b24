// Weights of steps in the order in which kernels read them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/cpu/network/network_cpu.h"
#include "server/device/cpu/network/network_int8.h"

// ELEMENT_WORK: products of a convolution that take as long as an element of an addition or a pool.
enum { ALIGNMENT = 64, GATES = 3, ELEMENT_WORK = 8 };

size_t network_tensor_row(const struct network_tensor *tensor)
{
    return ((size_t)tensor->width + tensor->border[1] + tensor->border[3]) * tensor->pitch;
}

size_t network_tensor_begin(const struct network_tensor *tensor)
{
    return tensor->offset + tensor->border[0] * network_tensor_row(tensor) +
           (size_t)tensor->border[1] * tensor->pitch;
}

static float *allocate(struct cpu_step *step, size_t floats)
{
    const size_t size = (floats * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    step->packed = aligned_alloc(ALIGNMENT, size);
    if (step->packed)
        memset(step->packed, 0, size);
    step->packed_floats = floats;
    return step->packed;
}

// Runs of a convolution: rows of the kernel, or the whole kernel, if their elements are next to
// each other; otherwise taps.
static bool list_runs(struct network_tiles *tiles, const struct network_step *step, size_t inner)
{
    const struct network_tensor *in = &step->in[0];
    size_t rows = step->kernel[0], columns = step->kernel[1];
    const size_t row = network_tensor_row(in) * step->dilation[0];
    const size_t column = (size_t)in->pitch * step->dilation[1];
    tiles->length = inner;
    if (column == inner || columns == 1) {
        tiles->length *= columns;
        columns = 1;
        if (row == tiles->length || rows == 1) {
            tiles->length *= rows;
            rows = 1;
        }
    }
    tiles->run_count = rows * columns;
    tiles->runs = calloc(tiles->run_count, sizeof *tiles->runs);
    for (size_t i = 0; tiles->runs && i < tiles->run_count; i++)
        tiles->runs[i] = i / columns * row + i % columns * column;
    return tiles->runs != NULL;
}

static void set_bounds(struct network_tiles *tiles, enum network_activation activation)
{
    const bool is_bounded = activation == NETWORK_RELU || activation == NETWORK_RELU6;
    tiles->least = is_bounded ? 0.0F : -INFINITY;
    tiles->most = activation == NETWORK_RELU6 ? 6.0F : INFINITY;
}

static void set_steps(struct network_tiles *tiles, const struct network_step *step)
{
    const struct network_tensor *in = &step->in[0], *out = &step->out, *add = &step->in[1];
    const size_t row = network_tensor_row(in);
    tiles->in = network_tensor_begin(in) - step->pad[0] * row - (size_t)step->pad[1] * in->pitch;
    tiles->out = network_tensor_begin(out);
    tiles->in_step = (size_t)step->stride[1] * in->pitch;
    tiles->out_step = out->pitch;
    tiles->width = out->width;
    tiles->in_wrap = step->stride[0] * row - out->width * tiles->in_step; // may wrap around
    tiles->out_wrap = network_tensor_row(out) - out->width * tiles->out_step;
    tiles->adds = step->inputs > 1;
    if (tiles->adds) {
        tiles->add = network_tensor_begin(add);
        tiles->add_step = add->pitch;
        tiles->add_wrap = network_tensor_row(add) - add->width * tiles->add_step;
    }
}

// Vectors of the next block, of `left`: the fewest blocks, none of them with one vector if
// possible.  For one pixel pairs only, several of which are computed at once.
static uint32_t block_vectors(size_t left, bool is_single)
{
    if (left == 3 && !is_single)
        return 3;
    return left >= 2 ? 2 : 1;
}

// Weight `i` of output channel `o`.
typedef float weight_at(const struct network_step *step, size_t o, size_t i, size_t k);

static float conv_weight(const struct network_step *step, size_t o, size_t i, size_t k)
{
    return step->weights[o * k + i];
}

static float depthwise_weight(const struct network_step *step, size_t o, size_t i, size_t k)
{
    (void)k;
    return step->weights[i * step->out.channels + o];
}

// Packs `groups` groups of channels, whose weights are `k` each.
static enum status pack_blocks(struct cpu_step *step, size_t groups, size_t k, weight_at *weight,
                               struct error *err)
{
    struct network_tiles *tiles = &step->tiles;
    const struct network_step *from = &step->step;
    const size_t lanes = step->kernels->lanes, channels = from->out.channels / groups;
    const bool is_single = from->op == NETWORK_DEPTHWISE || from->out.height * from->out.width == 1;
    const size_t vectors = (channels + lanes - 1) / lanes;
    tiles->blocks = calloc(groups * vectors, sizeof *tiles->blocks);
    float *to = allocate(step, groups * vectors * lanes * (k + 1));
    if (!tiles->blocks || !to)
        return error_no_memory(err, "network");
    for (size_t g = 0; g < groups; g++) {
        for (size_t left = vectors; left > 0;) {
            struct network_block *block = &tiles->blocks[tiles->block_count++];
            block->vectors = from->op == NETWORK_DEPTHWISE ? 1 : block_vectors(left, is_single);
            const size_t first = (vectors - left) * lanes, width = block->vectors * lanes;
            block->channel = (uint32_t)(g * channels + first);
            block->channels = (uint32_t)(channels - first < width ? channels - first : width);
            block->in = (uint32_t)(g * (from->in[0].channels / groups));
            block->weights = to;
            for (size_t i = 0; i < k; i++, to += width)
                for (size_t o = 0; o < block->channels; o++)
                    to[o] = weight(from, block->channel + o, i, k);
            block->bias = to;
            for (size_t o = 0; from->bias && o < block->channels; o++)
                to[o] = from->bias[block->channel + o];
            to += width;
            left -= block->vectors;
        }
    }
    return STATUS_OK;
}

static enum status pack_embed(struct cpu_step *step, struct error *err)
{
    const size_t floats = (size_t)step->step.kernel[0] * step->step.out.channels;
    float *to = allocate(step, floats);
    if (!to)
        return error_no_memory(err, "network");
    memcpy(to, step->step.weights, floats * sizeof *to);
    step->weights = to;
    return STATUS_OK;
}

static enum status pack_conv(struct cpu_step *step, struct error *err)
{
    const struct network_step *from = &step->step;
    const size_t inner = from->in[0].channels / from->groups;
    const size_t k = (size_t)from->kernel[0] * from->kernel[1] * inner;
    set_steps(&step->tiles, from);
    if (!list_runs(&step->tiles, from, inner))
        return error_no_memory(err, "network");
    step->work = k * from->out.channels * step->units;
    const enum status status = pack_blocks(step, from->groups, k, conv_weight, err);
    if (status != STATUS_OK)
        return status;
    if (step->units == 1) { // threads divide the channels
        step->by_block = true;
        step->units = step->tiles.block_count;
    }
    return STATUS_OK;
}

static enum status pack_depthwise(struct cpu_step *step, struct error *err)
{
    const struct network_step *from = &step->step;
    struct network_tiles *tiles = &step->tiles;
    const size_t taps = (size_t)from->kernel[0] * from->kernel[1];
    set_steps(tiles, from);
    tiles->length = 1;
    tiles->run_count = taps;
    tiles->runs = calloc(taps, sizeof *tiles->runs);
    if (!tiles->runs)
        return error_no_memory(err, "network");
    for (size_t i = 0; i < taps; i++)
        tiles->runs[i] =
            i / from->kernel[1] * network_tensor_row(&from->in[0]) * from->dilation[0] +
            i % from->kernel[1] * from->in[0].pitch * from->dilation[1];
    step->work = taps * from->out.channels * step->units;
    return pack_blocks(step, 1, taps, depthwise_weight, err);
}

// A GRU computes the products of its inputs for all pixels as a convolution into the scratch, then
// state after state.  Gates begin at multiples of `lanes`.
static enum status pack_gru(struct cpu_step *step, struct error *err)
{
    struct network_step *from = &step->step;
    const size_t lanes = step->kernels->lanes, units = from->out.channels;
    const size_t padded = (units + lanes - 1) / lanes * lanes, in = from->in[0].channels;
    const size_t rows = GATES * padded;
    // Behind the products: the state's products, and two states.
    step->scratch = from->in[0].width * rows + rows + 2 * padded;
    float *to = allocate(step, rows * (in + 1 + units + 1));
    struct network_tiles *tiles = &step->tiles;
    const size_t width = 2 * lanes, blocks = (rows + width - 1) / width;
    tiles->blocks = calloc(blocks, sizeof *tiles->blocks);
    tiles->runs = calloc(1, sizeof *tiles->runs);
    if (!to || !tiles->blocks || !tiles->runs)
        return error_no_memory(err, "network");
    tiles->in = network_tensor_begin(&from->in[0]);
    tiles->in_step = from->in[0].pitch;
    tiles->out_step = rows;
    tiles->width = from->in[0].width;
    tiles->run_count = 1;
    tiles->length = in;
    tiles->block_count = blocks;
    set_bounds(tiles, NETWORK_LINEAR);        // of the products; states have the step's activation
    for (size_t b = 0; b < 2 * blocks; b++) { // those of the input, then those of the state
        const bool is_state = b >= blocks;
        const size_t first = (is_state ? b - blocks : b) * width, k = is_state ? units : in;
        const size_t count = rows - first < width ? rows - first : width;
        const float *weights = from->weights + (is_state ? GATES * units * in : 0);
        const float *bias = from->bias ? from->bias + (is_state ? GATES * units : 0) : NULL;
        if (b == blocks)
            step->weights = to;
        else if (!is_state)
            tiles->blocks[b] = (struct network_block){.weights = to,
                                                      .bias = to + k * count,
                                                      .channel = (uint32_t)first,
                                                      .channels = (uint32_t)count,
                                                      .vectors = (uint32_t)(count / lanes)};
        for (size_t i = 0; i <= k; i++, to += count) {
            for (size_t o = 0; o < count; o++) {
                const size_t gate = (first + o) / padded, unit = (first + o) % padded;
                if (unit < units && i < k)
                    to[o] = weights[(gate * units + unit) * k + i];
                else if (unit < units && bias)
                    to[o] = bias[gate * units + unit];
            }
        }
    }
    step->work = GATES * units * (in + units) * from->in[0].width;
    step->units = 1;
    return STATUS_OK;
}

enum status cpu_step_pack(struct cpu_step *step, struct error *err)
{
    const struct network_step *from = &step->step;
    const size_t channels = from->out.channels;
    step->run = step->kernels->ops[from->op];
    set_bounds(&step->tiles, from->activation);
    step->units = (size_t)from->out.height * from->out.width;
    step->work = step->units * channels;
    switch (from->op) {
    case NETWORK_CONV:
        return pack_conv(step, err);
    case NETWORK_DEPTHWISE:
        return pack_depthwise(step, err);
    case NETWORK_GRU:
        return pack_gru(step, err);
    case NETWORK_EMBED:
        return pack_embed(step, err);
    case NETWORK_MAX_POOL:
    case NETWORK_AVERAGE_POOL:
        step->work *= (uint64_t)from->kernel[0] * from->kernel[1] * ELEMENT_WORK;
        break;
    case NETWORK_UPSAMPLE:
    case NETWORK_ADD:
    case NETWORK_MULTIPLY:
    case NETWORK_COPY:
        step->work *= ELEMENT_WORK;
        break;
    case NETWORK_OP_COUNT:
        break;
    }
    return STATUS_OK;
}

void cpu_step_free(struct cpu_step *step)
{
    int8_conv_free(step->int8);
    free(step->packed);
    free(step->tiles.runs);
    free(step->tiles.blocks);
}
