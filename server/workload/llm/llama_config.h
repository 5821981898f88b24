// Hyperparameters of a llama model, read from the metadata keys of its GGUF file.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_LLAMA_CONFIG_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_LLAMA_CONFIG_H

#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/workload/llm/gguf.h"

struct llama_config {
    size_t context;         // positions the model was made for
    size_t dim, ff, layers; // embedding, feed-forward, blocks
    size_t heads, kv_heads; // kv_heads divides heads
    size_t head_size;       // elements of one head
    size_t rope_size;       // elements of a head that rotary embedding rotates; even
    size_t vocabulary;      // rows of the embedding
    float epsilon;          // of RMSNorm
    double rope_base;       // base of the rotary embedding's frequencies
    double rope_scale;      // positions are divided by it
};

// Reads and checks the keys; `vocabulary` is the tokenizer's count.  Fails with
// STATUS_UNSUPPORTED on another architecture or an unknown variant, STATUS_NOT_FOUND on a missing
// key, STATUS_CORRUPT on a wrong type or a number out of range.
MUST_CHECK enum status llama_config_read(struct llama_config *out, const struct gguf *gguf,
                                         size_t vocabulary, struct error *err);

#endif
