// Convolutions in integers of 8 bits: every table against sums of 64 bits, bit for bit.
#include <math.h>
#include <stdlib.h>

#include "server/device/cpu/network/network_cpu.h"
#include "server/device/cpu/network/network_int8_lanes.h"
#include "tests/support/network_reference.h"
#include "tests/support/test.h"

static uint64_t seed = 5;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(test_random(&seed) >> 33) % n;
}

static float unit(void)
{
    return (float)((double)(test_random(&seed) >> 11) * 0x1p-52 - 1.0);
}

// A step over an arena of its own.
struct step_case {
    struct network_step step;
    struct network_int8 int8;
    int8_t *values, *zeros;
    float *scales, *bias, *arena;
    size_t size; // floats of the arena
};

static size_t bordered(const struct network_tensor *tensor)
{
    return (size_t)(tensor->height + tensor->border[0] + tensor->border[2]) *
           (tensor->width + tensor->border[1] + tensor->border[3]) * tensor->pitch;
}

static size_t products(const struct network_step *step)
{
    return (size_t)step->kernel[0] * step->kernel[1] * (step->in[0].channels / step->groups);
}

// The output's size follows from the input's.
static void shape_step(struct network_step *step, bool slices)
{
    struct network_tensor *in = &step->in[0], *out = &step->out;
    uint32_t *sizes[] = {&out->height, &out->width};
    const uint32_t inner[] = {in->height, in->width};
    for (int d = 0; d < 2; d++) {
        const uint32_t reach = (step->kernel[d] - 1) * step->dilation[d] + 1;
        step->pad[d] = below(reach);
        in->border[d] = step->pad[d] + below(2);
        const uint32_t after = below(reach);
        const uint32_t room = inner[d] + step->pad[d] + after;
        *sizes[d] = room < reach ? 1 : (room - reach) / step->stride[d] + 1;
        // All that the last output reads lies inside.
        const uint32_t end = (*sizes[d] - 1) * step->stride[d] + reach;
        in->border[2 + d] = end > inner[d] + step->pad[d] ? end - inner[d] - step->pad[d] : 0;
    }
    in->pitch = in->channels + (slices ? 3 : 0);
    out->pitch = out->channels + (slices ? 5 : 0);
    step->in[1] = *out;
    step->in[1].pitch = out->channels + (slices ? 1 : 0);
    out->offset = bordered(in);
    step->in[1].offset = out->offset + bordered(out);
}

static void fill(struct step_case *c, bool affine)
{
    const size_t outputs = c->step.out.channels, count = outputs * products(&c->step);
    c->size = c->step.in[1].offset + bordered(&c->step.in[1]);
    c->values = calloc(count, 1);
    c->zeros = calloc(outputs, 1);
    c->scales = calloc(outputs, sizeof *c->scales);
    c->bias = calloc(outputs, sizeof *c->bias);
    c->arena = calloc(c->size, sizeof *c->arena);
    for (size_t i = 0; i < count; i++)
        c->values[i] = (int8_t)((int)below(256) - 128);
    for (size_t o = 0; o < outputs; o++) {
        c->zeros[o] = (int8_t)(affine ? (int)below(256) - 128 : 0);
        c->scales[o] = 0.01F + fabsf(unit()) * 0.1F;
        c->bias[o] = unit();
    }
    c->int8 = (struct network_int8){.values = c->values,
                                    .scales = c->scales,
                                    .zeros = affine ? c->zeros : NULL,
                                    .input_scale = 0.02F,
                                    .input_zero = (int)below(256) - 128};
    c->step.int8 = &c->int8;
    c->step.bias = below(4) ? c->bias : NULL;
    const struct network_tensor *tensors[] = {&c->step.in[0], &c->step.in[1]};
    for (size_t t = 0; t < 2; t++)
        for (size_t y = 0; y < tensors[t]->height; y++)
            for (size_t x = 0; x < tensors[t]->width; x++)
                for (size_t i = 0; i < tensors[t]->channels; i++)
                    c->arena[network_place_of(tensors[t], y, x, i)] =
                        unit() * 4.0F; // some are clamped
}

static void make_case(struct step_case *c, bool affine, bool slices)
{
    static const enum network_activation activations[] = {NETWORK_LINEAR, NETWORK_RELU,
                                                          NETWORK_RELU6, NETWORK_TANH};
    const uint32_t groups = below(3) ? 1 : 1 + below(3);
    *c = (struct step_case){.step = {.op = NETWORK_CONV,
                                     .activation = activations[below(4)],
                                     .inputs = 1 + below(2),
                                     .kernel = {1 + below(4), 1 + below(4)},
                                     .stride = {1 + below(2), 1 + below(2)},
                                     .dilation = {1 + below(2), 1 + below(2)},
                                     .groups = groups,
                                     .name = "y.1"}};
    c->step.in[0] = (struct network_tensor){
        .height = 1 + below(9), .width = 1 + below(9), .channels = groups * (1 + below(9))};
    c->step.out.channels = groups * (1 + below(40));
    shape_step(&c->step, slices);
    fill(c, affine);
}

static void free_case(struct step_case *c)
{
    free(c->values);
    free(c->zeros);
    free(c->scales);
    free(c->bias);
    free(c->arena);
}

static int64_t rounded(const struct network_int8 *int8, float x)
{
    const double q = rint((double)(x * (1.0F / int8->input_scale))) + int8->input_zero;
    return (int64_t)fmax(-128.0, fmin(127.0, q));
}

// One output, by the definition of struct network_int8.
static float expect(const struct step_case *c, const float *arena, size_t y, size_t x, size_t o)
{
    const struct network_step *step = &c->step;
    const size_t inputs = step->in[0].channels / step->groups;
    const size_t group = o / (step->out.channels / step->groups);
    const int8_t *values = c->values + o * products(step);
    int64_t sum = 0;
    for (size_t ky = 0; ky < step->kernel[0]; ky++)
        for (size_t kx = 0; kx < step->kernel[1]; kx++)
            for (size_t i = 0; i < inputs; i++) {
                const size_t at = network_place_of(
                    &step->in[0], y * step->stride[0] + ky * step->dilation[0] - step->pad[0],
                    x * step->stride[1] + kx * step->dilation[1] - step->pad[1],
                    group * inputs + i);
                sum +=
                    (*values++ - c->zeros[o]) * (rounded(&c->int8, arena[at]) - c->int8.input_zero);
            }
    float value = (float)sum * (c->scales[o] * c->int8.input_scale);
    value += step->bias ? step->bias[o] : 0.0F;
    if (step->inputs > 1)
        value += arena[network_place_of(&step->in[1], y, x, o)];
    if (step->activation == NETWORK_RELU || step->activation == NETWORK_RELU6)
        value = fmaxf(value, 0.0F);
    return step->activation == NETWORK_RELU6 ? fminf(value, 6.0F) : value;
}

static void check(const struct step_case *c, const struct int8_kernels *kernels)
{
    const struct network_tensor *out = &c->step.out;
    const size_t pixels = (size_t)out->height * out->width;
    struct int8_conv *conv;
    struct error err = {0};
    assert_int_equal(int8_conv_new(&conv, &c->step, kernels, &err), STATUS_OK);
    float *arena = calloc(c->size, sizeof *arena);
    memcpy(arena, c->arena, c->size * sizeof *arena);
    void *scratch = malloc(int8_conv_scratch(conv));
    int8_conv_round(conv, scratch, arena);
    const size_t half = below((uint32_t)pixels + 1); // as two threads would
    int8_conv_run(conv, scratch, arena, half, pixels);
    int8_conv_run(conv, scratch, arena, 0, half);
    for (size_t y = 0; y < out->height; y++)
        for (size_t x = 0; x < out->width; x++)
            for (size_t o = 0; o < out->channels; o++) {
                const float expected = expect(c, c->arena, y, x, o);
                const float got = arena[network_place_of(out, y, x, o)];
                if (got != expected)
                    fail_msg("%s: (%zu, %zu, %zu): %.9g, not %.9g", kernels->name, y, x, o,
                             (double)got, (double)expected);
                arena[network_place_of(out, y, x, o)] = 0.0F;
            }
    // No other element changes.
    assert_memory_equal(arena, c->arena, c->size * sizeof *arena);
    free(arena);
    free(scratch);
    int8_conv_free(conv);
}

// The table for vpdpbusd in plain C, so that every machine checks its layout and offsets.
static void tile_unsigned(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS])
{
    for (size_t p = 0; p < INT8_PIXELS_MAX; p++) {
        const int8_t *weights = tile->weights;
        memset(sums[p], 0, sizeof sums[p]);
        for (size_t r = 0; r < tile->run_count; r++)
            for (size_t g = 0; g < tile->groups; g++)
                for (size_t o = 0; o < INT8_OUTPUTS; o++)
                    for (size_t i = 0; i < 4; i++)
                        sums[p][o] +=
                            ((const uint8_t *)tile->in[p])[tile->runs[r] + 4 * g + i] * *weights++;
    }
}

static void pixel_unsigned(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS])
{
    struct int8_tile all = *tile;
    int32_t each[INT8_PIXELS_MAX][INT8_OUTPUTS];
    for (size_t p = 1; p < INT8_PIXELS_MAX; p++)
        all.in[p] = all.in[0];
    tile_unsigned(&all, each);
    memcpy(sums[0], each[0], sizeof each[0]);
}

static void round_unsigned(void *out, const float *in, size_t n, float inverse, int zero)
{
    uint8_t *bytes = out;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(int8_round(in[i], inverse, zero) + zero + 128);
}

static void finish_unsigned(const struct int8_results *results, int32_t sums[][INT8_OUTPUTS],
                            size_t pixels)
{
    int8_finish(results, sums, pixels);
}

static const struct int8_kernels kernels_unsigned = {.name = "unsigned",
                                                     .unit = 4,
                                                     .pixels = INT8_PIXELS_MAX,
                                                     .tile = tile_unsigned,
                                                     .pixel = pixel_unsigned,
                                                     .round = round_unsigned,
                                                     .finish = finish_unsigned};

static void check_tables(const struct step_case *c)
{
    const struct int8_kernels *tables[] = {
        &int8_kernels_plain,
        &kernels_unsigned,
#if defined(__x86_64__)
        int8_kernels_avx2(),
        int8_kernels_vnni()
#endif
    };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        if (tables[t])
            check(c, tables[t]);
}

TEST_CASE(sums_are_exact)
{
    for (int round = 0; round < 150; round++) {
        struct step_case c;
        make_case(&c, round % 2, round / 2 % 2);
        check_tables(&c);
        free_case(&c);
    }
}

// The most products, all of the largest integers.
TEST_CASE(largest_sums_do_not_overflow)
{
    for (int sign = 0; sign < 2; sign++) {
        struct step_case c = {.step = {.op = NETWORK_CONV,
                                       .inputs = 1,
                                       .kernel = {1, NETWORK_INT8_PRODUCTS_MAX / 25},
                                       .stride = {1, 1},
                                       .dilation = {1, 1},
                                       .groups = 1}};
        c.step.in[0] = (struct network_tensor){
            .height = 1, .width = NETWORK_INT8_PRODUCTS_MAX / 25, .channels = 25, .pitch = 25};
        c.step.out = (struct network_tensor){.height = 1, .width = 1, .channels = 9, .pitch = 9};
        c.step.out.offset = bordered(&c.step.in[0]);
        c.step.in[1] = c.step.out;
        c.step.in[1].offset += bordered(&c.step.out);
        fill(&c, true);
        memset(c.values, 127, 9 * products(&c.step));
        memset(c.zeros, -128, 9);
        c.int8.input_zero = sign ? 127 : -128;
        for (size_t i = 0; i < c.step.out.offset; i++)
            c.arena[i] = sign ? -1000.0F : 1000.0F;
        check_tables(&c);
        free_case(&c);
    }
}

TEST_CASE(refuses_sums_that_could_overflow)
{
    struct step_case c;
    struct error err = {0};
    struct int8_conv *conv = NULL;
    make_case(&c, false, false);
    c.step.kernel[0] = NETWORK_INT8_PRODUCTS_MAX + 1;
    assert_int_equal(int8_conv_new(&conv, &c.step, int8_kernels_best(), &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "y.1: "));
    assert_null(conv);
    free_case(&c);
}

// As a step of a network, whose activation may follow the integers in floats.
TEST_CASE(activations_follow)
{
    enum { INPUTS = 5, OUTPUTS = 19 };
    struct error err = {0};
    struct device *device = NULL;
    expect_ok(device_open(&device, &(struct device_options){.spec = "cpu", .threads = 1}, &err),
              &err);
    struct step_case c = {0};
    struct network_step *step = &c.step;
    *step = (struct network_step){.op = NETWORK_CONV,
                                  .inputs = 1,
                                  .kernel = {1, 1},
                                  .stride = {1, 1},
                                  .dilation = {1, 1},
                                  .groups = 1,
                                  .name = "y.1"};
    step->in[0] =
        (struct network_tensor){.height = 1, .width = 1, .channels = INPUTS, .pitch = INPUTS};
    step->out =
        (struct network_tensor){.height = 1, .width = 1, .channels = OUTPUTS, .pitch = OUTPUTS};
    step->out.offset = INPUTS;
    step->in[1] = step->out;
    step->in[1].offset += OUTPUTS;
    fill(&c, true);
    step->bias = c.bias;
    const struct network_plan plan = {.steps = step,
                                      .step_count = 1,
                                      .inputs = &step->in[0],
                                      .input_count = 1,
                                      .outputs = &step->out,
                                      .output_count = 1,
                                      .arena = c.size};
    for (int a = NETWORK_LINEAR; a <= NETWORK_SOFTMAX; a++) {
        step->activation = (enum network_activation)a;
        network_step_reference(step, c.arena);
        for (size_t i = 0; network_kernels_at(i); i++) {
            struct device_network *network = NULL;
            float out[OUTPUTS];
            expect_ok(cpu_network_new_with(network_kernels_at(i), device, &network, &plan, 1, &err),
                      &err);
            expect_ok(device_network_run(network, (const float *const[]){c.arena},
                                         (float *const[]){out}, 1, &err),
                      &err);
            for (size_t o = 0; o < OUTPUTS; o++)
                if (!(fabsf(out[o] - c.arena[INPUTS + o]) <=
                      1e-5F * (1.0F + fabsf(c.arena[INPUTS + o]))))
                    fail_msg("activation %d: %g, not %g", a, (double)out[o],
                             (double)c.arena[INPUTS + o]);
            device_network_free(network);
        }
    }
    free_case(&c);
    device_close(device);
}

TEST_MAIN(sums_are_exact, largest_sums_do_not_overflow, refuses_sums_that_could_overflow,
          activations_follow)
