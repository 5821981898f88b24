#include "server/device/tensor_types.h"

#include <string.h>

#include "server/device/half.h"
#include "server/device/tensor_blocks.h"

// ---- Blocks of 32 -------------------------------------------------------------------------

static void unpack_q8_0(struct tensor_block *out, const void *from)
{
    const struct block_q8_0 *block = from;
    out->scales[0] = half_to_float(block->scale);
    out->offsets[0] = 0.0F;
    memcpy(out->values, block->values, sizeof block->values);
}

// Reads the two halves, and integers of four bits, or of five with `high`, less `zero`.
static void unpack_bits(struct tensor_block *out, uint16_t scale, uint16_t offset,
                        const uint8_t low[BLOCK / 2], const uint8_t *high, int zero)
{
    out->scales[0] = half_to_float(scale);
    out->offsets[0] = half_to_float(offset);
    for (int i = 0; i < BLOCK; i++) {
        const int four = i < BLOCK / 2 ? low[i] & 15 : low[i - BLOCK / 2] >> 4;
        const int fifth = high ? (high[i / 8] >> i % 8 & 1) << 4 : 0;
        out->values[i] = (int8_t)((four | fifth) - zero);
    }
}

static void unpack_q4_0(struct tensor_block *out, const void *from)
{
    const struct block_q4_0 *block = from;
    unpack_bits(out, block->scale, 0, block->low, NULL, 8);
}

static void unpack_q4_1(struct tensor_block *out, const void *from)
{
    const struct block_q4_1 *block = from;
    unpack_bits(out, block->scale, block->offset, block->low, NULL, 0);
}

static void unpack_q5_0(struct tensor_block *out, const void *from)
{
    const struct block_q5_0 *block = from;
    unpack_bits(out, block->scale, 0, block->low, block->high, 16);
}

static void unpack_q5_1(struct tensor_block *out, const void *from)
{
    const struct block_q5_1 *block = from;
    unpack_bits(out, block->scale, block->offset, block->low, block->high, 0);
}

// ---- Blocks of 256 ------------------------------------------------------------------------

// Scale and minimum of a group: those of groups 4 to 7 have their upper two bits beside those of
// groups 0 to 3.
static void unpack_scales(struct tensor_block *out, const uint8_t scales[12], uint16_t scale_half,
                          uint16_t minimum_half)
{
    const float scale = half_to_float(scale_half), minimum = half_to_float(minimum_half);
    for (int g = 0; g < 8; g++) {
        int multiple = scales[g % 4 + (g < 4 ? 0 : 8)];
        int least = scales[g + 4];
        if (g < 4) {
            multiple &= 63;
            least &= 63;
        } else {
            multiple = (multiple & 15) | scales[g - 4] >> 6 << 4;
            least = least >> 4 | scales[g] >> 6 << 4;
        }
        out->scales[g] = scale * (float)multiple;
        out->offsets[g] = -(minimum * (float)least);
    }
}

static void unpack_super(struct tensor_block *out, const uint8_t low[SUPER / 2],
                         const uint8_t *high)
{
    for (int g = 0; g < 8; g++) {
        for (int i = 0; i < BLOCK; i++) {
            const int four = g % 2 ? low[g / 2 * BLOCK + i] >> 4 : low[g / 2 * BLOCK + i] & 15;
            const int fifth = high ? (high[i] >> g & 1) << 4 : 0;
            out->values[g * BLOCK + i] = (int8_t)(four | fifth);
        }
    }
}

static void unpack_q4_k(struct tensor_block *out, const void *from)
{
    const struct block_q4_k *block = from;
    unpack_scales(out, block->scales, block->scale, block->minimum);
    unpack_super(out, block->low, NULL);
}

static void unpack_q5_k(struct tensor_block *out, const void *from)
{
    const struct block_q5_k *block = from;
    unpack_scales(out, block->scales, block->scale, block->minimum);
    unpack_super(out, block->low, block->high);
}

static void unpack_q6_k(struct tensor_block *out, const void *from)
{
    const struct block_q6_k *block = from;
    const float scale = half_to_float(block->scale);
    for (int g = 0; g < SUPER / 16; g++) {
        out->scales[g] = scale * (float)block->scales[g];
        out->offsets[g] = 0.0F;
    }
    for (int i = 0; i < SUPER; i++) {
        const int half = i / 128, place = i % 128;
        const uint8_t low = block->low[half * 64 + place % 64];
        const uint8_t high = block->high[half * 32 + place % 32];
        const int four = place < 64 ? low & 15 : low >> 4;
        out->values[i] = (int8_t)((four | (high >> place / 32 * 2 & 3) << 4) - 32);
    }
}

// ---- The table ----------------------------------------------------------------------------

const struct tensor_format tensor_formats[TENSOR_TYPE_COUNT] = {
    [TENSOR_F32] = {"F32", 0, 1, sizeof(float), 0, NULL, NULL},
    [TENSOR_F16] = {"F16", 1, 1, sizeof(uint16_t), 0, NULL, NULL},
    [TENSOR_BF16] = {"BF16", 30, 1, sizeof(uint16_t), 0, NULL, NULL},
    [TENSOR_Q8_0] = {"Q8_0", 8, BLOCK, sizeof(struct block_q8_0), 32, unpack_q8_0,
                     tensor_narrow_q8_0},
    [TENSOR_Q4_0] = {"Q4_0", 2, BLOCK, sizeof(struct block_q4_0), 32, unpack_q4_0,
                     tensor_narrow_q4_0},
    [TENSOR_Q4_1] = {"Q4_1", 3, BLOCK, sizeof(struct block_q4_1), 32, unpack_q4_1,
                     tensor_narrow_q4_1},
    [TENSOR_Q5_0] = {"Q5_0", 6, BLOCK, sizeof(struct block_q5_0), 32, unpack_q5_0,
                     tensor_narrow_q5_0},
    [TENSOR_Q5_1] = {"Q5_1", 7, BLOCK, sizeof(struct block_q5_1), 32, unpack_q5_1,
                     tensor_narrow_q5_1},
    [TENSOR_Q4_K] = {"Q4_K", 12, SUPER, sizeof(struct block_q4_k), 32, unpack_q4_k,
                     tensor_narrow_q4_k},
    [TENSOR_Q5_K] = {"Q5_K", 13, SUPER, sizeof(struct block_q5_k), 32, unpack_q5_k,
                     tensor_narrow_q5_k},
    [TENSOR_Q6_K] = {"Q6_K", 14, SUPER, sizeof(struct block_q6_k), 16, unpack_q6_k,
                     tensor_narrow_q6_k},
};

const char *tensor_type_name(enum tensor_type type)
{
    return (unsigned int)type < TENSOR_TYPE_COUNT ? tensor_formats[type].name : "?";
}

size_t tensor_row_bytes(enum tensor_type type, size_t columns)
{
    const struct tensor_format *format = &tensor_formats[type];
    return columns / format->block_elements * format->block_bytes;
}

void tensor_widen(enum tensor_type type, float *out, const void *row, size_t n)
{
    const struct tensor_format *format = &tensor_formats[type];
    const uint16_t *halves = row;
    struct tensor_block block;
    if (type == TENSOR_F32)
        memcpy(out, row, n * sizeof *out);
    for (size_t i = 0; type == TENSOR_F16 && i < n; i++)
        out[i] = half_to_float(halves[i]);
    for (size_t i = 0; type == TENSOR_BF16 && i < n; i++)
        out[i] = brain_to_float(halves[i]);
    const unsigned char *at = row;
    for (size_t done = 0; format->unpack && done < n; done += format->block_elements) {
        format->unpack(&block, at);
        at += format->block_bytes;
        for (size_t i = 0, g = 0; i < format->block_elements; g++)
            for (const size_t end = i + format->group; i < end; i++)
                out[done + i] = block.scales[g] * (float)block.values[i] + block.offsets[g];
    }
}

void tensor_narrow(const struct tensor_format *format, void *row, const float *in, size_t n)
{
    uint16_t *halves = row;
    unsigned char *at = row;
    if (format == &tensor_formats[TENSOR_F32])
        memcpy(row, in, n * sizeof *in);
    for (size_t i = 0; format == &tensor_formats[TENSOR_F16] && i < n; i++)
        halves[i] = half_from_float(in[i]);
    for (size_t i = 0; format == &tensor_formats[TENSOR_BF16] && i < n; i++)
        halves[i] = brain_from_float(in[i]);
    for (size_t done = 0; format->narrow && done < n; done += format->block_elements) {
        format->narrow(at, in + done);
        at += format->block_bytes;
    }
}
