// Steps of small networks on the CPU back end against the plain reference, for every table of
// kernels that the processor has.
#include <float.h>
#include <math.h>

#include "server/device/cpu/network/network_cpu.h"
#include "tests/support/network_reference.h"
#include "tests/support/test.h"

enum { ITEMS = 3 };

static uint64_t seed = 11;

static uint32_t pick(uint32_t least, uint32_t most)
{
    return least + (uint32_t)(test_random(&seed) % (most - least + 1));
}

static size_t floats_of(const struct network_tensor *t)
{
    return ((size_t)t->height + t->border[0] + t->border[2]) *
           ((size_t)t->width + t->border[1] + t->border[3]) * t->pitch;
}

// Puts a tensor at the end of the arena, now and then as the slice of a wider one.
static struct network_tensor place(size_t *arena, uint32_t height, uint32_t width,
                                   uint32_t channels, const uint32_t border[4])
{
    const uint32_t wider = pick(0, 3) == 0 ? pick(1, 9) : 0;
    struct network_tensor tensor = {.height = height,
                                    .width = width,
                                    .channels = channels,
                                    .pitch = channels + wider,
                                    .offset = *arena + pick(0, wider)};
    memcpy(tensor.border, border, sizeof tensor.border);
    *arena += floats_of(&tensor);
    return tensor;
}

// A plan of three steps: memory of the result is filled with other values; the step; the sums of
// windows over its result and border.
struct trial {
    struct network_step steps[3];
    struct network_tensor inputs[3];
    struct network_plan plan;
    float *values[3], *ones;
};

static struct network_step plain_step(enum network_op op)
{
    return (struct network_step){.op = op,
                                 .inputs = 1,
                                 .kernel = {1, 1},
                                 .stride = {1, 1},
                                 .dilation = {1, 1},
                                 .groups = 1,
                                 .name = "step"};
}

static void trial_init(struct trial *trial, const struct network_step *step, size_t arena)
{
    const uint32_t none[4] = {0};
    const struct network_tensor *out = &step->out;
    *trial =
        (struct trial){.steps = {plain_step(NETWORK_COPY), *step, plain_step(NETWORK_DEPTHWISE)}};
    struct network_step *fill = &trial->steps[0], *sums = &trial->steps[2];
    fill->out = (struct network_tensor){.height = 1, .width = 1, .offset = out->offset};
    fill->out.channels = (uint32_t)(floats_of(out) - (out->pitch - out->channels));
    fill->out.pitch = fill->out.channels;
    fill->in[0] = place(&arena, 1, 1, fill->out.channels, none);
    sums->in[0] = *out;
    for (size_t d = 0; d < 2; d++) {
        sums->pad[d] = out->border[d];
        sums->kernel[d] = out->border[d] + out->border[d + 2] + 1;
    }
    sums->out = place(&arena, out->height, out->width, out->channels, none);
    const size_t taps = (size_t)sums->kernel[0] * sums->kernel[1] * out->channels;
    trial->ones = calloc(taps, sizeof *trial->ones);
    assert_non_null(trial->ones);
    for (size_t i = 0; i < taps; i++)
        trial->ones[i] = 1.0F;
    sums->weights = trial->ones;
    trial->inputs[0] = fill->in[0];
    for (size_t i = 0; i < step->inputs; i++)
        trial->inputs[i + 1] = step->in[i];
    trial->plan = (struct network_plan){.steps = trial->steps,
                                        .step_count = 3,
                                        .inputs = trial->inputs,
                                        .input_count = step->inputs + 1,
                                        .outputs = &sums->out,
                                        .output_count = 1,
                                        .arena = arena};
    for (size_t i = 0; i < trial->plan.input_count; i++)
        trial->values[i] =
            network_random_floats(&seed, network_elements(&trial->inputs[i]) * ITEMS);
    for (size_t i = 0; step->op == NETWORK_EMBED && i < network_elements(&step->in[0]) * ITEMS; i++)
        trial->values[1][i] = (float)pick(0, step->kernel[0] - 1);
}

// Runs all items at once, then the first alone: its results are the same bits.
static void run_table(const struct trial *trial, struct device *device,
                      const struct network_kernels *kernels, float *outputs)
{
    struct error err = {0};
    struct device_network *network = NULL;
    const size_t size = network_elements(trial->plan.outputs);
    expect_ok(cpu_network_new_with(kernels, device, &network, &trial->plan, ITEMS, &err), &err);
    float *alone = network_random_floats(&seed, size);
    for (size_t i = 0; i < 2; i++) // the second time without zeroed memory
        expect_ok(device_network_run(network, (const float *const *)trial->values,
                                     (float *const[]){outputs}, ITEMS, &err),
                  &err);
    expect_ok(device_network_run(network, (const float *const *)trial->values,
                                 (float *const[]){alone}, 1, &err),
              &err);
    assert_memory_equal(alone, outputs, size * sizeof *alone);
    free(alone);
    device_network_free(network);
}

static struct device *devices[2]; // with one thread and with three

static void check(const struct network_step *step, size_t arena, double tolerance)
{
    struct trial trial;
    trial_init(&trial, step, arena);
    const struct network_step *sums = &trial.steps[2];
    const size_t size = network_elements(&sums->out) * ITEMS;
    float *outputs = network_random_floats(&seed, size),
          *others = network_random_floats(&seed, size);
    const double window = (double)sums->kernel[0] * sums->kernel[1];
    for (size_t i = 0; network_kernels_at(i); i++) {
        run_table(&trial, devices[0], network_kernels_at(i), outputs);
        run_table(&trial, devices[1], network_kernels_at(i), others);
        assert_memory_equal(outputs, others, size * sizeof *others);
        for (size_t item = 0; item < ITEMS; item++) {
            float *expected = calloc(trial.plan.arena, sizeof *expected);
            assert_non_null(expected);
            for (size_t k = 1; k < trial.plan.input_count; k++)
                network_put(expected, &trial.inputs[k],
                            trial.values[k] + item * network_elements(&trial.inputs[k]));
            network_step_reference(step, expected);
            network_step_reference(sums, expected);
            network_expect(step, &sums->out, expected,
                           outputs + item * network_elements(&sums->out), tolerance * window);
            free(expected);
        }
    }
    free(outputs);
    free(others);
    free(trial.ones);
    for (size_t i = 0; i < COUNT_OF(trial.values); i++)
        free(trial.values[i]);
}

static enum network_activation pick_activation(void)
{
    return (enum network_activation)pick(NETWORK_LINEAR, NETWORK_SOFTMAX);
}

static const uint32_t *pick_border(uint32_t border[4])
{
    for (size_t i = 0; i < 4; i++)
        border[i] = pick(0, 1) * pick(0, 2);
    return border;
}

// A kernel over an input: shapes of the input, with the border that the kernel needs, and of the
// result.  Pools clip their windows instead.
static size_t pick_window(struct network_step *step, uint32_t in, uint32_t out, bool is_clipped)
{
    uint32_t size[2], border[4];
    size_t arena = pick(0, 5);
    for (size_t d = 0; d < 2; d++) {
        const bool is_flat = d == 0 && pick(0, 2) == 0;
        step->kernel[d] = is_flat ? 1 : pick(1, 4);
        step->stride[d] = is_flat ? 1 : pick(1, 2);
        step->dilation[d] = is_flat ? 1 : pick(1, 2);
        const uint32_t extent = (step->kernel[d] - 1) * step->dilation[d] + 1;
        step->pad[d] = pick(0, extent - 1);
        size[d] = is_flat ? 1 : extent + pick(0, 12);
        const uint32_t behind = pick(0, extent - 1);
        const uint32_t windows = (size[d] + step->pad[d] + behind - extent) / step->stride[d] + 1;
        border[d] = is_clipped ? 0 : step->pad[d] + pick(0, 1);
        border[d + 2] = is_clipped ? 0 : behind;
        (d == 0 ? &step->out.height : &step->out.width)[0] = windows;
    }
    step->in[0] = place(&arena, size[0], size[1], in, border);
    step->out = place(&arena, step->out.height, step->out.width, out, pick_border(border));
    return arena;
}

// Adds the second input of the result's shape, for some.
static void pick_addition(struct network_step *step, size_t *arena)
{
    uint32_t border[4];
    if (pick(0, 1) == 0)
        return;
    step->inputs = 2;
    step->in[1] =
        place(arena, step->out.height, step->out.width, step->out.channels, pick_border(border));
}

TEST_CASE(test_convolutions)
{
    static const uint32_t channels[] = {1, 3, 4, 8, 9, 16, 17, 24, 31, 40, 48};
    for (size_t i = 0; i < 60; i++) {
        struct network_step step = plain_step(NETWORK_CONV);
        step.groups = pick(0, 3) == 0 ? pick(2, 3) : 1;
        const uint32_t in = (pick(0, 3) == 0 ? 16 : pick(1, 9)) * step.groups;
        const uint32_t out = channels[i % COUNT_OF(channels)] * step.groups;
        size_t arena = pick_window(&step, in, out, false);
        step.activation = pick_activation();
        pick_addition(&step, &arena);
        const size_t k = (size_t)step.kernel[0] * step.kernel[1] * in / step.groups;
        float *weights = network_random_floats(&seed, k * out),
              *bias = network_random_floats(&seed, out);
        step.weights = weights;
        step.bias = pick(0, 3) == 0 ? NULL : bias;
        check(&step, arena, 1e-5);
        free(weights);
        free(bias);
    }
}

// A kernel that covers the input, and vectors.
TEST_CASE(test_dense)
{
    const uint32_t none[4] = {0};
    for (size_t i = 0; i < 30; i++) {
        struct network_step step = plain_step(NETWORK_CONV);
        size_t arena = 0;
        step.kernel[0] = pick(1, 4);
        step.kernel[1] = pick(1, 4);
        const uint32_t in = pick(1, 40), out = pick(1, 150);
        step.in[0] = place(&arena, step.kernel[0], step.kernel[1], in, none);
        step.out = place(&arena, 1, 1, out, none);
        step.activation = pick_activation();
        pick_addition(&step, &arena);
        const size_t k = (size_t)step.kernel[0] * step.kernel[1] * in;
        float *weights = network_random_floats(&seed, k * out),
              *bias = network_random_floats(&seed, out);
        step.weights = weights;
        step.bias = bias;
        check(&step, arena, 1e-5);
        free(weights);
        free(bias);
    }
}

TEST_CASE(test_depthwise)
{
    for (size_t i = 0; i < 40; i++) {
        struct network_step step = plain_step(NETWORK_DEPTHWISE);
        const uint32_t channels = pick(1, 40);
        size_t arena = pick_window(&step, channels, channels, false);
        step.groups = channels;
        step.activation = pick_activation();
        pick_addition(&step, &arena);
        float *weights =
            network_random_floats(&seed, (size_t)step.kernel[0] * step.kernel[1] * channels);
        float *bias = network_random_floats(&seed, channels);
        step.weights = weights;
        step.bias = bias;
        check(&step, arena, 1e-5);
        free(weights);
        free(bias);
    }
}

TEST_CASE(test_pools)
{
    for (size_t i = 0; i < 40; i++) {
        struct network_step step = plain_step(i % 2 == 0 ? NETWORK_MAX_POOL : NETWORK_AVERAGE_POOL);
        const uint32_t channels = pick(1, 70);
        const size_t arena = pick_window(&step, channels, channels, true);
        step.activation = pick_activation();
        check(&step, arena, 1e-5);
    }
}

TEST_CASE(test_elements)
{
    for (size_t i = 0; i < 40; i++) {
        const enum network_op op = (enum network_op)((size_t)NETWORK_ADD + i % 3);
        struct network_step step = plain_step(op);
        const uint32_t height = pick(1, 4), width = pick(1, 6), channels = pick(1, 40);
        size_t arena = pick(0, 3);
        uint32_t border[4];
        const bool is_pixel = op == NETWORK_MULTIPLY && pick(0, 1) == 0;
        step.in[0] = place(&arena, height, width, channels, pick_border(border));
        step.inputs = op == NETWORK_ADD || op == NETWORK_MULTIPLY ? 2 : 1;
        step.in[1] = place(&arena, is_pixel ? 1 : height, is_pixel ? 1 : width, channels,
                           pick_border(border));
        step.out = place(&arena, height, width, channels, pick_border(border));
        step.activation = pick_activation();
        check(&step, arena, 1e-5);
    }
}

static void check_copies(enum network_op op)
{
    for (size_t i = 0; i < 10; i++) {
        struct network_step step = plain_step(op);
        const bool is_embed = op == NETWORK_EMBED;
        const uint32_t height = is_embed ? 1 : pick(1, 3), width = pick(1, 9);
        const uint32_t channels = pick(1, 40);
        size_t arena = pick(0, 3);
        uint32_t border[4];
        step.kernel[0] = is_embed ? 12 : pick(1, 3);
        step.kernel[1] = is_embed ? 1 : pick(1, 3);
        step.in[0] = place(&arena, height, width, is_embed ? 1 : channels, pick_border(border));
        step.out = place(&arena, is_embed ? 1 : height * step.kernel[0], width * step.kernel[1],
                         channels, pick_border(border));
        float *weights = network_random_floats(&seed, (size_t)12 * channels);
        step.weights = weights;
        check(&step, arena, 1e-6);
        free(weights);
    }
}

TEST_CASE(test_upsamplings)
{
    check_copies(NETWORK_UPSAMPLE);
}

TEST_CASE(test_embeddings)
{
    check_copies(NETWORK_EMBED);
}

TEST_CASE(test_gru)
{
    for (size_t i = 0; i < 20; i++) {
        struct network_step step = plain_step(NETWORK_GRU);
        const uint32_t in = pick(1, 20), units = pick(1, 50), width = pick(1, 20);
        size_t arena = 0;
        uint32_t border[4];
        pick_border(border);
        border[0] = border[2] = 0;
        step.in[0] = place(&arena, 1, width, in, border);
        step.out = place(&arena, 1, pick(0, 1) == 0 ? 1 : width, units, border);
        float *weights = network_random_floats(&seed, (size_t)3 * units * (in + units));
        float *bias = network_random_floats(&seed, (size_t)6 * units);
        step.weights = weights;
        step.bias = pick(0, 2) == 0 ? NULL : bias;
        check(&step, arena, 1e-5);
        free(weights);
        free(bias);
    }
}

// Values far from 0, where an exponential would overflow, and near it, where digits cancel.
TEST_CASE(test_activations)
{
    static const float values[] = {0.0F,  1e-20F, -1e-6F, 1e-3F,  0.199F, -0.2F, 0.201F, 0.7F,
                                   -1.0F, 3.0F,   -9.0F,  20.0F,  -87.0F, 88.0F, -89.0F, 200.0F,
                                   1e4F,  -1e4F,  1e30F,  -1e30F, 5.9F,   6.0F,  6.1F,   -0.0F};
    enum { COUNT = COUNT_OF(values) };
    struct network_step step = plain_step(NETWORK_COPY);
    step.in[0] = step.out =
        (struct network_tensor){.height = 1, .width = 1, .channels = COUNT, .pitch = COUNT};
    step.out.offset = COUNT;
    const struct network_plan plan = {.steps = &step,
                                      .step_count = 1,
                                      .inputs = &step.in[0],
                                      .input_count = 1,
                                      .outputs = &step.out,
                                      .output_count = 1,
                                      .arena = (size_t)2 * COUNT};
    struct error err = {0};
    for (int a = NETWORK_LINEAR; a <= NETWORK_SOFTMAX; a++) {
        step.activation = (enum network_activation)a;
        for (size_t i = 0; network_kernels_at(i); i++) {
            struct device_network *network = NULL;
            float out[COUNT], arena[2 * COUNT];
            memcpy(arena, values, sizeof values);
            network_step_reference(&step, arena);
            expect_ok(
                cpu_network_new_with(network_kernels_at(i), devices[0], &network, &plan, 1, &err),
                &err);
            expect_ok(device_network_run(network, (const float *const[]){values},
                                         (float *const[]){out}, 1, &err),
                      &err);
            for (size_t x = 0; x < COUNT; x++) // relative, above the smallest normal floats
                if (!(fabs((double)out[x] - (double)arena[COUNT + x]) <=
                      4e-6 * fabs((double)arena[COUNT + x]) + 4.0 * (double)FLT_MIN))
                    fail_msg("activation %d of %g is %g, not %g", a, (double)values[x],
                             (double)out[x], (double)arena[COUNT + x]);
            device_network_free(network);
        }
    }
}

// Plans that would read or write outside of their arena are refused.
TEST_CASE(test_refusals)
{
    struct error err = {0};
    struct device_network *network = NULL;
    struct network_step step = plain_step(NETWORK_COPY);
    step.in[0] = step.out =
        (struct network_tensor){.height = 2, .width = 2, .channels = 3, .pitch = 3};
    step.out.offset = 12;
    struct network_plan plan = {.steps = &step,
                                .step_count = 1,
                                .inputs = &step.in[0],
                                .input_count = 1,
                                .outputs = &step.out,
                                .output_count = 1,
                                .arena = 23};
    assert_int_equal(device_network_new(devices[0], &network, &plan, 1, &err), STATUS_INVALID);
    plan.arena = 24;
    assert_int_equal(device_network_new(devices[0], &network, &plan, 0, &err), STATUS_INVALID);
    expect_ok(device_network_new(devices[0], &network, &plan, 1, &err), &err);
    struct network_memory memory;
    device_network_memory(network, &memory);
    assert_int_equal(memory.weight_bytes, 0);
    assert_int_equal(memory.activation_bytes, 128); // whole cache lines
    float values[24] = {0};
    const float *const inputs[] = {values};
    float *const outputs[] = {values + 12};
    assert_int_equal(device_network_run(network, inputs, outputs, 2, &err), STATUS_INVALID);
    device_network_free(network);
    step.in[0].channels = 2;
    assert_int_equal(device_network_new(devices[0], &network, &plan, 1, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "'step'"));
}

TEST_FIXTURE(open_devices)
{
    struct error err = {0};
    for (unsigned int i = 0; i < 2; i++)
        expect_ok(device_open(&devices[i],
                              &(struct device_options){.spec = "cpu", .threads = 1 + 2 * i}, &err),
                  &err);
    return 0;
}

TEST_FIXTURE(close_devices)
{
    device_close(devices[0]);
    device_close(devices[1]);
    return 0;
}

TEST_MAIN_ONCE(open_devices, close_devices, test_convolutions, test_dense, test_depthwise,
               test_pools, test_elements, test_upsamplings, test_embeddings, test_gru,
               test_activations, test_refusals)
