// Small neural networks as a whole: a device takes a planned network (steps with weights, and one
// arena for the activations), packs the weights, chooses a kernel for each step by its shape, and
// runs batches of items.  A CUDA device runs a batch as one graph.
//
// Activations are F32, (height, width, channels) with the channels next to each other; a sequence
// has height 1, a vector height and width 1.  The thread that opened the device makes all calls.
// Results do not depend on the number of threads, nor on the batch that an item is in.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/device.h"

enum network_op {
    NETWORK_CONV,      // also dense layers: the kernel covers the whole input
    NETWORK_DEPTHWISE, // groups == channels
    NETWORK_MAX_POOL,
    NETWORK_AVERAGE_POOL, // divides by the number of elements that lie inside the input
    NETWORK_UPSAMPLE,     // nearest, by whole factors (kernel)
    NETWORK_EMBED,        // in: ids as F32; weights (vocabulary, channels)
    NETWORK_GRU,          // in: sequence; out: sequence, or its last state if out.width is 1
    NETWORK_ADD,          // in[0] + in[1]
    NETWORK_MULTIPLY,     // in[0] * in[1]; in[1] may be 1 x 1 and is then broadcast over the pixels
    NETWORK_COPY,         // in to out, for concatenations that no step writes in place, activations
    NETWORK_OP_COUNT
};

// Applied to a step's result; softmax over the channels of each pixel.
enum network_activation {
    NETWORK_LINEAR,
    NETWORK_RELU,
    NETWORK_RELU6,
    NETWORK_SIGMOID,
    NETWORK_TANH,
    NETWORK_SOFTMAX,
};

// An activation in the arena of one item.  Element (y, x, c) is float
// offset + ((y + border[0]) * (width + border[1] + border[3]) + x + border[1]) * pitch + c.
struct network_tensor {
    uint32_t height, width, channels;
    uint32_t border[4]; // zeros above, left, below, right: padding of the steps that read it
    uint32_t pitch;     // floats from pixel to pixel: channels, more in a slice of a concatenation
    size_t offset;      // in floats
};

// Products of an output channel that a sum of 32 bits holds: 255 * 255 each.
enum { NETWORK_INT8_PRODUCTS_MAX = 33025 };

// Integers of 8 bits in place of a step's weights: weight i of output channel o is
// scales[o] * (values[o * k + i] - zeros[o]).  The input is rounded to integers by `input_scale`
// and `input_zero`, products are summed in integers.
struct network_int8 {
    const int8_t *values; // as `weights`
    const float *scales;  // (out.channels)
    const int8_t *zeros;  // (out.channels); NULL: all 0 (symmetric)
    float input_scale;
    int input_zero; // -128..127
};

struct network_step {
    enum network_op op;
    enum network_activation activation;
    struct network_tensor in[2], out; // in[1] of a CONV or DEPTHWISE: added before the activation
    unsigned int inputs;
    uint32_t kernel[2], stride[2], dilation[2], pad[2]; // height, width; pad: above, left
    uint32_t groups;
    // CONV: (out.channels, kernel[0], kernel[1], in.channels / groups); DEPTHWISE: (kernel[0],
    // kernel[1], out.channels); SCALE: (channels); EMBED: (kernel[0] = vocabulary, channels); GRU:
    // input weights (3, units, channels), then state weights (3, units, units), gates in the order
    // reset, update, new.
    const float *weights;
    const float *bias; // (out.channels), or NULL; GRU: (6, units), those of the input first
    const struct network_int8 *int8; // NULL: F32
    char name[48];                   // for messages: the layer that it computes
};

// Where inputs are put before a run and outputs are after it.  The caller's arrays have the layout
// of PyTorch: (channels, height, width).
struct network_plan {
    const struct network_step *steps;
    size_t step_count;
    const struct network_tensor *inputs, *outputs;
    size_t input_count, output_count;
    size_t arena; // floats of one item
};

struct device_network;

// Takes a network for batches of at most `batch` items.  Copies `*plan` and all that it points to.
// Fails with STATUS_UNSUPPORTED if the device has no kernel for a step (`err` names it),
// STATUS_NOMEM, or STATUS_IO.
MUST_CHECK enum status device_network_new(struct device *device, struct device_network **out,
                                          const struct network_plan *plan, size_t batch,
                                          struct error *err);

// Runs `items` <= batch items.  inputs[i] is an array of all items' input i, (items, channels,
// height, width), and outputs[i] likewise; both in host memory.
MUST_CHECK enum status device_network_run(struct device_network *network,
                                          const float *const *inputs, float *const *outputs,
                                          size_t items, struct error *err);

struct network_memory {
    size_t weight_bytes;     // weights as packed for the kernels
    size_t activation_bytes; // all arenas
};

void device_network_memory(const struct device_network *network, struct network_memory *out);

void device_network_free(struct device_network *network); // accepts NULL
