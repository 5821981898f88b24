// Inference of llama models: the weights in device memory, and sessions, each with the KV cache
// of one text.  Touvron et al., arXiv:2302.13971.
//
// A model, its sessions and the device belong to one thread.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_LLAMA_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_LLAMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/device.h"
#include "server/workload/byte_source.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/llm/llama_config.h"
#include "server/workload/llm/transfer.h"

struct llama;
struct llama_session;

// Copies all weights to the memory of `device` (borrowed until llama_free).  `cancelled`, if not
// NULL, is polled between chunks and ends the load with STATUS_CANCELLED; `figures` are filled
// also then.  Fails with STATUS_NOT_FOUND on a missing tensor, STATUS_CORRUPT on a wrong shape,
// STATUS_UNSUPPORTED on a type other than F32 and F16 or an unknown tensor, STATUS_NOMEM, or as
// transfer_run does.
MUST_CHECK enum status llama_load(struct llama **out, struct device *device,
                                  const struct byte_source *source, const struct gguf *gguf,
                                  const struct llama_config *config, bool (*cancelled)(void),
                                  struct transfer_figures *figures, struct error *err);

// Accepts NULL.  Sessions must have been freed.
void llama_free(struct llama *llama);

const struct llama_config *llama_get_config(const struct llama *llama);

// The number of elements of all weights; a tied output counts once.
uint64_t llama_parameters(const struct llama *llama);

// Bytes of a session's KV cache per position; computing a token reads those of all earlier ones.
uint64_t llama_kv_bytes_per_token(const struct llama *llama);

// The type of most weights ("F16").
const char *llama_quantisation(const struct llama *llama);

enum {
    LLAMA_CONTEXT_DEFAULT = 4096,
    // A session's memory is limited to BASE bytes plus FACTOR times the bytes of the weights.
    LLAMA_SESSION_BASE = 16 << 20,
    LLAMA_SESSION_FACTOR = 16,
};

// The model's own context, at most LLAMA_CONTEXT_DEFAULT.
size_t llama_default_context(const struct llama *llama);

// Creates a session for one text at a time: a KV cache for up to `context` positions, at most the
// model's own, and activations.  Fails with STATUS_NOMEM, before anything is allocated, when its
// memory exceeds the device's available memory or the limit above.
MUST_CHECK enum status llama_session_new(struct llama_session **out, const struct llama *llama,
                                         size_t context, struct error *err);

// Accepts NULL.
void llama_session_free(struct llama_session *session);

// Begins a new text.
void llama_session_reset(struct llama_session *session);

// `cancelled`, if not NULL, is polled before every layer and ends llama_session_eval with
// STATUS_CANCELLED; the KV cache then holds the batches of tokens that were complete.
void llama_session_set_cancelled(struct llama_session *session, bool (*cancelled)(void));

size_t llama_session_position(const struct llama_session *session);
size_t llama_session_context(const struct llama_session *session);

// Evaluates `count` > 0 tokens after the earlier ones and writes the next token's logits (one per
// token of the vocabulary, host memory).  Fails with STATUS_FULL when the context is too short,
// STATUS_INVALID on a token outside the vocabulary, STATUS_CANCELLED.
MUST_CHECK enum status llama_session_eval(struct llama_session *session, const uint32_t *ids,
                                          size_t count, float *logits, struct error *err);

#endif
