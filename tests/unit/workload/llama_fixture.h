// What tests of the llama model share: a model in memory, loaded to the CPU.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "server/device/device.h"
#include "server/workload/llm/llama.h"
#include "server/workload/llm/synthetic.h"

struct ready {
    unsigned char *data;
    size_t size;
    struct byte_source source;
    struct gguf *gguf;
    struct llama_config config;
    struct device *device;
    struct llama *llama;
    struct llama_session *session;
};

// Reads and loads `data`; what was made so far stays for llama_ready_unload, also after a
// failure.
MUST_CHECK enum status llama_ready_load(struct ready *r, unsigned int threads,
                                        bool (*cancelled)(void), struct error *err);
void llama_ready_unload(struct ready *r);

// A model of random weights, of type F16 where `half`, and a session.
struct ready llama_ready_make(const struct synthetic_shape *shape, bool half, unsigned int threads,
                              size_t context);
void llama_ready_end(struct ready *r);
