// Model loader of the LLM workload: opens a device and a GGUF file, loads tokenizer and weights.
// Records as telemetry the load and the durations of its stages:
//   device_selection  choose and open the device
//   file_opening      open the file, measure its fraction in the page cache
//   read_header       read the keys and the list of tensors, check them
//   tokenizer_init    build the vocabulary
//   model_building    check that memory suffices, copy all weights to the device
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/inferstat.h"
#include "server/device/device.h"
#include "server/workload/llm/tokenizer/chat_template.h"
#include "server/workload/llm/llama.h"
#include "server/workload/llm/tokenizer/tokenizer.h"

struct llm_load_options {
    const char *path;
    struct device_options device;
    uint32_t context;        // of the session to come; 0: llama_default_context
    int chat;                // choice of a chat template (chat_template.h)
    bool (*cancelled)(void); // polled; NULL: never cancelled
    const char *delay;       // for tests: "STAGE:MS" sleeps in that stage; NULL: in none
};

// A loaded model, used by one thread.
struct llm {
    struct device *device;
    struct tokenizer *tokenizer;
    struct llama *llama;
    const struct chat_template *chat;     // NULL: prompts are encoded as they are
    char name[256];                       // name of the file, without folder and gguf_name_size
    uint32_t model_number, device_number; // ids of the interned names, for records
};

// Loads a model and records the load.  Before it reads weights, fails as llama_check_context does
// for options->context, and with STATUS_NOMEM if the weights and a session exceed the device's
// available memory.  The record of a failed load has the reason.  Fails as device_open, gguf_open,
// gguf_read_all, tokenizer_new, chat_template_choose, llama_config_read and llama_load do, with
// STATUS_CORRUPT if a file was written to while it was read, or with STATUS_CANCELLED.  `monitor`
// may be NULL: then nothing is recorded.  Borrows nothing.
MUST_CHECK enum status llm_load(struct llm **out, const struct llm_load_options *options,
                                struct inferstat_monitor *monitor, struct error *err);

// Accepts NULL.
void llm_free(struct llm *llm);
