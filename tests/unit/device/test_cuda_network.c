// Small networks on the CUDA back end against the plain reference, step by step: on a device where
// this was built for one, else on the emulated runtime.
#include <math.h>

#include "tests/support/network_reference.h"
#include "tests/support/test.h"

enum { ITEMS = 3 };

static struct device *cuda;
static uint64_t seed = 7;

TEST_FIXTURE(open_cuda)
{
    struct error err = {0};
    const enum status status = device_open(&cuda, &(struct device_options){.spec = "cuda"}, &err);
    if (status == STATUS_NOT_FOUND || status == STATUS_UNSUPPORTED) {
        print_message("skipped: %s\n", err.text);
        exit(77);
    }
    expect_ok(status, &err);
    return 0;
}

TEST_FIXTURE(close_cuda)
{
    device_close(cuda);
    return 0;
}

// Puts a tensor with a border at the end of the arena, as a slice if its pitch is larger.
static struct network_tensor place(size_t *arena, uint32_t height, uint32_t width,
                                   uint32_t channels, uint32_t border, uint32_t pitch)
{
    const uint32_t rows = height > 1 ? border : 0;
    const struct network_tensor tensor = {.height = height,
                                          .width = width,
                                          .channels = channels,
                                          .border = {rows, border, rows, border},
                                          .pitch = pitch,
                                          .offset = *arena + pitch - channels};
    *arena += (size_t)(height + 2 * rows) * (width + 2 * border) * pitch;
    return tensor;
}

// Runs the step on the device and by the reference.  Behind it a COPY reads its result with the
// borders, so that a border that was not zeroed shows.
static void check(struct network_step step, size_t arena, double tolerance)
{
    struct error err = {0};
    struct network_step steps[2] = {step};
    const struct network_tensor *out = &step.out;
    steps[1] = (struct network_step){.op = NETWORK_AVERAGE_POOL,
                                     .inputs = 1,
                                     .in = {*out},
                                     .kernel = {1, 1},
                                     .stride = {1, 1},
                                     .dilation = {1, 1},
                                     .name = "pool"};
    steps[1].out = place(&arena, out->height, out->width, out->channels, 0, out->channels);
    if (out->border[1] > 0) { // the sum of each row's neighbours, some of which are borders
        float *ones = calloc((size_t)3 * out->channels, sizeof *ones);
        assert_non_null(ones);
        for (size_t i = 0; i < (size_t)3 * out->channels; i++)
            ones[i] = 1.0F;
        steps[1].op = NETWORK_DEPTHWISE;
        steps[1].kernel[1] = 3;
        steps[1].pad[1] = 1;
        steps[1].weights = ones;
    }
    const struct network_plan plan = {.steps = steps,
                                      .step_count = 2,
                                      .inputs = step.in,
                                      .input_count = step.inputs,
                                      .outputs = &steps[1].out,
                                      .output_count = 1,
                                      .arena = arena};
    float *inputs[2] = {0};
    for (size_t i = 0; i < step.inputs; i++) {
        inputs[i] = network_random_floats(&seed, network_elements(&step.in[i]) * ITEMS);
        for (size_t j = 0; step.op == NETWORK_EMBED && j < network_elements(&step.in[i]) * ITEMS;
             j++)
            inputs[i][j] = (float)(test_random(&seed) % step.kernel[0]);
    }
    float *outputs = network_random_floats(&seed, network_elements(out) * ITEMS);
    struct device_network *network = NULL;
    expect_ok(device_network_new(cuda, &network, &plan, ITEMS, &err), &err);
    for (size_t items = 1; items <= ITEMS; items += ITEMS - 1) { // twice: a graph is used again
        for (int round = 0; round < 2; round++)
            expect_ok(device_network_run(network, (const float *const *)inputs,
                                         (float *const[]){outputs}, items, &err),
                      &err);
        for (size_t item = 0; item < items; item++) {
            float *expected = calloc(arena, sizeof *expected);
            assert_non_null(expected);
            for (size_t i = 0; i < step.inputs; i++)
                network_put(expected, &step.in[i],
                            inputs[i] + item * network_elements(&step.in[i]));
            network_step_reference(&steps[0], expected);
            network_step_reference(&steps[1], expected);
            network_expect(&step, &steps[1].out, expected, outputs + item * network_elements(out),
                           tolerance);
            free(expected);
        }
    }
    device_network_free(network);
    if (out->border[1] > 0)
        free((void *)(uintptr_t)steps[1].weights);
    free(inputs[0]);
    free(inputs[1]);
    free(outputs);
}

static uint32_t pick(uint32_t least, uint32_t most)
{
    return least + (uint32_t)(test_random(&seed) % (most - least + 1));
}

static uint32_t results(uint32_t size, uint32_t pad, uint32_t kernel, uint32_t dilation,
                        uint32_t stride)
{
    return (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
}

// A convolution of random shape; `second`: with an addition.
static void check_conv(bool depthwise, bool is_int8, bool second,
                       enum network_activation activation)
{
    size_t arena = 0;
    const uint32_t groups = depthwise || is_int8 ? 1 : pick(1, 2);
    const uint32_t channels = groups * pick(1, 5), height = pick(1, 7), width = pick(5, 9);
    const uint32_t outs = depthwise ? channels : groups * pick(1, 9);
    struct network_step step = {.op = depthwise ? NETWORK_DEPTHWISE : NETWORK_CONV,
                                .activation = activation,
                                .inputs = second ? 2 : 1,
                                .kernel = {height > 1 ? pick(1, 3) : 1, pick(1, 3)},
                                .stride = {pick(1, 2), pick(1, 2)},
                                .dilation = {1, pick(1, 2)},
                                .groups = groups,
                                .name = "conv"};
    const uint32_t border = (step.kernel[1] - 1) * step.dilation[1];
    step.pad[0] = height > 1 ? pick(0, border < step.kernel[0] ? border : step.kernel[0] - 1) : 0;
    step.pad[1] = border;
    step.in[0] = place(&arena, height, width, channels, border, channels + pick(0, 2));
    const uint32_t rows =
        height > 1 ? (height + 2 * step.pad[0] >= step.kernel[0]
                          ? results(height, step.pad[0], step.kernel[0], 1, step.stride[0])
                          : 0)
                   : 1;
    if (rows == 0)
        return;
    const uint32_t columns =
        results(width, border, step.kernel[1], step.dilation[1], step.stride[1]);
    step.out = place(&arena, rows, columns, outs, pick(0, 1), outs + pick(0, 2));
    if (second)
        step.in[1] = place(&arena, rows, columns, outs, 0, outs);
    const size_t inner = depthwise ? 1 : channels / groups;
    const size_t k = step.kernel[0] * step.kernel[1] * inner;
    float *weights = network_random_floats(&seed, k * outs),
          *bias = network_random_floats(&seed, outs);
    int8_t values[3 * 3 * 5 * 9], zeros[9];
    float scales[9];
    struct network_int8 int8 = {.values = values,
                                .scales = scales,
                                .zeros = pick(0, 1) ? zeros : NULL,
                                .input_scale = 0.009F,
                                .input_zero = (int)pick(0, 40) - 20};
    step.weights = weights;
    step.bias = pick(0, 1) ? bias : NULL;
    if (is_int8) {
        for (size_t i = 0; i < k * outs; i++)
            values[i] = (int8_t)(pick(0, 255) - 128);
        for (size_t o = 0; o < outs; o++) {
            zeros[o] = (int8_t)(pick(0, 20) - 10);
            scales[o] = 0.01F * (float)pick(1, 9);
        }
        step.int8 = &int8;
    }
    check(step, arena, 2e-5);
    free(weights);
    free(bias);
}

TEST_CASE(convolutions)
{
    for (int i = 0; i < 60; i++)
        check_conv(false, false, i % 2, (enum network_activation)(i % 6));
}

TEST_CASE(depthwise_convolutions)
{
    for (int i = 0; i < 30; i++)
        check_conv(true, false, i % 2, (enum network_activation)(i % 6));
}

TEST_CASE(convolutions_of_integers)
{
    for (int i = 0; i < 40; i++)
        check_conv(false, true, i % 2, (enum network_activation)(i % 6));
}

static void check_pool(enum network_op op)
{
    size_t arena = 0;
    const uint32_t channels = pick(1, 6), height = pick(3, 7), width = pick(3, 7);
    struct network_step step = {.op = op,
                                .inputs = 1,
                                .kernel = {pick(1, 3), pick(1, 3)},
                                .stride = {pick(1, 3), pick(1, 3)},
                                .dilation = {1, 1},
                                .name = "pool"};
    step.pad[0] = pick(0, step.kernel[0] - 1);
    step.pad[1] = pick(0, step.kernel[1] - 1);
    step.in[0] = place(&arena, height, width, channels, pick(0, 1), channels);
    step.out = place(&arena, results(height, step.pad[0], step.kernel[0], 1, step.stride[0]),
                     results(width, step.pad[1], step.kernel[1], 1, step.stride[1]), channels,
                     pick(0, 1), channels + pick(0, 1));
    check(step, arena, 1e-6);
}

TEST_CASE(pools)
{
    for (int i = 0; i < 30; i++)
        check_pool(i % 2 ? NETWORK_MAX_POOL : NETWORK_AVERAGE_POOL);
}

// Operations whose result has the shape of their input.
static void check_same(enum network_op op, bool broadcast)
{
    size_t arena = 0;
    const uint32_t channels = pick(1, 6), height = pick(1, 4), width = pick(2, 5);
    struct network_step step = {.op = op,
                                .activation = (enum network_activation)pick(0, 5),
                                .inputs = op == NETWORK_ADD || op == NETWORK_MULTIPLY ? 2 : 1,
                                .name = "same"};
    step.in[0] = place(&arena, height, width, channels, pick(0, 1), channels);
    if (step.inputs > 1)
        step.in[1] = place(&arena, broadcast ? 1 : height, broadcast ? 1 : width, channels,
                           broadcast ? 0 : pick(0, 1), channels);
    step.out = place(&arena, height, width, channels, pick(0, 1), channels + pick(0, 3));
    check(step, arena, 2e-6);
}

TEST_CASE(operations_of_elements)
{
    for (int i = 0; i < 12; i++) {
        check_same(NETWORK_ADD, false);
        check_same(NETWORK_MULTIPLY, i % 2);
        check_same(NETWORK_COPY, false);
    }
}

TEST_CASE(upsampling_and_embedding)
{
    enum { VOCABULARY = 11, DIM = 6 };
    for (int i = 0; i < 10; i++) {
        size_t arena = 0;
        struct network_step step = {.op = NETWORK_UPSAMPLE,
                                    .inputs = 1,
                                    .kernel = {pick(1, 3), pick(1, 3)},
                                    .name = "upsample"};
        step.in[0] = place(&arena, 3, 4, 5, 1, 5);
        step.out = place(&arena, 3 * step.kernel[0], 4 * step.kernel[1], 5, 1, 7);
        check(step, arena, 1e-6);
    }
    size_t arena = 0;
    float *table = network_random_floats(&seed, (size_t)VOCABULARY * DIM);
    struct network_step step = {.op = NETWORK_EMBED,
                                .inputs = 1,
                                .kernel = {VOCABULARY, 1},
                                .weights = table,
                                .name = "embed"};
    step.in[0] = place(&arena, 1, 9, 1, 0, 1);
    step.out = place(&arena, 1, 9, DIM, 2, DIM);
    check(step, arena, 1e-6);
    free(table);
}

TEST_CASE(recurrent_layers)
{
    for (int i = 0; i < 8; i++) {
        size_t arena = 0;
        const uint32_t units = pick(1, 40), inputs = pick(1, 9), length = pick(1, 6);
        float *weights = network_random_floats(&seed, (size_t)3 * units * (inputs + units));
        float *bias = network_random_floats(&seed, (size_t)6 * units);
        struct network_step step = {.op = NETWORK_GRU,
                                    .inputs = 1,
                                    .weights = weights,
                                    .bias = i % 2 ? bias : NULL,
                                    .name = "gru"};
        step.in[0] = place(&arena, 1, length, inputs, 0, inputs);
        step.out = place(&arena, 1, i % 3 ? length : 1, units, pick(0, 1), units);
        check(step, arena, 2e-5);
        free(weights);
        free(bias);
    }
}

TEST_MAIN_ONCE(open_cuda, close_cuda, convolutions, depthwise_convolutions,
               convolutions_of_integers, pools, operations_of_elements, upsampling_and_embedding,
               recurrent_layers)
