// Types of tensor elements: one table with the storage format of each.  Formats of block-quantised
// types are those of ggml (docs/gguf.md there): a block has integers, and a scale or more for them.
// Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tensor_type {
    TENSOR_F32,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_Q8_0,
    TENSOR_Q4_0,
    TENSOR_Q4_1,
    TENSOR_Q5_0,
    TENSOR_Q5_1,
    TENSOR_Q4_K,
    TENSOR_Q5_K,
    TENSOR_Q6_K,
    TENSOR_TYPE_COUNT
};

enum {
    TENSOR_BLOCK_MAX = 256, // elements of a block
    TENSOR_GROUP_MIN = 16,  // elements of a group, which share a scale
};

// The contents of one block of a quantised type: element i of group g is
// scales[g] * values[i] + offsets[g].
struct tensor_block {
    int8_t values[TENSOR_BLOCK_MAX];
    float scales[TENSOR_BLOCK_MAX / TENSOR_GROUP_MIN];
    float offsets[TENSOR_BLOCK_MAX / TENSOR_GROUP_MIN];
};

struct tensor_format {
    const char *name; // as in model files: "Q8_0"
    uint32_t number;  // the type's id in a GGUF file
    size_t block_elements, block_bytes;
    size_t group; // elements of a group: 16 or 32; 0: the type has no blocks
    // Read and write one block; NULL where there are none.
    void (*unpack)(struct tensor_block *out, const void *block);
    void (*narrow)(void *block, const float *in);
};

extern const struct tensor_format tensor_formats[TENSOR_TYPE_COUNT];

// The name of the type; "?" if there is none.
const char *tensor_type_name(enum tensor_type type);

// Bytes of `columns` elements, whole blocks.
size_t tensor_row_bytes(enum tensor_type type, size_t columns);

// Converts `n` elements, whole blocks, to float (dequantises them).
void tensor_widen(enum tensor_type type, float *out, const void *row, size_t n);

// Rounds `n` finite elements, whole blocks, to a type (quantises them).
void tensor_narrow(const struct tensor_format *format, void *row, const float *in, size_t n);

// The functions `narrow` of the quantised types.
void tensor_narrow_q8_0(void *to, const float *in);
void tensor_narrow_q4_0(void *to, const float *in);
void tensor_narrow_q4_1(void *to, const float *in);
void tensor_narrow_q5_0(void *to, const float *in);
void tensor_narrow_q5_1(void *to, const float *in);
void tensor_narrow_q4_k(void *to, const float *in);
void tensor_narrow_q5_k(void *to, const float *in);
void tensor_narrow_q6_k(void *to, const float *in);
