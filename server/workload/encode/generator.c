#include "server/workload/encode/generator.h"

#include <math.h>
#include <stdbool.h>

// 64 random bits for index `at`: splitmix64 (Steele, Lea and Flood, 2014).
static uint64_t bits_at(uint64_t seed, uint64_t at)
{
    uint64_t z = seed + (at + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

// x * scale + shift for uniform 0 <= x < 1, in steps that the type represents; or rounded down.
struct range {
    double scale, shift;
    bool whole;
};

static struct range range_of(const struct generator *generator)
{
    if (generator->encoder == ENCODER_AMPLITUDE)
        return (struct range){.scale = 2.0, .shift = -1.0};
    if (generator->encoder == ENCODER_BASIS)
        return (struct range){.scale = ldexp(1.0, (int)generator->qubits), .whole = true};
    return (struct range){.scale = 6.283185307179586};
}

// Mixed, so that similar seeds give independent sequences.
static uint64_t spread_seed(uint64_t seed)
{
    return bits_at(UINT64_C(0x2545f4914f6cdd1d), seed);
}

static void fill_f64(double *to, struct range range, uint64_t seed, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double)(bits_at(seed, first + i) >> 11) * 0x1p-53 * range.scale + range.shift;
        to[i] = range.whole ? floor(x) : x;
    }
}

static void fill_f32(float *to, struct range range, uint64_t seed, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double)(bits_at(seed, first + i) >> 40) * 0x1p-24 * range.scale + range.shift;
        to[i] = (float)(range.whole ? floor(x) : x);
    }
}

void generator_fill(const struct generator *generator, uint64_t first, size_t count, void *to)
{
    struct range range = range_of(generator);
    uint64_t seed = spread_seed(generator->seed);
    if (generator->type == ENCODE_F64)
        fill_f64(to, range, seed, first, count);
    else
        fill_f32(to, range, seed, first, count);
}
