#include "server/workload/zoo/quantise.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHRINKS = 64 }; // ranges tried for the least squared error: 16/64 .. 64/64 of all values

static struct zoo_grid grid_of_range(const struct zoo_quantiser *how, double low, double high)
{
    const int half = 1 << (how->bits - 1);
    struct zoo_grid grid = {.least = how->affine ? -half : 1 - half, .most = half - 1};
    // A range without 0.0 would not have it exactly.
    low = fmin(low, 0.0);
    high = fmax(high, 0.0);
    const double scale =
        how->affine ? (high - low) / (2 * half - 1) : fmax(-low, high) / (double)(half - 1);
    // Scales of zeros and denormal numbers would make infinite quotients, the largest ones infinite
    // results.
    grid.scale = scale < (double)FLT_MIN ? FLT_MIN : (float)fmin(scale, (double)FLT_MAX / 256.0);
    if (how->affine)
        grid.zero =
            (int)fmin(fmax(rint(grid.least - low / (double)grid.scale), grid.least), grid.most);
    return grid;
}

// x / scale, rounded and clamped as an integer is, without its zero.
static inline float round_value(const struct zoo_grid *grid, float x)
{
    // 1.5 * 2^23: the sum has no bits for fractions, so that adding it rounds to even.
    const float rounder = 12582912.0F;
    const float least = (float)(grid->least - grid->zero), most = (float)(grid->most - grid->zero);
    const float quotient = x / grid->scale;
    const float clamped = quotient < least ? least : quotient > most ? most : quotient;
    return (clamped + rounder) - rounder;
}

static double squared_error(const struct zoo_grid *grid, const float *values, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double error = (double)(round_value(grid, values[i]) * grid->scale - values[i]);
        sum += error * error;
    }
    return sum;
}

static struct zoo_grid least_error(const struct zoo_quantiser *how, const float *values, size_t n,
                                   double low, double high)
{
    struct zoo_grid best = grid_of_range(how, low, high);
    double least = squared_error(&best, values, n);
    for (int i = SHRINKS / 4; i < SHRINKS; i++) {
        const struct zoo_grid grid = grid_of_range(how, low * i / SHRINKS, high * i / SHRINKS);
        const double error = squared_error(&grid, values, n);
        if (error < least) {
            least = error;
            best = grid;
        }
    }
    return best;
}

static int compare_floats(const void *a, const void *b)
{
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void sort(float *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_floats);
}

// The smallest of n sorted values that is not below `ratio` of them (nearest rank).
static float quantile(const float *sorted, size_t n, double ratio)
{
    const double rank = ceil(ratio * (double)n);
    return sorted[rank < 1.0 ? 0 : rank > (double)n ? n - 1 : (size_t)rank - 1];
}

struct zoo_grid zoo_grid_of(const struct zoo_quantiser *how, const float *values, size_t n,
                            float *scratch)
{
    assert(n > 0 && how->bits >= 2 && how->bits <= 8);
    double low = (double)values[0], high = (double)values[0];
    if (how->clip == ZOO_CLIP_PERCENTILE) {
        for (size_t i = 0; i < n; i++)
            scratch[i] = how->affine ? values[i] : fabsf(values[i]);
        sort(scratch, n);
        const double outside = (1.0 - how->percentile / 100.0) / (how->affine ? 2.0 : 1.0);
        low = how->affine ? (double)quantile(scratch, n, outside) : 0.0;
        high = (double)quantile(scratch, n, 1.0 - outside);
        return grid_of_range(how, low, high);
    }
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, (double)values[i]);
        high = fmax(high, (double)values[i]);
    }
    return how->clip == ZOO_CLIP_MSE ? least_error(how, values, n, low, high)
                                     : grid_of_range(how, low, high);
}

void zoo_quantise(const struct zoo_grid *grid, int8_t *out, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (int8_t)((int)round_value(grid, values[i]) + grid->zero);
}

void zoo_round_to_grid(const struct zoo_grid *grid, float *out, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = round_value(grid, values[i]) * grid->scale;
}

void zoo_prune(float *values, size_t n, double share, float *scratch)
{
    const size_t count = (size_t)(share * (double)n);
    if (count == 0)
        return;
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabsf(values[i]);
    sort(scratch, n);
    const float threshold = scratch[count - 1];
    size_t below = 0; // magnitudes less than the threshold
    while (scratch[below] < threshold)
        below++;
    size_t equal = count - below; // of those at the threshold, to be set to zero
    for (size_t i = 0; i < n; i++) {
        const float magnitude = fabsf(values[i]);
        const bool at = magnitude == threshold && equal > 0;
        if (at)
            equal--;
        if (at || magnitude < threshold)
            values[i] = 0.0F;
    }
}

size_t zoo_sparse_bytes(const float *values, size_t n)
{
    size_t bytes = (n + 7) / 8;
    for (size_t i = 0; i < n; i++)
        if (values[i] != 0.0F)
            bytes += sizeof *values;
    return bytes;
}
