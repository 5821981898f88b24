// Architectures of language models: what distinguishes the families of transformers that llama.h
// computes.  A file names its architecture in the key general.architecture, and begins the keys of
// its hyperparameters with that name.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"
#include "server/device/device.h"
#include "server/workload/llm/gguf.h"

enum architecture_experts { EXPERTS_NEVER, EXPERTS_OPTIONAL, EXPERTS_ALWAYS };

struct architecture {
    const char *name;
    enum rope_pairs pairs; // of queries and keys, as the files of the family store them
    bool biases;           // of queries, keys and values
    bool head_norms;       // RMSNorm of every head of queries and keys before the rotation
    // All layers use the sliding window that a file names.  Where only some would, or none, the key
    // is not understood.
    bool window;
    enum architecture_experts experts; // feed-forward layers are mixtures of experts
};

// Finds the architecture of a file.  Fails with STATUS_UNSUPPORTED if it is unknown (`err` lists
// the known ones), and as gguf_get_text does.  `*out` is static.
MUST_CHECK enum status architecture_find(const struct architecture **out, const struct gguf *gguf,
                                         struct error *err);

enum { ARCHITECTURE_KEY_SIZE = 96 };

// Writes the key "NAME.SUFFIX" of an architecture to `out` and returns it.
const char *architecture_key(char out[ARCHITECTURE_KEY_SIZE],
                             const struct architecture *architecture, const char *suffix);
