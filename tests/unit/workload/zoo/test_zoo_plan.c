// Plans of small models: what the planned steps compute equals the layers one by one, on memory
// that is dirty.
#include <math.h>

#include "server/workload/zoo/plan.h"
#include "tests/support/network_reference.h"
#include "tests/support/test.h"

static struct error err;

// ---- The layers one by one, (channels, height, width), in doubles ---------

struct layers {
    const struct zoo_model *model;
    const struct zoo_weights *weights;
    double *results[ZOO_LAYERS_MAX];
};

static size_t elements(const struct zoo_shape *shape)
{
    return (size_t)shape->channels * shape->height * shape->width;
}

static const float *tensor(const struct layers *all, const struct zoo_layer *layer, size_t i)
{
    return all->weights->values[layer->first_tensor + i];
}

// The sum, or for pools the largest value or the mean, of a window over some input channels.
static double window(const struct layers *all, const struct zoo_layer *layer, size_t o, long y,
                     long x)
{
    const struct zoo_layer *source = &all->model->layers[layer->sources[0]];
    const struct zoo_shape *in = &source->shape;
    const bool is_pool = layer->kind == ZOO_MAX_POOL || layer->kind == ZOO_AVERAGE_POOL;
    const size_t groups = is_pool ? in->channels : layer->groups;
    const size_t inner = in->channels / groups;
    const size_t first = o / (layer->shape.channels / groups) * inner;
    double sum = 0.0, largest = -INFINITY, count = 0.0;
    for (size_t c = 0; c < inner; c++)
        for (size_t ky = 0; ky < layer->kernel[0]; ky++)
            for (size_t kx = 0; kx < layer->kernel[1]; kx++) {
                const long iy = y * (long)layer->stride[0] - (long)layer->pad[0] +
                                (long)(ky * layer->dilation[0]);
                const long ix = x * (long)layer->stride[1] - (long)layer->pad[1] +
                                (long)(kx * layer->dilation[1]);
                if (iy < 0 || ix < 0 || iy >= (long)in->height || ix >= (long)in->width)
                    continue;
                const double value =
                    all->results[layer->sources[0]]
                                [((first + c) * in->height + (size_t)iy) * in->width + (size_t)ix];
                const size_t k = (o * inner + c) * layer->kernel[0] * layer->kernel[1] +
                                 ky * layer->kernel[1] + kx;
                sum += is_pool ? value : value * (double)tensor(all, layer, 0)[k];
                largest = fmax(largest, value);
                count++;
            }
    if (layer->kind == ZOO_MAX_POOL)
        return largest;
    return layer->kind == ZOO_AVERAGE_POOL ? sum / count : sum;
}

static double element(const struct layers *all, const struct zoo_layer *layer, size_t c, size_t y,
                      size_t x)
{
    const struct zoo_shape *shape = &layer->shape;
    const size_t at = (c * shape->height + y) * shape->width + x;
    const double *in = all->results[layer->sources[0]];
    const struct zoo_shape *from = &all->model->layers[layer->sources[0]].shape;
    double sum = 0.0;
    switch (layer->kind) {
    case ZOO_DENSE:
        for (size_t i = 0; i < elements(from); i++)
            sum += (double)tensor(all, layer, 0)[c * elements(from) + i] * in[i];
        return sum;
    case ZOO_UPSAMPLE:
        return in[(c * from->height + y / layer->kernel[0]) * from->width + x / layer->kernel[1]];
    case ZOO_ADD:
        return in[at] + all->results[layer->sources[1]][at];
    case ZOO_MULTIPLY:
        return in[at] *
               all->results[layer->sources[1]]
                           [all->model->layers[layer->sources[1]].shape.rank == 1 ? c : at];
    case ZOO_CONCAT:
        for (size_t s = 0; s < layer->source_count; s++) {
            const struct zoo_shape *source = &all->model->layers[layer->sources[s]].shape;
            if (c < source->channels)
                return all->results[layer->sources[s]][(c * shape->height + y) * shape->width + x];
            c -= source->channels;
        }
        fail();
        return 0.0;
    case ZOO_CONV:
    case ZOO_DEPTHWISE:
    case ZOO_MAX_POOL:
    case ZOO_AVERAGE_POOL:
        return window(all, layer, c, (long)y, (long)x);
    case ZOO_ACTIVATE:
    case ZOO_INPUT:
    case ZOO_EMBED:
    case ZOO_GRU:
    case ZOO_KIND_COUNT:
        break;
    }
    return in[at];
}

static double finished(const struct layers *all, const struct zoo_layer *layer, size_t c, double x)
{
    if (layer->bias)
        x += (double)tensor(all, layer, 1)[c];
    if (layer->norm) {
        const size_t first = layer->tensor_count - 4;
        x = (x - (double)tensor(all, layer, first + 2)[c]) /
                sqrt((double)tensor(all, layer, first + 3)[c] + 1e-5) *
                (double)tensor(all, layer, first)[c] +
            (double)tensor(all, layer, first + 1)[c];
    }
    if (layer->activation == NETWORK_RELU || layer->activation == NETWORK_RELU6)
        x = fmax(x, 0.0);
    if (layer->activation == NETWORK_RELU6)
        x = fmin(x, 6.0);
    if (layer->activation == NETWORK_SIGMOID)
        x = 1.0 / (1.0 + exp(-x));
    return layer->activation == NETWORK_TANH ? tanh(x) : x;
}

static void run_layer(struct layers *all, size_t index)
{
    const struct zoo_layer *layer = &all->model->layers[index];
    const struct zoo_shape *shape = &layer->shape;
    const size_t pixels = (size_t)shape->height * shape->width;
    double *out = all->results[index];
    for (size_t c = 0; c < shape->channels; c++)
        for (size_t i = 0; i < pixels; i++)
            out[c * pixels + i] =
                finished(all, layer, c, element(all, layer, c, i / shape->width, i % shape->width));
    for (size_t i = 0; layer->activation == NETWORK_SOFTMAX && i < pixels; i++) {
        double sum = 0.0;
        for (size_t c = 0; c < shape->channels; c++)
            sum += exp(out[c * pixels + i]);
        for (size_t c = 0; c < shape->channels; c++)
            out[c * pixels + i] = exp(out[c * pixels + i]) / sum;
    }
}

// ---- Plans ----------------------------------------------------------------

struct rig {
    struct zoo_model *model;
    struct zoo_weights weights;
    struct zoo_plan *plan;
    const struct network_plan *network;
};

static void rig_open(struct rig *rig, const char *text)
{
    *rig = (struct rig){0};
    expect_ok(zoo_model_parse(&rig->model, "text", text, strlen(text), &err), &err);
    expect_ok(zoo_weights_seeded(&rig->weights, rig->model, 5, &err), &err);
    expect_ok(zoo_plan_new(&rig->plan, rig->model, &rig->weights, NULL, &err), &err);
    rig->network = zoo_plan_network(rig->plan);
}

static void rig_close(struct rig *rig)
{
    zoo_plan_free(rig->plan);
    zoo_weights_free(&rig->weights);
    zoo_model_free(rig->model);
}

static float *place_of(const struct network_tensor *t, float *arena, size_t c, size_t y, size_t x)
{
    const size_t columns = (size_t)t->width + t->border[1] + t->border[3];
    return arena + t->offset + ((y + t->border[0]) * columns + x + t->border[1]) * t->pitch + c;
}

static void expect_close(double got, double wanted, const char *what, size_t i)
{
    if (!(fabs(got - wanted) <= 1e-4 * (1.0 + fabs(wanted))))
        fail_msg("%s: element %zu is %g, not %g", what, i, got, wanted);
}

// Compares an output of the steps' reference, in the arena, and of the CPU back end.
static void expect_output(const struct layers *all, const struct rig *rig, size_t output,
                          float *arena, const float *result)
{
    const size_t layer = rig->model->outputs[output];
    const struct zoo_shape *shape = &rig->model->layers[layer].shape;
    const size_t pixels = (size_t)shape->height * shape->width;
    for (size_t i = 0; i < elements(shape); i++) {
        const size_t pixel = i % pixels;
        const float *planned = place_of(&rig->network->outputs[output], arena, i / pixels,
                                        pixel / shape->width, pixel % shape->width);
        expect_close((double)*planned, all->results[layer][i], "steps", i);
        expect_close((double)result[i], all->results[layer][i], "device", i);
    }
}

// Gives each layer its part of one allocation, which it returns.
static double *share_results(struct layers *all)
{
    size_t count = 1; // calloc may return NULL for 0
    for (size_t i = 0; i < all->model->layer_count; i++)
        count += elements(&all->model->layers[i].shape);
    double *room = calloc(count, sizeof *room);
    assert_non_null(room);
    count = 0;
    for (size_t i = 0; i < all->model->layer_count; i++) {
        all->results[i] = room + count;
        count += elements(&all->model->layers[i].shape);
    }
    return room;
}

static void compare(const struct rig *rig)
{
    struct layers all = {.model = rig->model, .weights = &rig->weights};
    const struct network_plan *plan = rig->network;
    float *arena = malloc(plan->arena * sizeof *arena), *inputs[ZOO_INPUTS_MAX] = {0};
    float *outputs[ZOO_OUTPUTS_MAX] = {0};
    double *results = share_results(&all);
    assert_non_null(arena);
    for (size_t i = 0; i < plan->arena; i++)
        arena[i] = NAN;
    for (size_t i = 0; i < rig->model->input_count; i++) {
        const size_t layer = rig->model->inputs[i];
        const struct zoo_shape *shape = &rig->model->layers[layer].shape;
        const size_t pixels = (size_t)shape->height * shape->width;
        inputs[i] = calloc(elements(shape), sizeof *inputs[i]);
        assert_non_null(inputs[i]);
        zoo_input_seeded(inputs[i], rig->model, i, 0, 5);
        for (size_t k = 0; k < elements(shape); k++) {
            all.results[layer][k] = (double)inputs[i][k];
            *place_of(&plan->inputs[i], arena, k / pixels, k % pixels / shape->width,
                      k % shape->width) = inputs[i][k];
        }
    }
    for (size_t i = 0; i < rig->model->layer_count; i++)
        if (rig->model->layers[i].kind != ZOO_INPUT)
            run_layer(&all, i);
    for (size_t i = 0; i < plan->step_count; i++)
        network_step_reference(&plan->steps[i], arena);
    for (size_t i = 0; i < rig->model->output_count; i++)
        outputs[i] =
            calloc(elements(&rig->model->layers[rig->model->outputs[i]].shape), sizeof *outputs[i]);
    struct device *device;
    struct device_network *network;
    expect_ok(device_open(&device, &(struct device_options){.spec = "cpu", .threads = 1}, &err),
              &err);
    expect_ok(device_network_new(device, &network, plan, 1, &err), &err);
    for (int run = 0; run < 2; run++) // the second time on used memory
        expect_ok(device_network_run(network, (const float *const *)inputs, outputs, 1, &err),
                  &err);
    for (size_t i = 0; i < rig->model->output_count; i++) {
        expect_output(&all, rig, i, arena, outputs[i]);
        free(outputs[i]);
    }
    device_network_free(network);
    device_close(device);
    for (size_t i = 0; i < rig->model->input_count; i++)
        free(inputs[i]);
    free(results);
    free(arena);
}

#define HEAD "name: x\ncategory: vision\ntask: test\n"

// Descriptions, and the number of steps that their plans have.
static const struct {
    const char *text;
    size_t steps;
} cases[] = {
    {HEAD "input: i 3x9x7\na = i -> conv 8 3 norm relu -> depthwise 3 stride 2 norm relu6\n"
          "b = a -> dense 5 norm -> tanh\n",
     3},
    // a residual of a convolution, of two of them, and behind an activation
    {HEAD "input: i 4x6x6\na = i -> conv 4 3 norm -> add i -> relu\n"
          "b = a -> conv 6 3 stride 2 norm\nc = a -> conv 6 1 stride 2\n"
          "d = b, c -> add -> relu -> conv 6 3 relu -> add b\n",
     5},
    // slices: one has readers of its own, one is used twice, one is an input
    {HEAD "input: i 3x5x5\na = i -> conv 5 3 relu\nb = a -> maxpool 2\nc = a -> conv 2 1\n"
          "d = a, c, i -> concat -> conv 4 3\ne = a, a -> concat -> avgpool global\n"
          "f = b -> conv 10 1 -> avgpool global\ng = e, f -> add\noutput: d, g\n",
     10},
    {HEAD "input: i 6x20\na = i -> sigmoid -> conv 8 5 dilate 2 pad 1 groups 2\n"
          "b = a -> upsample 2 -> avgpool 3 stride 2 -> softmax\nc = b -> conv 3 1 norm\n"
          "output: a, c\n",
     5},
    {HEAD "input: i 3x8x8\ninput: j 3x8x8\na = i -> conv 4 3 norm relu -> conv 5 3 norm\n"
          "b = j -> like a\nc = a -> avgpool global\nd = b, c -> multiply -> relu\n"
          "e = d, b -> multiply -> conv 2 1 tanh\n",
     8},
};

TEST_CASE(test_plans_equal_layers)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig rig;
        rig_open(&rig, cases[i].text);
        if (rig.network->step_count != cases[i].steps)
            fail_msg("case %zu has %zu steps, not %zu", i, rig.network->step_count, cases[i].steps);
        compare(&rig);
        rig_close(&rig);
    }
}

static size_t end_of(const struct network_tensor *t)
{
    return t->offset +
           ((size_t)t->height + t->border[0] + t->border[2]) *
               ((size_t)t->width + t->border[1] + t->border[3]) * t->pitch -
           t->pitch + t->channels;
}

// The arena ends where its last tensor ends, memory is used again, and layers that share weights
// share them in the plan.
TEST_CASE(test_arenas)
{
    for (size_t i = 0; i < zoo_text_count; i++) {
        struct rig rig;
        rig_open(&rig, zoo_texts[i].text);
        size_t end = 0, sum = 0;
        for (size_t s = 0; s < rig.network->step_count; s++) {
            const struct network_tensor *out = &rig.network->steps[s].out;
            end = end_of(out) > end ? end_of(out) : end;
            sum += end_of(out) - out->offset;
        }
        for (size_t k = 0; k < rig.network->input_count; k++)
            end = end_of(&rig.network->inputs[k]) > end ? end_of(&rig.network->inputs[k]) : end;
        assert_in_range(rig.network->arena, end, end + 15); // a cache line
        if (strcmp(zoo_texts[i].name, "mobilenet-v1") == 0)
            assert_true(rig.network->arena * 2 < sum);
        rig_close(&rig);
    }
    struct rig rig;
    rig_open(&rig, cases[COUNT_OF(cases) - 1].text);
    assert_ptr_equal(rig.network->steps[0].weights, rig.network->steps[2].weights);
    rig_close(&rig);
}

TEST_MAIN(test_plans_equal_layers, test_arenas)
