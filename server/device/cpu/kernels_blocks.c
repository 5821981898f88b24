// Products with block-quantised weights in portable C: the weights of a block are read once for all
// rows, and multiplied as integers.
#include <math.h>
#include <string.h>

#include "server/device/cpu/kernels.h"

void cpu_round_plain(struct cpu_rounded *out, size_t row, const float *in, size_t n)
{
    int8_t *values = out->values + row * out->groups * CPU_GROUP;
    float *scales = out->scales + row * out->groups;
    float *sums = out->sums + row * out->groups;
    memset(values, 0, out->groups * CPU_GROUP);
    for (size_t g = 0; g < out->groups; g++) {
        float most = 0.0F;
        int sum = 0;
        for (size_t i = g * CPU_GROUP; i < n && i < (g + 1) * CPU_GROUP; i++)
            most = fmaxf(most, fabsf(in[i]));
        const float factor = most > 0.0F ? 127.0F / most : 0.0F;
        for (size_t i = g * CPU_GROUP; i < n && i < (g + 1) * CPU_GROUP; i++) {
            values[i] = (int8_t)lrintf(in[i] * factor);
            sum += values[i];
        }
        scales[g] = most / 127.0F;
        sums[g] = scales[g] * (float)sum;
    }
}

// Adds the product of a block of weights with row `r` from element `at` on.
static float add_block(float sum, const struct cpu_product *p, const struct tensor_block *block,
                       size_t r, size_t at)
{
    const struct tensor_format *format = &tensor_formats[p->type];
    const struct cpu_rounded *in = &p->rounded;
    for (size_t g = 0; g < format->block_elements / format->group; g++) {
        const size_t first = at + g * format->group, place = r * in->groups + first / CPU_GROUP;
        const int8_t *values = in->values + r * in->groups * CPU_GROUP + first;
        int product = 0;
        for (size_t i = 0; i < format->group; i++)
            product += block->values[g * format->group + i] * values[i];
        sum += block->scales[g] * in->scales[place] * (float)product;
        if (block->offsets[g] != 0.0F)
            sum += block->offsets[g] * in->sums[place];
    }
    return sum;
}

void cpu_matmul_blocks_plain(const struct cpu_product *p, size_t first, size_t last)
{
    const struct tensor_format *format = &tensor_formats[p->type];
    const size_t row_bytes = tensor_row_bytes(p->type, p->k);
    struct tensor_block block;
    for (size_t o = first; o < last; o++) {
        const unsigned char *at = (const unsigned char *)p->weight + o * row_bytes;
        for (size_t r = 0; r < p->rows; r++)
            p->out[r * p->out_stride + o] = 0.0F;
        for (size_t i = 0; i < p->k; i += format->block_elements, at += format->block_bytes) {
            format->unpack(&block, at);
            for (size_t r = 0; r < p->rows; r++) {
                float *out = &p->out[r * p->out_stride + o];
                *out = add_block(*out, p, &block, r, i);
            }
        }
    }
}
