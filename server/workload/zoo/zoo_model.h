// Small models as text: parses a description into layers, infers and checks their shapes, and
// counts parameters and multiplications.  inferstat-worker(1) describes the language:
//
//     x = sound -> conv 64 10x4 stride 2 norm relu
//     y = x -> 4 * (depthwise 3 norm relu -> conv 64 1 norm relu)
//
// Sources are inputs and names of lines above, so a model has no cycles.  `same` pads as TensorFlow
// does; norm is batch norm; gru takes a sequence, or a map of height 1.  `like` repeats a line with
// one source; where that line uses its source once more (`add x`), the new line uses its own.
//
// A parsed model is immutable; any thread may read it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/network.h"

enum {
    ZOO_NAME_SIZE = 48,
    ZOO_LAYERS_MAX = 512,
    ZOO_SOURCES_MAX = 8,
    ZOO_INPUTS_MAX = 4,
    ZOO_OUTPUTS_MAX = 8,
    ZOO_TENSORS_MAX = 6,        // tensors of one layer
    ZOO_TEXT_MAX = 1024 * 1024, // bytes of a description
    ZOO_IDS_MAX = 512,          // vocabulary of an input of ids
};

// Layers in the order of execution.  `dense`, `conv` and others carry their norm and activation.
enum zoo_kind {
    ZOO_INPUT, // of `vocabulary` ids if that is not 0
    ZOO_CONV,
    ZOO_DEPTHWISE,
    ZOO_DENSE, // over the flattened input, in the order of PyTorch: (channels, height, width)
    ZOO_EMBED, // ids (1, length) to a sequence of vectors
    ZOO_GRU,
    ZOO_MAX_POOL,
    ZOO_AVERAGE_POOL,
    ZOO_UPSAMPLE,
    ZOO_ADD,
    ZOO_MULTIPLY,
    ZOO_CONCAT,   // of the channels
    ZOO_ACTIVATE, // an activation of its own
    ZOO_KIND_COUNT
};

struct zoo_shape {
    uint32_t channels, height, width;
    unsigned int rank; // 1: features, 2: (channels, width), 3: (channels, height, width)
};

struct zoo_layer {
    enum zoo_kind kind;
    enum network_activation activation;
    char name[ZOO_NAME_SIZE]; // line and place, such as "y.2": names of its weights begin with it
    unsigned int line;        // of the text, from 1
    size_t sources[ZOO_SOURCES_MAX]; // indices of earlier layers
    size_t source_count;
    struct zoo_shape shape; // of the result
    uint32_t kernel[2], stride[2], dilation[2];
    uint32_t pad[4]; // above, left, below, right
    uint32_t groups, vocabulary;
    bool bias, norm, last;
    size_t weights_of;   // the layer that owns the weights: its own index, or another with `like`
    size_t first_tensor; // of the model's tensors; those of `weights_of`
    size_t tensor_count;
    uint64_t macs; // multiplications with additions of one item
};

// A weight tensor, in the layout of PyTorch; rows of `dims[0]`.
//   conv, depthwise  weight (out, in / groups, kernel...), bias (out)
//   dense            weight (out, in), bias (out)
//   norm             norm.weight, norm.bias, norm.mean, norm.variance (channels); epsilon 1e-5
//   embed            weight (vocabulary, dim)
//   gru              weight_ih (3 units, in), weight_hh (3 units, units), bias_ih, bias_hh (3
//   units);
//                    gates reset, update, new
struct zoo_tensor {
    char name[ZOO_NAME_SIZE + 16]; // LAYER.weight
    uint32_t dims[4];
    unsigned int rank;
    size_t elements;
};

struct zoo_model {
    char name[ZOO_NAME_SIZE], category[16], task[128];
    double stated_parameters; // 0: not stated
    bool exactly;             // the count must be the stated one; otherwise within 10 %
    struct zoo_layer *layers;
    size_t layer_count;
    struct zoo_tensor *tensors;
    size_t tensor_count;
    size_t inputs[ZOO_INPUTS_MAX], outputs[ZOO_OUTPUTS_MAX]; // layers
    size_t input_count, output_count;
    uint64_t parameters, macs;
    char *text; // the description
};

// Parses `size` bytes of text.  `path` begins the messages.  Fails with STATUS_CORRUPT if the
// description is malformed or shapes do not match (`err` has line, layer and both shapes) or its
// parameters are not the stated ones, STATUS_UNSUPPORTED if it is too large, or STATUS_NOMEM.
MUST_CHECK enum status zoo_model_parse(struct zoo_model **out, const char *path, const char *text,
                                       size_t size, struct error *err);

// Reads and parses a file.  Fails as zoo_model_parse does, or with STATUS_NOT_FOUND,
// STATUS_DENIED or STATUS_IO.
MUST_CHECK enum status zoo_model_read(struct zoo_model **out, const char *path, struct error *err);

void zoo_model_free(struct zoo_model *model); // accepts NULL

// Models that are compiled in, by category and name.
struct zoo_text {
    const char *name, *text;
    size_t size;
};

extern const struct zoo_text zoo_texts[];
extern const size_t zoo_text_count;

// The one of that name, in upper or lower case; NULL: there is none.
const struct zoo_text *zoo_text_find(const char *name);

// Values of a result; UINT64_MAX if there are more.
uint64_t zoo_elements(const struct zoo_shape *shape);

// "3x96x96", for messages.
enum { ZOO_SHAPE_TEXT_SIZE = 40 };
const char *zoo_shape_text(char text[ZOO_SHAPE_TEXT_SIZE], const struct zoo_shape *shape);
