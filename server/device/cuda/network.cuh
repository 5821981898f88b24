// Kernels of small networks: a step's arguments and how its elements are addressed.  A launch has a
// thread for each channel of each pixel of the result, borders included, or for four pixels of it,
// in the first dimension of the grid, and the items of the batch in the second.
#pragma once

#include "server/device/cuda/parts.cuh"

extern "C" {
#include "server/device/network.h"
}

// An activation with its borders: struct network_tensor, prepared for kernels.
struct network_view {
    size_t first; // float of the arena at which the borders begin
    unsigned int height, width, channels, top, left;
    unsigned int rows, columns;    // with the borders
    unsigned int row_pitch, pitch; // floats from row to row, and from pixel to pixel
};

// Arguments of all kernels of steps.  Weights and biases lie in device memory.
struct network_arguments {
    enum network_op op;
    struct network_view in, second, out;
    enum network_activation activation;
    bool has_second;
    unsigned int kernel[2], stride[2], dilation[2], pad[2];
    unsigned int inner; // input channels of a group
    unsigned int groups;
    const float *weights, *bias; // bias: NULL, or as in struct network_step
    float *arenas;               // of all items
    size_t arena;                // floats of an item's
};

// Integers of a CONV of 8 bits.  Four channels of a pixel are in one word.
struct network_integers {
    int8_t *rounded;       // inputs of all items: (rows, columns, words * 4) each
    size_t item;           // bytes of an item's
    const int *weights;    // (kernel[0], kernel[1], words, out.channels)
    const int *sums;       // (out.channels): of the weights
    const float *scales;   // (out.channels): of weights times inputs
    const int *zeros;      // (out.channels)
    unsigned int words, k; // words of a pixel; products of a result
    float per_scale;       // 1 / scale of the inputs
    int zero;              // of the inputs
};

static __device__ inline float *network_item(const struct network_arguments &s)
{
    return s.arenas + blockIdx.y * s.arena;
}

// Element (y, x, c) of a view; y and x may lie in the border.
static __device__ inline size_t network_at(const struct network_view &view, int y, int x,
                                           unsigned int c)
{
    return view.first + (size_t)(y + (int)view.top) * view.row_pitch +
           (size_t)(x + (int)view.left) * view.pitch + c;
}

static __device__ inline bool network_inside(const struct network_view &view, int y, int x)
{
    return y >= 0 && y < (int)view.height && x >= 0 && x < (int)view.width;
}

static __device__ inline float network_sigmoid(float x)
{
    return 1.0F / (1.0F + expf(-x));
}

// A softmax is a kernel of its own behind the step's.
static __device__ inline float network_activate(float x, enum network_activation activation)
{
    switch (activation) {
    case NETWORK_RELU:
        return fmaxf(x, 0.0F);
    case NETWORK_RELU6:
        return fminf(fmaxf(x, 0.0F), 6.0F);
    case NETWORK_SIGMOID:
        return network_sigmoid(x);
    case NETWORK_TANH:
        return tanhf(x);
    case NETWORK_LINEAR:
    case NETWORK_SOFTMAX:
        break;
    }
    return x;
}

// Writes the result `sum` of element (y, x, c) of a CONV or DEPTHWISE; 0 in the border.
static __device__ inline void network_finish(const struct network_arguments &s, float *item, int y,
                                             int x, unsigned int c, float sum)
{
    float value = 0.0F;
    if (network_inside(s.out, y, x)) {
        value = sum + (s.bias ? s.bias[c] : 0.0F);
        if (s.has_second)
            value += item[network_at(s.second, y, x, c)];
        value = network_activate(value, s.activation);
    }
    item[network_at(s.out, y, x, c)] = value;
}

// Queues the kernels of a step for `items` items; `integers` is NULL for F32.
enum status cuda_network_queue(struct cuda *cuda, const struct network_arguments *s,
                               const struct network_integers *integers, size_t items,
                               struct error *err);

// Queue copies of an input from (items, channels, height, width) to the arenas, borders included,
// and of an output from the arenas.  `s` has the view, as `out` and `in`.
enum status cuda_network_load(struct cuda *cuda, const struct network_arguments *s,
                              const float *from, size_t items, struct error *err);
enum status cuda_network_store(struct cuda *cuda, const struct network_arguments *s, float *to,
                               size_t items, struct error *err);

constexpr unsigned int NETWORK_UNITS_MAX = 1024; // of a GRU
