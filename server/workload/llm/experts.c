#include "server/workload/llm/experts.h"

#include <math.h>

void experts_weigh(float *weights, const float *scores, size_t count, size_t used)
{
    const float unused = -1.0F;
    float top = 0.0F;
    float sum = 0.0F;
    for (size_t i = 0; i < count; i++)
        weights[i] = unused;
    for (size_t n = 0; n < used; n++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++)
            if (weights[i] == unused && (best == count || scores[i] > scores[best]))
                best = i;
        if (n == 0)
            top = scores[best];
        weights[best] = expf(scores[best] - top);
        sum += weights[best];
    }
    for (size_t i = 0; i < count; i++)
        weights[i] = weights[i] == unused ? 0.0F : weights[i] / sum;
}

size_t experts_rows(uint32_t *out_rows, float *out_weights, const float *weights, size_t rows,
                    size_t count, size_t expert)
{
    size_t found = 0;
    for (size_t r = 0; r < rows; r++) {
        const float weight = weights[r * count + expert];
        if (weight == 0.0F)
            continue;
        out_rows[found] = (uint32_t)r;
        out_weights[found++] = weight;
    }
    return found;
}
