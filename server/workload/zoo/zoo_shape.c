#include "server/workload/zoo/zoo_parser.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/array.h"

enum { HEIGHT, WIDTH };

const char *zoo_shape_text(char text[ZOO_SHAPE_TEXT_SIZE], const struct zoo_shape *shape)
{
    if (shape->rank == 1)
        (void)snprintf(text, ZOO_SHAPE_TEXT_SIZE, "%u", shape->channels);
    else if (shape->rank == 2)
        (void)snprintf(text, ZOO_SHAPE_TEXT_SIZE, "%ux%u", shape->channels, shape->width);
    else
        (void)snprintf(text, ZOO_SHAPE_TEXT_SIZE, "%ux%ux%u", shape->channels, shape->height,
                       shape->width);
    return text;
}

static const struct zoo_layer *source_of(const struct zoo_parser *parser,
                                         const struct zoo_layer *layer, size_t index)
{
    return &parser->model->layers[layer->sources[index]];
}

static enum status fail_pair(const struct zoo_parser *parser, const struct zoo_layer *layer,
                             size_t other)
{
    const struct zoo_layer *a = source_of(parser, layer, 0), *b = source_of(parser, layer, other);
    char one[ZOO_SHAPE_TEXT_SIZE], two[ZOO_SHAPE_TEXT_SIZE];
    return zoo_fail(parser, "shapes %s (%s) and %s (%s) do not match",
                    zoo_shape_text(one, &a->shape), a->name, zoo_shape_text(two, &b->shape),
                    b->name);
}

// The product, or UINT64_MAX if it does not fit.
static uint64_t product(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t result;
    if (__builtin_mul_overflow(a, b, &result) || __builtin_mul_overflow(result, c, &result))
        return UINT64_MAX;
    return result;
}

static enum status check_size(const struct zoo_parser *parser, const char *what, uint64_t elements)
{
    if (elements <= ZOO_ELEMENTS_MAX)
        return STATUS_OK;
    return zoo_fail_as(parser, STATUS_UNSUPPORTED, "%s of %llu elements (at most %d)", what,
                       (unsigned long long)elements, ZOO_ELEMENTS_MAX);
}

// Sets size and padding of one dimension that a kernel moves along.
static enum status slide(const struct zoo_parser *parser, const struct zoo_request *request,
                         struct zoo_layer *layer, int dimension, uint32_t in, uint32_t *out)
{
    const uint64_t covered =
        ((uint64_t)layer->kernel[dimension] - 1) * layer->dilation[dimension] + 1;
    const uint32_t stride = layer->stride[dimension];
    uint64_t before = request->layer.pad[dimension], after = before;
    if (before >= covered)
        return zoo_fail(parser, "pad %llu is not below the kernel's %llu",
                        (unsigned long long)before, (unsigned long long)covered);
    if (request->same) {
        const uint64_t steps = (in + (uint64_t)stride - 1) / stride;
        const uint64_t needed = (steps - 1) * stride + covered;
        const uint64_t total = needed > in ? needed - in : 0;
        before = total / 2;
        after = total - before;
    }
    const unsigned long long padded = in + before + after;
    if (padded < covered)
        return zoo_fail(parser, "a kernel over %llu does not fit in %llu, padding included",
                        (unsigned long long)covered, padded);
    *out = (uint32_t)((padded - covered) / stride + 1);
    layer->pad[dimension] = (uint32_t)before;
    layer->pad[dimension + 2] = (uint32_t)after;
    return STATUS_OK;
}

// Sets height, width and padding of the result of a kernel.
static enum status slide_both(const struct zoo_parser *parser, const struct zoo_request *request,
                              struct zoo_layer *layer, const struct zoo_shape *in)
{
    char text[ZOO_SHAPE_TEXT_SIZE];
    if (in->rank == 1)
        return zoo_fail(parser, "reads maps or sequences, not the vector %u", in->channels);
    layer->shape = *in;
    if (request->global) {
        layer->kernel[HEIGHT] = layer->stride[HEIGHT] = in->height;
        layer->kernel[WIDTH] = layer->stride[WIDTH] = in->width;
        layer->shape = (struct zoo_shape){in->channels, 1, 1, 1};
        return STATUS_OK;
    }
    if (in->rank == 2) {
        if (layer->kernel[HEIGHT] != layer->kernel[WIDTH] ||
            layer->stride[HEIGHT] != layer->stride[WIDTH] ||
            layer->dilation[HEIGHT] != layer->dilation[WIDTH])
            return zoo_fail(parser, "two numbers for the one dimension of the sequence %s",
                            zoo_shape_text(text, in));
        layer->kernel[HEIGHT] = layer->stride[HEIGHT] = layer->dilation[HEIGHT] = 1;
    }
    struct zoo_request flat = *request;
    if (in->rank == 2)
        flat.layer.pad[HEIGHT] = 0;
    enum status status = slide(parser, &flat, layer, HEIGHT, in->height, &layer->shape.height);
    if (status == STATUS_OK)
        status = slide(parser, &flat, layer, WIDTH, in->width, &layer->shape.width);
    if (status != STATUS_OK)
        return status;
    return check_size(parser, "an input with padding",
                      product((uint64_t)in->height + layer->pad[0] + layer->pad[2],
                              (uint64_t)in->width + layer->pad[1] + layer->pad[3], in->channels));
}

uint64_t zoo_elements(const struct zoo_shape *shape)
{
    return product(shape->channels, shape->height, shape->width);
}

static enum status infer_conv(const struct zoo_parser *parser, const struct zoo_request *request,
                              struct zoo_layer *layer, const struct zoo_shape *in)
{
    enum status status = slide_both(parser, request, layer, in);
    if (status != STATUS_OK)
        return status;
    if (layer->kind == ZOO_DEPTHWISE) {
        layer->groups = in->channels;
        layer->shape.channels = in->channels;
    } else {
        if (in->channels % layer->groups != 0 || request->out % layer->groups != 0)
            return zoo_fail(parser, "%u groups do not divide %u channels into %u", layer->groups,
                            in->channels, request->out);
        layer->shape.channels = request->out;
    }
    // A product too large is that of a result or of weights too large, which are refused.
    layer->macs =
        product(zoo_elements(&layer->shape), (uint64_t)layer->kernel[HEIGHT] * layer->kernel[WIDTH],
                in->channels / layer->groups);
    return status;
}

static enum status infer_upsample(const struct zoo_parser *parser, struct zoo_layer *layer,
                                  const struct zoo_shape *in)
{
    if (in->rank == 1)
        return zoo_fail(parser, "reads maps or sequences, not the vector %u", in->channels);
    if (in->rank == 2)
        layer->kernel[HEIGHT] = 1;
    layer->shape = *in;
    enum status status =
        check_size(parser, "a result",
                   product((uint64_t)in->height * layer->kernel[HEIGHT],
                           (uint64_t)in->width * layer->kernel[WIDTH], in->channels));
    layer->shape.height *= layer->kernel[HEIGHT];
    layer->shape.width *= layer->kernel[WIDTH];
    return status;
}

static enum status infer_merge(const struct zoo_parser *parser, struct zoo_layer *layer)
{
    struct zoo_shape shape = source_of(parser, layer, 0)->shape;
    if (layer->source_count < 2 || (layer->kind != ZOO_CONCAT && layer->source_count > 2))
        return zoo_fail(parser, "%zu sources, not two%s", layer->source_count,
                        layer->kind == ZOO_CONCAT ? " or more" : "");
    for (size_t i = 1; i < layer->source_count; i++) {
        const struct zoo_shape *other = &source_of(parser, layer, i)->shape;
        const bool pixel = layer->kind == ZOO_MULTIPLY && other->height == 1 && other->width == 1;
        const bool same = other->height == shape.height && other->width == shape.width &&
                          other->rank == shape.rank;
        if ((!same && !pixel) || (layer->kind != ZOO_CONCAT && other->channels != shape.channels))
            return fail_pair(parser, layer, i);
        if (layer->kind == ZOO_CONCAT) // 8 sources of at most 2^28 channels
            shape.channels += other->channels;
    }
    layer->shape = shape;
    return STATUS_OK;
}

static enum status infer_gru(const struct zoo_parser *parser, const struct zoo_request *request,
                             struct zoo_layer *layer, const struct zoo_shape *in)
{
    char text[ZOO_SHAPE_TEXT_SIZE];
    if (in->rank == 1 || in->height != 1)
        return zoo_fail(parser, "reads sequences, or maps of height 1, not %s",
                        zoo_shape_text(text, in));
    layer->shape =
        (struct zoo_shape){request->out, 1, layer->last ? 1 : in->width, layer->last ? 1 : 2};
    layer->macs =
        product(3 * (uint64_t)request->out, (uint64_t)in->channels + request->out, in->width);
    return STATUS_OK;
}

enum status zoo_infer_shape(const struct zoo_parser *parser, const struct zoo_request *request,
                            struct zoo_layer *layer)
{
    const struct zoo_layer *source = source_of(parser, layer, 0);
    const struct zoo_shape *in = &source->shape;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < layer->source_count; i++)
        if ((source_of(parser, layer, i)->vocabulary != 0) != (layer->kind == ZOO_EMBED))
            return zoo_fail(parser, "%s",
                            layer->kind == ZOO_EMBED ? "reads an input of ids only"
                                                     : "an input of ids is read by embed only");
    layer->shape = *in;
    if (layer->kind == ZOO_CONV || layer->kind == ZOO_DEPTHWISE) {
        status = infer_conv(parser, request, layer, in);
    } else if (layer->kind == ZOO_MAX_POOL || layer->kind == ZOO_AVERAGE_POOL) {
        status = slide_both(parser, request, layer, in);
    } else if (layer->kind == ZOO_DENSE) {
        layer->shape = (struct zoo_shape){request->out, 1, 1, 1};
        layer->macs = product(zoo_elements(in), request->out, 1);
    } else if (layer->kind == ZOO_EMBED) {
        layer->shape.channels = request->out;
    } else if (layer->kind == ZOO_GRU) {
        status = infer_gru(parser, request, layer, in);
    } else if (layer->kind == ZOO_UPSAMPLE) {
        status = infer_upsample(parser, layer, in);
    } else if (layer->kind == ZOO_ADD || layer->kind == ZOO_MULTIPLY || layer->kind == ZOO_CONCAT) {
        status = infer_merge(parser, layer);
    }
    if (status == STATUS_OK)
        status = check_size(parser, "a result", zoo_elements(&layer->shape));
    return status;
}

// ---- Weight tensors -------------------------------------------------------

// Tensors of one layer before they are added to the model, or compared.
struct tensor_list {
    const char *parts[ZOO_TENSORS_MAX]; // names without that of the layer
    struct zoo_tensor tensors[ZOO_TENSORS_MAX];
    size_t count;
};

static void list_tensor(struct tensor_list *list, const char *part, unsigned int rank,
                        const uint32_t *dims)
{
    assert(list->count < ZOO_TENSORS_MAX);
    struct zoo_tensor *tensor = &list->tensors[list->count];
    *tensor = (struct zoo_tensor){.rank = rank, .dims = {1, 1, 1, 1}};
    memcpy(tensor->dims, dims, rank * sizeof *dims);
    list->parts[list->count++] = part;
}

static void list_tensors(struct tensor_list *list, const struct zoo_layer *layer,
                         const struct zoo_shape *in, uint32_t vocabulary)
{
    const uint32_t out = layer->shape.channels;
    if (layer->kind == ZOO_CONV || layer->kind == ZOO_DEPTHWISE) {
        const uint32_t groups = layer->groups, *kernel = layer->kernel;
        if (in->rank == 2)
            list_tensor(list, "weight", 3,
                        (const uint32_t[]){out, in->channels / groups, kernel[WIDTH]});
        else
            list_tensor(
                list, "weight", 4,
                (const uint32_t[]){out, in->channels / groups, kernel[HEIGHT], kernel[WIDTH]});
    } else if (layer->kind == ZOO_DENSE) {
        list_tensor(list, "weight", 2, (const uint32_t[]){out, (uint32_t)zoo_elements(in)});
    } else if (layer->kind == ZOO_EMBED) {
        list_tensor(list, "weight", 2, (const uint32_t[]){vocabulary, out});
    } else if (layer->kind == ZOO_GRU) {
        list_tensor(list, "weight_ih", 2, (const uint32_t[]){3 * out, in->channels});
        list_tensor(list, "weight_hh", 2, (const uint32_t[]){3 * out, out});
        list_tensor(list, "bias_ih", 1, (const uint32_t[]){3 * out});
        list_tensor(list, "bias_hh", 1, (const uint32_t[]){3 * out});
    }
    if (layer->bias)
        list_tensor(list, "bias", 1, &out);
    if (layer->norm) {
        list_tensor(list, "norm.weight", 1, &out);
        list_tensor(list, "norm.bias", 1, &out);
        list_tensor(list, "norm.mean", 1, &out);
        list_tensor(list, "norm.variance", 1, &out);
    }
}

static const char *dims_text(char text[ZOO_SHAPE_TEXT_SIZE + 16], const struct zoo_tensor *tensor)
{
    size_t size = 0;
    for (unsigned int i = 0; i < tensor->rank; i++)
        size += (size_t)snprintf(text + size, ZOO_SHAPE_TEXT_SIZE + 16 - size, "%s%u",
                                 i > 0 ? "x" : "", tensor->dims[i]);
    return text;
}

// A layer's tensors must be those of the layer whose weights it shares.
static enum status check_shared(const struct zoo_parser *parser, const struct zoo_layer *layer,
                                const struct tensor_list *list)
{
    const struct zoo_layer *owner = &parser->model->layers[layer->weights_of];
    char one[ZOO_SHAPE_TEXT_SIZE + 16], two[ZOO_SHAPE_TEXT_SIZE + 16];
    for (size_t i = 0; i < owner->tensor_count; i++) {
        const struct zoo_tensor *own = &parser->model->tensors[owner->first_tensor + i];
        const struct zoo_tensor *needed = &list->tensors[i];
        if (own->rank != needed->rank || memcmp(own->dims, needed->dims, sizeof own->dims) != 0)
            return zoo_fail(parser, "needs weights of %s, not of %s as %s", dims_text(one, needed),
                            dims_text(two, own), own->name);
    }
    return STATUS_OK;
}

enum status zoo_add_tensors(struct zoo_parser *parser, struct zoo_layer *layer)
{
    struct zoo_model *model = parser->model;
    const struct zoo_layer *source = layer->source_count > 0 ? source_of(parser, layer, 0) : layer;
    struct tensor_list list = {.count = 0};
    list_tensors(&list, layer, &source->shape, source->vocabulary);
    layer->tensor_count = list.count;
    if (layer->weights_of != model->layer_count) {
        layer->first_tensor = model->layers[layer->weights_of].first_tensor;
        return check_shared(parser, layer, &list);
    }
    layer->first_tensor = model->tensor_count;
    for (size_t i = 0; i < list.count; i++) {
        if (!ARRAY_RESERVE(&model->tensors, &parser->tensor_capacity, model->tensor_count + 1))
            return error_no_memory(parser->err, parser->path);
        struct zoo_tensor *tensor = &model->tensors[model->tensor_count++];
        const struct zoo_tensor *listed = &list.tensors[i];
        *tensor = *listed;
        (void)snprintf(tensor->name, sizeof tensor->name, "%s.%s", layer->name, list.parts[i]);
        const uint64_t elements =
            product(product(listed->dims[0], listed->dims[1], 1), listed->dims[2], listed->dims[3]);
        tensor->elements = elements;
        model->parameters += elements <= ZOO_ELEMENTS_MAX ? elements : 0;
        enum status status = check_size(parser, "weights", elements);
        if (status == STATUS_OK)
            status = check_size(parser, "weights up to here", model->parameters);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}
