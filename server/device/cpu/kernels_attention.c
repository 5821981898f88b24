// Softmax, SwiGLU and attention's sums in portable C.
#include <math.h>
#include <string.h>

#include "server/device/cpu/kernels.h"

void cpu_softmax_plain(float *x, size_t n)
{
    float largest = x[0];
    for (size_t i = 1; i < n; i++)
        if (x[i] > largest)
            largest = x[i];
    float sum = 0.0F;
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(x[i] - largest);
        sum += x[i];
    }
    for (size_t i = 0; i < n; i++)
        x[i] /= sum;
}

void cpu_swiglu_plain(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gate[i] = gate[i] / (1.0F + expf(-gate[i])) * up[i];
}

void cpu_scores_plain(float *out, const struct cpu_heads *keys, const float *query, float scale)
{
    for (size_t i = 0; i < keys->count; i++)
        out[i] = scale * cpu_kernels_plain.dot(query, keys->first + i * keys->stride, keys->size);
}

void cpu_mix_plain(float *out, const struct cpu_heads *values, const float *weights)
{
    memset(out, 0, values->size * sizeof *out);
    for (size_t i = 0; i < values->count; i++)
        cpu_kernels_plain.accumulate(out, weights[i], values->first + i * values->stride,
                                     values->size);
}
