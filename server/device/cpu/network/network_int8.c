#include "server/device/cpu/network/network_int8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/cpu/network/network_int8_lanes.h"

// Where an output pixel, and the rest of its step, lie: in the arena, but the input's kernel in the
// rounded input.
struct place {
    size_t in, out, add;
};

struct int8_conv {
    struct network_step step; // its weights are not used
    const struct int8_kernels *kernels;
    float *scales, *bias;     // (outputs): of the sums
    int32_t *offsets, *zeros; // (outputs): subtracted; times the sum of the inputs, too
    float input_scale;
    int input_zero;
    bool affine;                      // some zero is not 0
    uint32_t *runs;                   // (run_count)
    size_t run_count, run, run_space; // elements of a run, and with those up to a whole group
    size_t row, blocks;               // elements of a rounded row; blocks of a group's outputs
    size_t pixels;                    // of the rounded input
    struct place pixel, wrap;         // from pixel to pixel, and from behind a row to the next row
    int8_t *weights;                  // (groups, blocks, run_count, run_space, INT8_OUTPUTS)
    size_t weight_bytes;
};

// ---- Plain kernels --------------------------------------------------------

static void pixel_plain(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS])
{
    memset(sums[0], 0, sizeof sums[0]);
    const int8_t *weights = tile->weights;
    for (size_t r = 0; r < tile->run_count; r++) {
        const int16_t *in = (const int16_t *)tile->in[0] + tile->runs[r];
        for (size_t g = 0; g < tile->groups; g++, weights += 2 * INT8_OUTPUTS)
            for (size_t o = 0; o < INT8_OUTPUTS; o++)
                sums[0][o] += in[2 * g] * weights[2 * o] + in[2 * g + 1] * weights[2 * o + 1];
    }
}

static void round_plain(void *out, const float *in, size_t n, float inverse, int zero)
{
    int8_round_pairs(out, in, n, inverse, zero);
}

static void finish_plain(const struct int8_results *results, int32_t sums[][INT8_OUTPUTS],
                         size_t pixels)
{
    int8_finish(results, sums, pixels);
}

const struct int8_kernels int8_kernels_plain = {.name = "plain int8 1x16",
                                                .unit = 2,
                                                .pixels = 1,
                                                .tile = pixel_plain,
                                                .pixel = pixel_plain,
                                                .round = round_plain,
                                                .finish = finish_plain};

const struct int8_kernels *int8_kernels_best(void)
{
    const struct int8_kernels *best = NULL;
#if defined(__x86_64__)
    best = int8_kernels_vnni() ? int8_kernels_vnni() : int8_kernels_avx2();
#endif
    return best ? best : &int8_kernels_plain;
}

// ---- Packing --------------------------------------------------------------

static size_t inputs_of_group(const struct int8_conv *conv)
{
    return conv->step.in[0].channels / conv->step.groups;
}

static size_t outputs_of_group(const struct int8_conv *conv)
{
    return conv->step.out.channels / conv->step.groups;
}

static size_t element(const struct network_tensor *tensor, size_t y, size_t x)
{
    const size_t row = (size_t)tensor->width + tensor->border[1] + tensor->border[3];
    return tensor->offset + ((y + tensor->border[0]) * row + x + tensor->border[1]) * tensor->pitch;
}

static struct place place_at(const struct int8_conv *conv, size_t y, size_t x)
{
    const struct network_step *step = &conv->step;
    const struct network_tensor *in = &step->in[0];
    const size_t row = y * step->stride[0] + in->border[0] - step->pad[0];
    const size_t column = x * step->stride[1] + in->border[1] - step->pad[1];
    return (struct place){.in = row * conv->row + column * in->channels,
                          .out = element(&step->out, y, x),
                          .add = step->inputs > 1 ? element(&step->in[1], y, x) : 0};
}

static void move(struct place *place, const struct place *by, size_t times)
{
    place->in += by->in * times;
    place->out += by->out * times;
    place->add += by->add * times;
}

// Differences of places, which may be negative and wrap around.
static void find_strides(struct int8_conv *conv)
{
    const struct place first = place_at(conv, 0, 0);
    conv->pixel = place_at(conv, 0, 1);
    conv->wrap = place_at(conv, 1, 0);
    move(&conv->pixel, &first, SIZE_MAX); // minus once
    move(&conv->wrap, &first, SIZE_MAX);
    move(&conv->wrap, &conv->pixel, 0 - (size_t)conv->step.out.width);
}

// A row of the kernel is one run if its pixels lie next to each other.
static void find_runs(struct int8_conv *conv)
{
    const struct network_step *step = &conv->step;
    const size_t channels = step->in[0].channels;
    const bool joined = step->groups == 1 && step->dilation[1] == 1;
    const uint32_t columns = joined ? 1 : step->kernel[1];
    conv->run = joined ? step->kernel[1] * channels : inputs_of_group(conv);
    conv->run_space =
        (conv->run + conv->kernels->unit - 1) / conv->kernels->unit * conv->kernels->unit;
    conv->run_count = 0;
    for (uint32_t y = 0; y < step->kernel[0]; y++)
        for (uint32_t x = 0; x < columns; x++)
            conv->runs[conv->run_count++] =
                (uint32_t)(y * step->dilation[0] * conv->row + x * step->dilation[1] * channels);
}

// The weights of output channel `output`, `lane` of its block.  What fills the last group is zero,
// so that the inputs there do not matter.
static void pack_output(const struct int8_conv *conv, int8_t *block, size_t lane, size_t output)
{
    const size_t unit = conv->kernels->unit;
    const int8_t *values = conv->step.int8->values + output * conv->run_count * conv->run;
    for (size_t r = 0; r < conv->run_count; r++)
        for (size_t i = 0; i < conv->run; i++)
            block[(r * conv->run_space + i / unit * unit) * INT8_OUTPUTS + lane * unit + i % unit] =
                values[r * conv->run + i];
}

// The kernels sum w * (x - zero_x), or w * (x + 128) for a unit of 4, where the offset is the
// difference.
static void pack_epilogue(struct int8_conv *conv, size_t output)
{
    const struct network_int8 *int8 = conv->step.int8;
    const size_t products = conv->run_count * conv->run;
    int32_t weights = 0;
    for (size_t i = 0; i < products; i++)
        weights += int8->values[output * products + i];
    const int32_t zero = int8->zeros ? int8->zeros[output] : 0;
    const int32_t added = conv->kernels->unit == 4 ? 128 + int8->input_zero : 0;
    conv->zeros[output] = zero;
    conv->offsets[output] = added * weights;
    conv->affine = conv->affine || zero != 0;
    conv->scales[output] = int8->scales[output] * int8->input_scale;
    conv->bias[output] = conv->step.bias ? conv->step.bias[output] : 0.0F;
}

static void pack(struct int8_conv *conv)
{
    const size_t outputs = outputs_of_group(conv);
    const size_t block_bytes = conv->run_count * conv->run_space * INT8_OUTPUTS;
    for (size_t o = 0; o < conv->step.out.channels; o++) {
        const size_t block = o / outputs * conv->blocks + o % outputs / INT8_OUTPUTS;
        pack_output(conv, conv->weights + block * block_bytes, o % outputs % INT8_OUTPUTS, o);
        pack_epilogue(conv, o);
    }
}

static enum status allocate(struct int8_conv *conv, struct error *err)
{
    const struct network_step *step = &conv->step;
    const size_t outputs = step->out.channels;
    conv->runs = calloc((size_t)step->kernel[0] * step->kernel[1], sizeof *conv->runs);
    conv->scales = calloc(outputs, sizeof *conv->scales);
    conv->bias = calloc(outputs, sizeof *conv->bias);
    conv->offsets = calloc(outputs, sizeof *conv->offsets);
    conv->zeros = calloc(outputs, sizeof *conv->zeros);
    if (!conv->runs || !conv->scales || !conv->bias || !conv->offsets || !conv->zeros)
        return error_no_memory(err, step->name);
    find_runs(conv);
    find_strides(conv);
    conv->blocks = (outputs_of_group(conv) + INT8_OUTPUTS - 1) / INT8_OUTPUTS;
    conv->weight_bytes =
        step->groups * conv->blocks * conv->run_count * conv->run_space * INT8_OUTPUTS;
    conv->weights = calloc(conv->weight_bytes, 1);
    return conv->weights ? STATUS_OK : error_no_memory(err, step->name);
}

enum status int8_conv_new(struct int8_conv **out, const struct network_step *step,
                          const struct int8_kernels *kernels, struct error *err)
{
    const size_t products =
        (size_t)step->kernel[0] * step->kernel[1] * (step->in[0].channels / step->groups);
    if (products > NETWORK_INT8_PRODUCTS_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: %zu products of 8-bit integers an output: at most %d", step->name,
                         products, NETWORK_INT8_PRODUCTS_MAX);
    struct int8_conv *conv = calloc(1, sizeof *conv);
    if (!conv)
        return error_no_memory(err, step->name);
    const struct network_tensor *in = &step->in[0];
    const size_t width = in->width + in->border[1] + in->border[3];
    *conv = (struct int8_conv){.step = *step,
                               .kernels = kernels,
                               .row = width * in->channels,
                               .input_scale = step->int8->input_scale,
                               .input_zero = step->int8->input_zero};
    conv->pixels = width * (in->height + in->border[0] + in->border[2]);
    enum status status = allocate(conv, err);
    if (status != STATUS_OK) {
        int8_conv_free(conv);
        return status;
    }
    pack(conv);
    conv->step.int8 = NULL; // borrowed until here
    conv->step.bias = NULL;
    *out = conv;
    return STATUS_OK;
}

void int8_conv_free(struct int8_conv *conv)
{
    if (!conv)
        return;
    free(conv->runs);
    free(conv->scales);
    free(conv->bias);
    free(conv->offsets);
    free(conv->zeros);
    free(conv->weights);
    free(conv);
}

size_t int8_conv_weight_bytes(const struct int8_conv *conv)
{
    return conv->weight_bytes +
           conv->step.out.channels * (sizeof *conv->scales + sizeof *conv->bias);
}

// ---- Running --------------------------------------------------------------

static size_t element_size(const struct int8_conv *conv)
{
    return conv->kernels->unit == 2 ? sizeof(int16_t) : sizeof(uint8_t);
}

size_t int8_conv_scratch(const struct int8_conv *conv)
{
    // The last group of the last run may reach behind the input.
    return (conv->pixels * conv->step.in[0].channels + conv->kernels->unit) * element_size(conv);
}

void int8_conv_round(const struct int8_conv *conv, void *scratch, const float *arena)
{
    const struct network_tensor *in = &conv->step.in[0];
    const bool dense = in->pitch == in->channels;
    const size_t stretches = dense ? 1 : conv->pixels;
    const size_t elements = conv->pixels * in->channels, length = elements / stretches;
    unsigned char *bytes = scratch;
    for (size_t i = 0; i < stretches; i++)
        conv->kernels->round(bytes + i * length * element_size(conv),
                             arena + in->offset + i * in->pitch, length, 1.0F / conv->input_scale,
                             conv->input_zero);
    memset(bytes + elements * element_size(conv), 0, conv->kernels->unit * element_size(conv));
}

// The sum of the differences of a pixel's inputs from their zero.
static int32_t sum_inputs(const struct int8_conv *conv, const struct int8_tile *tile, size_t pixel)
{
    int32_t sum = 0;
    for (size_t r = 0; r < conv->run_count; r++)
        for (size_t i = 0; i < conv->run; i++)
            sum += conv->kernels->unit == 2
                       ? ((const int16_t *)tile->in[pixel])[conv->runs[r] + i]
                       : ((const uint8_t *)tile->in[pixel])[conv->runs[r] + i] - 128 -
                             conv->input_zero;
    return sum;
}

// Fills in the places of `count` pixels from `place`, column `x`, on, and puts both behind them.
// The last pixel stands in for those that the tile has beyond.
static void place_pixels(const struct int8_conv *conv, struct int8_tile *tile,
                         struct int8_results *results, const void *scratch, float *arena,
                         struct place *place, size_t *x, size_t count)
{
    const unsigned char *in = scratch;
    for (size_t p = 0; p < count; p++) {
        tile->in[p] = in + place->in * element_size(conv);
        results->out[p] = arena + place->out;
        results->add[p] = conv->step.inputs > 1 ? arena + place->add : NULL;
        move(place, &conv->pixel, 1);
        if (++*x == conv->step.out.width) {
            move(place, &conv->wrap, 1);
            *x = 0;
        }
    }
    for (size_t p = count; p < conv->kernels->pixels; p++)
        tile->in[p] = tile->in[count - 1];
}

static void run_tile(const struct int8_conv *conv, const struct int8_tile *tile,
                     const struct int8_results *results, const int32_t *zeros, size_t count)
{
    int32_t sums[INT8_PIXELS_MAX][INT8_OUTPUTS];
    if (count == 1)
        conv->kernels->pixel(tile, sums);
    else
        conv->kernels->tile(tile, sums);
    for (size_t p = 0; conv->affine && p < count; p++) {
        const int32_t sum = sum_inputs(conv, tile, p);
        for (size_t o = 0; o < tile->outputs; o++)
            sums[p][o] -= zeros[o] * sum;
    }
    conv->kernels->finish(results, sums, count);
}

// One block of output channels, from `channel` of group `group` on.
static void run_block(const struct int8_conv *conv, struct int8_tile *tile, const void *scratch,
                      float *arena, size_t group, size_t channel, size_t first, size_t last)
{
    const enum network_activation activation = conv->step.activation;
    const bool clamped = activation == NETWORK_RELU || activation == NETWORK_RELU6;
    struct int8_results results = {.offsets = conv->offsets + channel,
                                   .scales = conv->scales + channel,
                                   .bias = conv->bias + channel,
                                   .least = clamped ? 0.0F : -INFINITY,
                                   .most = activation == NETWORK_RELU6 ? 6.0F : INFINITY,
                                   .outputs = tile->outputs};
    const unsigned char *in = scratch;
    const size_t width = conv->step.out.width, pixels = conv->kernels->pixels;
    size_t x = first % width;
    struct place place = place_at(conv, first / width, x);
    for (size_t pixel = first; pixel < last;) {
        // Of few pixels one after another costs less than a tile.
        const size_t left = last - pixel;
        const size_t count = left >= pixels ? pixels : left > pixels / 2 ? left : 1;
        place_pixels(conv, tile, &results, in + group * inputs_of_group(conv) * element_size(conv),
                     arena + channel, &place, &x, count);
        run_tile(conv, tile, &results, conv->zeros + channel, count);
        pixel += count;
    }
}

void int8_conv_run(const struct int8_conv *conv, const void *scratch, float *arena, size_t first,
                   size_t last)
{
    const size_t outputs = outputs_of_group(conv);
    struct int8_tile tile = {.runs = conv->runs,
                             .run_count = conv->run_count,
                             .groups = conv->run_space / conv->kernels->unit,
                             .weights = conv->weights};
    for (size_t group = 0; group < conv->step.groups; group++) {
        for (size_t o = 0; o < outputs; o += INT8_OUTPUTS) {
            tile.outputs = outputs - o < INT8_OUTPUTS ? outputs - o : INT8_OUTPUTS;
            run_block(conv, &tile, scratch, arena, group, group * outputs + o, first, last);
            tile.weights += conv->run_count * conv->run_space * INT8_OUTPUTS;
        }
    }
}
