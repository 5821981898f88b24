#include "tests/support/network_reference.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

float *network_random_floats(uint64_t *seed, size_t count)
{
    float *floats = calloc(count, sizeof *floats);
    assert(floats);
    for (size_t i = 0; i < count; i++)
        floats[i] = (float)((double)(test_random(seed) >> 11) * 0x1p-53 * 2.0 - 1.0);
    return floats;
}

size_t network_elements(const struct network_tensor *tensor)
{
    return (size_t)tensor->height * tensor->width * tensor->channels;
}

size_t network_place_of(const struct network_tensor *tensor, size_t y, size_t x, size_t c)
{
    const size_t columns = (size_t)tensor->width + tensor->border[1] + tensor->border[3];
    return tensor->offset +
           ((y + tensor->border[0]) * columns + x + tensor->border[1]) * tensor->pitch + c;
}

void network_put(float *arena, const struct network_tensor *tensor, const float *from)
{
    for (size_t c = 0; c < tensor->channels; c++)
        for (size_t y = 0; y < tensor->height; y++)
            for (size_t x = 0; x < tensor->width; x++)
                arena[network_place_of(tensor, y, x, c)] = *from++;
}

static float *at(float *arena, const struct network_tensor *t, long y, long x, size_t c)
{
    return arena + network_place_of(t, (size_t)y, (size_t)x, c);
}

static bool is_inside(const struct network_tensor *t, long y, long x)
{
    return y >= 0 && y < (long)t->height && x >= 0 && x < (long)t->width;
}

// The input's element under tap (ky, kx) of the result (y, x); 0 outside of the input.
static double tap(const struct network_step *step, float *arena, long y, long x, uint32_t ky,
                  uint32_t kx, size_t c)
{
    const long iy = y * (long)step->stride[0] - (long)step->pad[0] + (long)ky * step->dilation[0];
    const long ix = x * (long)step->stride[1] - (long)step->pad[1] + (long)kx * step->dilation[1];
    return is_inside(&step->in[0], iy, ix) ? (double)*at(arena, &step->in[0], iy, ix, c) : 0.0;
}

static double conv(const struct network_step *step, float *arena, long y, long x, size_t o)
{
    const size_t inner = step->in[0].channels / step->groups;
    const size_t first = o / (step->out.channels / step->groups) * inner;
    const size_t k = (size_t)step->kernel[0] * step->kernel[1] * inner;
    const struct network_int8 *q = step->int8;
    const int zero = q && q->zeros ? q->zeros[o] : 0;
    double sum = 0.0;
    size_t i = 0;
    for (uint32_t ky = 0; ky < step->kernel[0]; ky++)
        for (uint32_t kx = 0; kx < step->kernel[1]; kx++)
            for (size_t c = 0; c < inner; c++, i++) {
                const double value = tap(step, arena, y, x, ky, kx, first + c);
                if (!q) {
                    sum += value * (double)step->weights[o * k + i];
                    continue;
                }
                double rounded =
                    (double)(rintf((float)value * (1.0F / q->input_scale)) + (float)q->input_zero);
                rounded = fmin(fmax(rounded, -128.0), 127.0) - q->input_zero;
                sum += rounded * (q->values[o * k + i] - zero);
            }
    return q ? sum * (double)(q->scales[o] * q->input_scale) : sum;
}

static double depthwise(const struct network_step *step, float *arena, long y, long x, size_t o)
{
    double sum = 0.0;
    for (uint32_t ky = 0; ky < step->kernel[0]; ky++)
        for (uint32_t kx = 0; kx < step->kernel[1]; kx++)
            sum += tap(step, arena, y, x, ky, kx, o) *
                   (double)step->weights[(ky * step->kernel[1] + kx) * step->out.channels + o];
    return sum;
}

static double pool(const struct network_step *step, float *arena, long y, long x, size_t c)
{
    double largest = -INFINITY, sum = 0.0, count = 0.0;
    for (uint32_t ky = 0; ky < step->kernel[0]; ky++)
        for (uint32_t kx = 0; kx < step->kernel[1]; kx++) {
            const long iy =
                y * (long)step->stride[0] - (long)step->pad[0] + (long)ky * step->dilation[0];
            const long ix =
                x * (long)step->stride[1] - (long)step->pad[1] + (long)kx * step->dilation[1];
            if (!is_inside(&step->in[0], iy, ix))
                continue;
            const double value = (double)*at(arena, &step->in[0], iy, ix, c);
            largest = fmax(largest, value);
            sum += value;
            count++;
        }
    return step->op == NETWORK_MAX_POOL ? largest : sum / count;
}

// The result (y, x, c) before the activation.
static double element(const struct network_step *step, float *arena, long y, long x, size_t c)
{
    const struct network_tensor *in = &step->in[0], *second = &step->in[1];
    const bool is_pixel = second->height == 1 && second->width == 1;
    const double bias = step->bias ? (double)step->bias[c] : 0.0;
    const double added =
        step->inputs > 1 && (step->op == NETWORK_CONV || step->op == NETWORK_DEPTHWISE)
            ? (double)*at(arena, second, y, x, c)
            : 0.0;
    switch (step->op) {
    case NETWORK_CONV:
        return conv(step, arena, y, x, c) + bias + added;
    case NETWORK_DEPTHWISE:
        return depthwise(step, arena, y, x, c) + bias + added;
    case NETWORK_MAX_POOL:
    case NETWORK_AVERAGE_POOL:
        return pool(step, arena, y, x, c);
    case NETWORK_UPSAMPLE:
        return (double)*at(arena, in, y / (long)step->kernel[0], x / (long)step->kernel[1], c);
    case NETWORK_EMBED:
        return (double)step->weights[(size_t)*at(arena, in, y, x, 0) * step->out.channels + c];
    case NETWORK_ADD:
        return (double)*at(arena, in, y, x, c) + (double)*at(arena, second, y, x, c);
    case NETWORK_MULTIPLY:
        return (double)*at(arena, in, y, x, c) *
               (double)*at(arena, second, is_pixel ? 0 : y, is_pixel ? 0 : x, c);
    case NETWORK_COPY:
        return (double)*at(arena, in, y, x, c);
    case NETWORK_GRU:
    case NETWORK_OP_COUNT:
        break;
    }
    assert(!"an operation of elements");
    return 0.0;
}

static double activate(double x, enum network_activation activation)
{
    switch (activation) {
    case NETWORK_RELU:
        return fmax(x, 0.0);
    case NETWORK_RELU6:
        return fmin(fmax(x, 0.0), 6.0);
    case NETWORK_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case NETWORK_TANH:
        return tanh(x);
    case NETWORK_LINEAR:
    case NETWORK_SOFTMAX:
        break;
    }
    return x;
}

static void softmax(float *x, size_t n)
{
    double largest = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, (double)x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - largest);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(exp((double)x[i] - largest) / sum);
}

// bias + sum_i weights[i] * x[i]
static double gate(const float *weights, const float *x, size_t n, const float *bias)
{
    double sum = bias ? (double)*bias : 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (double)weights[i] * (double)x[i];
    return sum;
}

// The next state of a unit.  GRU, arXiv:1406.1078, with the reset behind the product, as in
// PyTorch.
static double gru_unit(const struct network_step *step, const float *x, const float *state,
                       size_t unit)
{
    const size_t units = step->out.channels, inputs = step->in[0].channels;
    const float *own = step->weights, *recurrent = own + 3 * units * inputs;
    double sums[2][3];
    for (size_t g = 0; g < 3; g++) {
        const size_t row = g * units + unit;
        const float *bias = step->bias ? step->bias + row : NULL;
        sums[0][g] = gate(own + row * inputs, x, inputs, bias);
        sums[1][g] = gate(recurrent + row * units, state, units, bias ? bias + 3 * units : NULL);
    }
    const double reset = activate(sums[0][0] + sums[1][0], NETWORK_SIGMOID);
    const double update = activate(sums[0][1] + sums[1][1], NETWORK_SIGMOID);
    const double candidate = tanh(sums[0][2] + reset * sums[1][2]);
    return (1.0 - update) * candidate + update * (double)state[unit];
}

static void gru(const struct network_step *step, float *arena)
{
    enum { UNITS_MAX = 4096 };
    static _Thread_local float state[2][UNITS_MAX];
    const size_t units = step->out.channels;
    const bool is_sequence = step->out.width > 1 || step->in[0].width == 1;
    assert(units <= UNITS_MAX);
    memset(state, 0, sizeof state);
    for (uint32_t t = 0; t < step->in[0].width; t++) {
        const float *x = at(arena, &step->in[0], 0, t, 0);
        for (size_t u = 0; u < units; u++)
            state[1][u] = (float)gru_unit(step, x, state[0], u);
        memcpy(state[0], state[1], units * sizeof *state[0]);
        for (size_t u = 0; u < units && (is_sequence || t + 1 == step->in[0].width); u++)
            *at(arena, &step->out, 0, is_sequence ? t : 0, u) =
                (float)activate((double)state[0][u], step->activation);
    }
}

static void zero_border(const struct network_tensor *t, float *arena)
{
    for (long y = -(long)t->border[0]; y < (long)t->height + (long)t->border[2]; y++)
        for (long x = -(long)t->border[1]; x < (long)t->width + (long)t->border[3]; x++)
            if (!is_inside(t, y, x))
                memset(at(arena, t, y, x, 0), 0, t->channels * sizeof *arena);
}

void network_step_reference(const struct network_step *step, float *arena)
{
    const struct network_tensor *out = &step->out;
    zero_border(out, arena);
    if (step->op == NETWORK_GRU) {
        gru(step, arena);
        return;
    }
    for (long y = 0; y < (long)out->height; y++)
        for (long x = 0; x < (long)out->width; x++) {
            for (size_t c = 0; c < out->channels; c++)
                *at(arena, out, y, x, c) =
                    (float)activate(element(step, arena, y, x, c), step->activation);
            if (step->activation == NETWORK_SOFTMAX)
                softmax(at(arena, out, y, x, 0), out->channels);
        }
}
