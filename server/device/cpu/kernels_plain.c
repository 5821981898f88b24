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

static float dot_half(const float *x, const uint16_t *y, size_t n)
{
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            lanes[lane] += x[i + lane] * half_to_float(y[i + lane]);
    float sum = add_lanes(lanes);
    for (; i < n; i++)
        sum += x[i] * half_to_float(y[i]);
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

static void matmul_f16(const struct cpu_product *p, size_t first, size_t last)
{
    for (size_t o = first; o < last; o++) {
        const uint16_t *weight = (const uint16_t *)p->weight + o * p->k;
        for (size_t r = 0; r < p->rows; r++)
            p->out[r * p->out_stride + o] = dot_half(p->in + r * p->k, weight, p->k);
    }
}

static void accumulate(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

const struct cpu_kernels cpu_kernels_plain = {
    .name = "plain C",
    .matmul_f32 = matmul_f32,
    .matmul_f16 = matmul_f16,
    .dot = dot,
    .accumulate = accumulate,
};

const struct cpu_kernels *cpu_kernels_best(void)
{
    const struct cpu_kernels *avx2 = cpu_kernels_avx2();
    return avx2 ? avx2 : &cpu_kernels_plain;
}
