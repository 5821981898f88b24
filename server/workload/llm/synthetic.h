// Generator of synthetic models: writes GGUF files with random weights, for tests and benchmarks.
// They load and run as real models do.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/tensor_types.h"

struct synthetic_shape {
    const char *name;
    uint32_t dim, ff, layers, heads, kv_heads, vocabulary, context; // as in llama.h
    bool tied; // the embedding serves as the output matrix
};

// The available shapes.  "tiny" is for tests: it has a separate output matrix and grouped key/value
// heads.  "15m", "42m" and "110m" have the shapes of the TinyStories models of those sizes, "1b"
// that of TinyLlama 1.1B, "8b" that of Llama 3 8B.
enum {
    SYNTHETIC_TINY,
    SYNTHETIC_15M,
    SYNTHETIC_42M,
    SYNTHETIC_110M,
    SYNTHETIC_1B,
    SYNTHETIC_8B,
    SYNTHETIC_COUNT
};
extern const struct synthetic_shape synthetic_shapes[SYNTHETIC_COUNT];

struct synthetic_measure {
    uint64_t bytes;     // of all weights
    double typed_ratio; // of the weights of matrices, those that have the type; the others are F16
};

struct synthetic_measure synthetic_measure(const struct synthetic_shape *shape,
                                           enum tensor_type type);

// Writes a GGUF file with a model of `shape` and random weights to `path`.  Matrices are of `type`,
// or F16 where their rows are no whole blocks of it; norms are F32.  Metadata keys mark the model
// as synthetic.  The same shape, type and seed give the same file on any machine, with any number
// of threads (at least 1).  Uses about 10 MiB of memory beside that of the vocabulary.
// shape->vocabulary must be at least 400, so that the tokens can encode any text.  Fails with
// STATUS_CANCELLED after a stop request (common/sys/stop.h), STATUS_NOMEM or STATUS_IO, and then
// leaves `path` as it was.
MUST_CHECK enum status synthetic_write(const char *path, const struct synthetic_shape *shape,
                                       enum tensor_type type, uint64_t seed, unsigned int threads,
                                       struct error *err);
