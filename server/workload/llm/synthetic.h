// Generator of synthetic models: writes GGUF files with random weights, for tests and benchmarks.
// They load and run as real models do.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_SYNTHETIC_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_SYNTHETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct synthetic_shape {
    const char *name;
    uint32_t dim, ff, layers, heads, kv_heads, vocabulary, context; // as in llama.h
    bool tied; // the embedding serves as the output matrix
};

// The available shapes.  "tiny" is for tests: it has a separate output matrix and grouped key/value
// heads.  "15m" and "42m" have the shapes of the TinyStories models of those sizes.
enum { SYNTHETIC_TINY, SYNTHETIC_15M, SYNTHETIC_42M, SYNTHETIC_COUNT };
extern const struct synthetic_shape synthetic_shapes[SYNTHETIC_COUNT];

// Writes a GGUF file with a model of `shape` to `path`.  A random number generator seeded with
// `seed` gives the weights, in F16 if `half` is set, else in F32 (norms always in F32).  Metadata
// keys mark the model as synthetic.  shape->vocabulary must be at least 400, so that the tokens
// can encode any text.  The same arguments give the same file.
MUST_CHECK enum status synthetic_write(const char *path, const struct synthetic_shape *shape,
                                       bool half, uint64_t seed, struct error *err);

#endif
