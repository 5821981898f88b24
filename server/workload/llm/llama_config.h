// Hyperparameters of a llama model, read from the metadata keys of its GGUF file.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_LLAMA_CONFIG_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_LLAMA_CONFIG_H

#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/workload/llm/gguf.h"

struct llama_config {
    size_t context;         // maximum number of positions that the model was trained for
    size_t dim, ff;         // elements of an embedding and of a feed-forward layer
    size_t layers;          // number of transformer blocks
    size_t heads, kv_heads; // query heads, key/value heads; kv_heads divides heads
    size_t head_size;       // elements of one head
    size_t rope_size;       // elements of a head that rotary embedding rotates; even
    size_t vocabulary;      // rows of the embedding: tokens
    float epsilon;          // of RMSNorm
    double rope_base;       // base of the rotary embedding's frequencies
    double rope_scale;      // positions are divided by it
};

// Reads and checks the metadata keys.  `vocabulary` is the tokenizer's number of tokens.  Fails
// with STATUS_UNSUPPORTED if the architecture is not llama or a variant is unknown,
// STATUS_NOT_FOUND if a key is missing, STATUS_CORRUPT if a value has the wrong type or is out of
// range.
MUST_CHECK enum status llama_config_read(struct llama_config *out, const struct gguf *gguf,
                                         size_t vocabulary, struct error *err);

#endif
