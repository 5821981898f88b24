// Rounds floats to the quantised tensor types (tensor_types.h): each group's range is divided
// evenly, and each element goes to the nearest step.
#include <math.h>
#include <string.h>

#include "server/device/half.h"
#include "server/device/tensor_blocks.h"
#include "server/device/tensor_types.h"

// The nearest step to x / scale, ties to even, within least..most; 0 if there is no scale.
static int step_of(float x, float scale, float least, float most)
{
    const float step = scale != 0.0F ? x / scale : 0.0F;
    const float bounded = step < least ? least : step > most ? most : step;
    return (int)(bounded + 0x1.8p23F - 0x1.8p23F); // the addition rounds to an integer
}

// The element that is farthest from 0.
static float farthest(const float *in, int n)
{
    float most = 0.0F;
    for (int i = 0; i < n; i++)
        if (fabsf(in[i]) > fabsf(most))
            most = in[i];
    return most;
}

static float least_of(const float *in, int n)
{
    float least = in[0];
    for (int i = 1; i < n; i++)
        least = in[i] < least ? in[i] : least;
    return least;
}

static float most_of(const float *in, int n)
{
    float most = in[0];
    for (int i = 1; i < n; i++)
        most = in[i] > most ? in[i] : most;
    return most;
}

// Rounds a scale to a half, sets `*stored` to it, and returns its value.
static float round_scale(uint16_t *stored, float scale)
{
    *stored = half_from_float(scale);
    return half_to_float(*stored);
}

// ---- Blocks of 32 -------------------------------------------------------------------------

void tensor_narrow_q8_0(void *to, const float *in)
{
    struct block_q8_0 *block = to;
    const float scale = round_scale(&block->scale, fabsf(farthest(in, BLOCK)) / 127.0F);
    for (int i = 0; i < BLOCK; i++)
        block->values[i] = (int8_t)step_of(in[i], scale, -127.0F, 127.0F);
}

// Stores the lower four bits of integers.
static void pack_fours(uint8_t low[BLOCK / 2], const int values[BLOCK])
{
    for (int i = 0; i < BLOCK / 2; i++)
        low[i] = (uint8_t)((values[i] & 15) | (values[i + BLOCK / 2] & 15) << 4);
}

static void pack_fifths(uint8_t high[BLOCK / 8], const int values[BLOCK])
{
    memset(high, 0, BLOCK / 8);
    for (int i = 0; i < BLOCK; i++)
        high[i / 8] |= (uint8_t)(values[i] >> 4 << i % 8);
}

// Of `steps` steps half are below 0; the farthest element has the lowest of them, so that it is
// exact.
static void narrow_around(uint16_t *stored, int values[BLOCK], const float *in, int steps)
{
    const float half = (float)(steps / 2);
    const float scale = round_scale(stored, farthest(in, BLOCK) / -half);
    for (int i = 0; i < BLOCK; i++)
        values[i] = step_of(in[i], scale, -half, half - 1.0F) + steps / 2;
}

static void narrow_above(uint16_t *stored_scale, uint16_t *stored_offset, int values[BLOCK],
                         const float *in, int steps)
{
    const float offset = round_scale(stored_offset, least_of(in, BLOCK));
    const float scale =
        round_scale(stored_scale, (most_of(in, BLOCK) - offset) / (float)(steps - 1));
    for (int i = 0; i < BLOCK; i++)
        values[i] = step_of(in[i] - offset, scale, 0.0F, (float)(steps - 1));
}

void tensor_narrow_q4_0(void *to, const float *in)
{
    struct block_q4_0 *block = to;
    int values[BLOCK];
    narrow_around(&block->scale, values, in, 16);
    pack_fours(block->low, values);
}

void tensor_narrow_q4_1(void *to, const float *in)
{
    struct block_q4_1 *block = to;
    int values[BLOCK];
    narrow_above(&block->scale, &block->offset, values, in, 16);
    pack_fours(block->low, values);
}

void tensor_narrow_q5_0(void *to, const float *in)
{
    struct block_q5_0 *block = to;
    int values[BLOCK];
    narrow_around(&block->scale, values, in, 32);
    pack_fours(block->low, values);
    pack_fifths(block->high, values);
}

void tensor_narrow_q5_1(void *to, const float *in)
{
    struct block_q5_1 *block = to;
    int values[BLOCK];
    narrow_above(&block->scale, &block->offset, values, in, 32);
    pack_fours(block->low, values);
    pack_fifths(block->high, values);
}

// ---- Blocks of 256 ------------------------------------------------------------------------

enum { GROUPS = SUPER / BLOCK };

// Minima are at most 0: a group's range includes it.
static void narrow_super(uint16_t *stored_scale, uint16_t *stored_minimum, uint8_t stored[12],
                         int values[SUPER], const float *in, int steps)
{
    float scales[GROUPS], minima[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        minima[g] = -fminf(least_of(in + g * BLOCK, BLOCK), 0.0F);
        scales[g] = (most_of(in + g * BLOCK, BLOCK) + minima[g]) / (float)(steps - 1);
        scales[g] = fmaxf(scales[g], 0.0F);
    }
    const float scale = round_scale(stored_scale, most_of(scales, GROUPS) / 63.0F);
    const float minimum = round_scale(stored_minimum, most_of(minima, GROUPS) / 63.0F);
    memset(stored, 0, 12);
    for (int g = 0; g < GROUPS; g++) {
        const int multiple = step_of(scales[g], scale, 0.0F, 63.0F);
        const int least = step_of(minima[g], minimum, 0.0F, 63.0F);
        if (g < 4) {
            stored[g] |= (uint8_t)multiple;
            stored[g + 4] |= (uint8_t)least;
        } else {
            stored[g + 4] = (uint8_t)((multiple & 15) | (least & 15) << 4);
            stored[g - 4] |= (uint8_t)(multiple >> 4 << 6);
            stored[g] |= (uint8_t)(least >> 4 << 6);
        }
        for (int i = g * BLOCK; i < (g + 1) * BLOCK; i++)
            values[i] = step_of(in[i] + minimum * (float)least, scale * (float)multiple, 0.0F,
                                (float)(steps - 1));
    }
}

static void pack_super(uint8_t low[SUPER / 2], const int values[SUPER])
{
    for (int i = 0; i < SUPER; i++) {
        uint8_t *byte = &low[i / BLOCK / 2 * BLOCK + i % BLOCK];
        *byte = (uint8_t)(i / BLOCK % 2 ? *byte | (values[i] & 15) << 4 : values[i] & 15);
    }
}

void tensor_narrow_q4_k(void *to, const float *in)
{
    struct block_q4_k *block = to;
    int values[SUPER];
    narrow_super(&block->scale, &block->minimum, block->scales, values, in, 16);
    pack_super(block->low, values);
}

void tensor_narrow_q5_k(void *to, const float *in)
{
    struct block_q5_k *block = to;
    int values[SUPER];
    narrow_super(&block->scale, &block->minimum, block->scales, values, in, 32);
    pack_super(block->low, values);
    memset(block->high, 0, sizeof block->high);
    for (int i = 0; i < SUPER; i++)
        block->high[i % BLOCK] |= (uint8_t)(values[i] >> 4 << i / BLOCK);
}

void tensor_narrow_q6_k(void *to, const float *in)
{
    enum { GROUP = 16 };
    struct block_q6_k *block = to;
    float scales[SUPER / GROUP];
    for (int g = 0; g < SUPER / GROUP; g++)
        scales[g] = farthest(in + g * GROUP, GROUP) / -32.0F;
    const float scale = round_scale(&block->scale, fabsf(farthest(scales, SUPER / GROUP)) / 127.0F);
    memset(block->low, 0, sizeof block->low);
    memset(block->high, 0, sizeof block->high);
    for (int i = 0; i < SUPER; i++) {
        const int g = i / GROUP, half = i / 128, place = i % 128;
        block->scales[g] = (int8_t)step_of(scales[g], scale, -127.0F, 127.0F);
        const int value = step_of(in[i], scale * (float)block->scales[g], -32.0F, 31.0F) + 32;
        block->low[half * 64 + place % 64] |=
            (uint8_t)(place < 64 ? value & 15 : (value & 15) << 4);
        block->high[half * 32 + place % 32] |= (uint8_t)(value >> 4 << place / 32 * 2);
    }
}
