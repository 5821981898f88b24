// Weights of a model: the tensors in device memory.  Used only by llama.c.
#pragma once

#include "server/workload/llm/llama.h"

// Weights of a transformer block.  Norms and biases are vectors, the others matrices.  What a model
// lacks is zeroed.
struct llama_layer {
    struct tensor attention_norm, query, key, value, attention_output;
    struct tensor query_bias, key_bias, value_bias, query_norm, key_norm;
    struct tensor ffn_norm, router;
    struct tensor gate, up, down; // those of experts one below the other
};

struct llama_weights {
    struct tensor embedding, output_norm;
    struct tensor output;       // zeroed when tied: the embedding is the output matrix
    struct tensor divisors;     // of rotary frequencies; zeroed: none
    struct llama_layer *layers; // layer_count of them, allocated by llama_weights_load
    size_t layer_count;
    // Elements by type, and bytes, of all tensors.  A tied output counts once.
    uint64_t elements[TENSOR_TYPE_COUNT], bytes;
};

// Loads the weights for llama_load (llama.h).  Frees everything on failure.
MUST_CHECK enum status llama_weights_load(struct llama_weights *weights, struct device *device,
                                          const struct byte_source *source, const struct gguf *gguf,
                                          const struct llama_config *config,
                                          bool (*cancelled)(void), struct transfer_figures *figures,
                                          struct error *err);

// Frees and zeroes the weights.  Accepts zeroed or partly loaded weights.
void llama_weights_free(struct llama_weights *weights, struct device *device);

// For llama_each_weight (llama.h).
size_t llama_weights_each(struct llama_weights *weights, const struct llama_config *config,
                          llama_weight_visit *visit, void *context);
