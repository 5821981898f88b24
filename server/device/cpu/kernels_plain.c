#include "server/device/cpu/kernels.h"

#include "server/device/half.h"

// Sums are kept in eight lanes, as a vector unit would, so that compilers can use
// one and rounding errors stay small.
enum { LANES = 8 };

static float add_lanes(const float lanes[LANES])
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static float dot(const float *x, const float *y, size_t n)
{
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            lanes[lane] += x[i + lane] * y[i + lane];
    float sum = add_lanes(lanes);
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static float widen(uint16_t y, enum tensor_type type)
{
    return type == TENSOR_F16 ? half_to_float(y) : brain_to_float(y);
}

static float dot_short(const float *x, const uint16_t *y, size_t n, enum tensor_type type)
{
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            lanes[lane] += x[i + lane] * widen(y[i + lane], type);
    float sum = add_lanes(lanes);
    for (; i < n; i++)
        sum += x[i] * widen(y[i], type);
    return sum;
}

static void matmul_f32(const struct cpu_product *p, size_t first, size_t last)
{
    for (size_t o = first; o < last; o++) {
        const float *weight = (const float *)p->weight + o * p->k;
        for (size_t r = 0; r < p->rows; r++)
            p->out[r * p->out_stride + o] = dot(p->in + r * p->k, weight, p->k);
    }
}

static void matmul_short(const struct cpu_product *p, size_t first, size_t last)
{
    for (size_t o = first; o < last; o++) {
        const uint16_t *weight = (const uint16_t *)p->weight + o * p->k;
        for (size_t r = 0; r < p->rows; r++)
            p->out[r * p->out_stride + o] = dot_short(p->in + r * p->k, weight, p->k, p->type);
    }
}

static void accumulate(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static double multiply_add(float *value, size_t rounds)
{
    float lanes[LANES];
    for (size_t lane = 0; lane < LANES; lane++)
        lanes[lane] = *value * (float)lane;
    for (size_t i = 0; i < rounds; i++)
        for (size_t lane = 0; lane < LANES; lane++)
            lanes[lane] = lanes[lane] * 0.5F + *value;
    *value = add_lanes(lanes);
    return 2.0 * LANES * (double)rounds;
}

const struct cpu_kernels cpu_kernels_plain = {
    .name = "plain C",
    .matmul =
        {[TENSOR_F32] = matmul_f32, [TENSOR_F16] = matmul_short, [TENSOR_BF16] = matmul_short},
    .matmul_blocks = cpu_matmul_blocks_plain,
    .round = cpu_round_plain,
    .dot = dot,
    .accumulate = accumulate,
    .scores = cpu_scores_plain,
    .softmax = cpu_softmax_plain,
    .mix = cpu_mix_plain,
    .swiglu = cpu_swiglu_plain,
    .multiply_add = multiply_add,
};

const struct cpu_kernels *cpu_kernels_at(size_t i)
{
#if defined(__x86_64__)
    if (i == 1 || i == 2)
        return i == 1 ? cpu_kernels_avx2() : cpu_kernels_avx512();
#endif
    return i == 0 ? &cpu_kernels_plain : NULL;
}

const struct cpu_kernels *cpu_kernels_best(void)
{
    size_t i = 0;
    while (cpu_kernels_at(i + 1))
        i++;
    return cpu_kernels_at(i);
}
