// GGUF data types: names and sizes.  A value type says how a metadata value is stored, a tensor
// type how a tensor's elements are stored.  GGUF is the model file format of llama.cpp.
//
// Format: https://github.com/ggerganov/ggml/blob/master/docs/gguf.md
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_TYPE_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_TYPE_H

#include <stddef.h>
#include <stdint.h>

// One line per value type, in the order of the type ids in the file: enum suffix, name, bytes (0
// when the size varies).
#define GGUF_VALUE_TABLE(X)                                                                        \
    X(UINT8, "uint8", 1)                                                                           \
    X(INT8, "int8", 1)                                                                             \
    X(UINT16, "uint16", 2)                                                                         \
    X(INT16, "int16", 2)                                                                           \
    X(UINT32, "uint32", 4)                                                                         \
    X(INT32, "int32", 4)                                                                           \
    X(FLOAT32, "float32", 4)                                                                       \
    X(BOOL, "bool", 1)                                                                             \
    X(STRING, "string", 0)                                                                         \
    X(ARRAY, "array", 0)                                                                           \
    X(UINT64, "uint64", 8)                                                                         \
    X(INT64, "int64", 8)                                                                           \
    X(FLOAT64, "float64", 8)

enum gguf_value_type {
#define GGUF_VALUE_ENUM(name, text, size) GGUF_##name,
    GGUF_VALUE_TABLE(GGUF_VALUE_ENUM)
#undef GGUF_VALUE_ENUM
        GGUF_VALUE_TYPE_COUNT
};

const char *gguf_value_type_name(enum gguf_value_type type);
size_t gguf_value_type_size(enum gguf_value_type type); // 0: varies

// Storage format of a tensor: each block holds `block_elements` elements in `block_bytes` bytes.
struct gguf_tensor_type {
    uint32_t number; // the type's id in the file
    const char *name;
    uint32_t block_elements, block_bytes;
};

// Ids (`number`) of the two tensor types that this program computes with.
enum { GGUF_TENSOR_F32 = 0, GGUF_TENSOR_F16 = 1 };

// Returns the tensor type with the id `number`; NULL if there is none.
const struct gguf_tensor_type *gguf_tensor_type(uint32_t number);

#endif
