// Descriptions of small models under libFuzzer.  The first byte chooses: a text built from the
// rest, mostly right; or the rest as the text itself.
#include "server/workload/zoo/zoo_model.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { TEXT_SIZE = 4096 };

struct builder {
    struct input *input;
    char text[TEXT_SIZE];
    size_t size;
};

static void put(struct builder *b, const char *text)
{
    for (; *text != '\0' && b->size < sizeof b->text - 1; text++)
        b->text[b->size++] = *text;
}

static void put_choice(struct builder *b, const char *const *words, size_t count)
{
    put(b, words[take(b->input, 1) % count]);
}

#define PUT_CHOICE(b, ...)                                                                         \
    put_choice(b, (const char *const[]){__VA_ARGS__},                                              \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// A line of a few layers.
static void put_line(struct builder *b, char name)
{
    const char start[] = {name, ' ', '=', ' ', '\0'};
    put(b, start);
    PUT_CHOICE(b, "i", "i", "s", "a", "b", "w", "v", "i, i", "s, s", "a, b");
    for (uint64_t layers = 1 + take(b->input, 1) % 4; layers > 0; layers--) {
        put(b, " -> ");
        PUT_CHOICE(b, "conv 8 3", "conv 4 1", "conv 3 5x3", "depthwise 3", "dense 7", "embed 4",
                   "gru 5", "gru 3 last", "maxpool 2", "avgpool 3", "avgpool global", "upsample 2",
                   "add", "multiply", "concat", "add i", "multiply a", "concat b", "relu",
                   "softmax", "like a", "like b", "2 * (conv 4 3 -> relu)", "3 * (tanh)",
                   "1000 * (", "conv 1048576 1", "upsample 1024");
        for (uint64_t options = take(b->input, 1) % 4; options > 0; options--)
            PUT_CHOICE(b, "", " stride 2", " stride 1x2", " pad valid", " pad 1", " dilate 2",
                       " groups 2", " nobias", " norm", " relu6", " tanh", ")");
    }
    put(b, "\n");
}

static void put_text(struct builder *b)
{
    PUT_CHOICE(b, "name: t\n", "name: t\n", "name: t\nparameters: 9\n", "name: t\r\ntask: x\n", "");
    PUT_CHOICE(b, "input: i 3x8x8\n", "input: i 1x9x7\n", "input: i 4x1x12\n", "input: i 2x6\n");
    PUT_CHOICE(b, "input: s 4x8\n", "", "input: w ids 7 of 9\n", "input: v 5\n");
    for (char name = 'a'; name < 'f' && b->input->size > 0; name++)
        put_line(b, name);
    PUT_CHOICE(b, "", "", "output: a\n", "output: a, b\n");
}

static size_t elements_of(const struct zoo_shape *shape)
{
    return (size_t)shape->channels * shape->height * shape->width;
}

// Layers read earlier ones, and nothing is empty or larger than the bounds.
static void check_layer(const struct zoo_model *model, size_t index)
{
    const struct zoo_layer *layer = &model->layers[index];
    const size_t elements = elements_of(&layer->shape);
    check(elements > 0 && elements <= 1U << 28);
    check(layer->shape.rank >= 1 && layer->shape.rank <= 3);
    check((layer->source_count == 0) == (layer->kind == ZOO_INPUT));
    for (size_t i = 0; i < layer->source_count; i++)
        check(layer->sources[i] < index);
    check(layer->weights_of <= index);
    check(layer->first_tensor + layer->tensor_count <= model->tensor_count);
    const bool slides = layer->kind == ZOO_CONV || layer->kind == ZOO_DEPTHWISE ||
                        layer->kind == ZOO_MAX_POOL || layer->kind == ZOO_AVERAGE_POOL;
    if (!slides || layer->shape.rank == 1)
        return;
    // The last position of the kernel ends within the padded input.
    const struct zoo_shape *in = &model->layers[layer->sources[0]].shape;
    const uint64_t height = (uint64_t)in->height + layer->pad[0] + layer->pad[2];
    const uint64_t width = (uint64_t)in->width + layer->pad[1] + layer->pad[3];
    check((layer->shape.height - 1) * (uint64_t)layer->stride[0] +
              (layer->kernel[0] - 1) * (uint64_t)layer->dilation[0] + 1 <=
          height);
    check((layer->shape.width - 1) * (uint64_t)layer->stride[1] +
              (layer->kernel[1] - 1) * (uint64_t)layer->dilation[1] + 1 <=
          width);
}

static void check_model(const struct zoo_model *model)
{
    uint64_t parameters = 0;
    check(model->layer_count <= ZOO_LAYERS_MAX && model->input_count <= ZOO_INPUTS_MAX);
    check(model->output_count > 0 && model->output_count <= ZOO_OUTPUTS_MAX);
    for (size_t i = 0; i < model->layer_count; i++)
        check_layer(model, i);
    for (size_t i = 0; i < model->tensor_count; i++) {
        const struct zoo_tensor *tensor = &model->tensors[i];
        check((size_t)tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3] ==
              tensor->elements);
        parameters += tensor->elements;
        for (size_t j = 0; j < i && model->tensor_count < 64; j++)
            check(strcmp(tensor->name, model->tensors[j].name) != 0);
    }
    check(parameters == model->parameters);
    for (size_t i = 0; i < model->output_count; i++)
        check(model->outputs[i] < model->layer_count);
}

static void parse(const char *text, size_t size)
{
    struct zoo_model *model = NULL;
    struct error err = {0};
    if (zoo_model_parse(&model, "x", text, size, &err) == STATUS_OK)
        check_model(model);
    else
        check(!model && err.text[0] != '\0');
    zoo_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    if (take(&input, 1) % 4 == 3) {
        parse((const char *)input.data, input.size);
        return 0;
    }
    struct builder builder = {.input = &input};
    put_text(&builder);
    parse(builder.text, builder.size);
    return 0;
}
