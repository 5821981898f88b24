// Layout of the blocks of quantised tensor types (tensor_types.h), as in the file.
#pragma once

#include <stdint.h>

enum { BLOCK = 32, SUPER = 256 }; // elements of a block, and of a block of the types Q*_K

// `scale` and `offset` are halves.  Byte i of `low` has the lower four bits of elements i and
// i + 16; bit i of `high` is the fifth bit of element i.
struct block_q8_0 {
    uint16_t scale;
    int8_t values[BLOCK];
};
struct block_q4_0 {
    uint16_t scale;
    uint8_t low[BLOCK / 2];
};
struct block_q4_1 {
    uint16_t scale, offset;
    uint8_t low[BLOCK / 2];
};
struct block_q5_0 {
    uint16_t scale;
    uint8_t high[BLOCK / 8], low[BLOCK / 2];
};
struct block_q5_1 {
    uint16_t scale, offset;
    uint8_t high[BLOCK / 8], low[BLOCK / 2];
};

// Eight groups of 32 with a scale and a minimum of six bits each in `scales`, which are multiples
// of `scale` and `minimum`.  Byte 32 p + i of `low` has the lower four bits of element i of groups
// 2 p and 2 p + 1; bit g of byte i of `high` is the fifth bit of element i of group g.
struct block_q4_k {
    uint16_t scale, minimum;
    uint8_t scales[12], low[SUPER / 2];
};
struct block_q5_k {
    uint16_t scale, minimum;
    uint8_t scales[12], high[SUPER / 8], low[SUPER / 2];
};

// Sixteen groups of 16.  Of each half of 128 elements, byte i (of 64) of `low` has the lower four
// bits of elements i and i + 64; byte i (of 32) of `high` has the upper two bits of elements i,
// i + 32, i + 64 and i + 96.
struct block_q6_k {
    uint8_t low[SUPER / 2], high[SUPER / 4];
    int8_t scales[SUPER / 16];
    uint16_t scale;
};
