// Inference of llama models (Touvron et al., arXiv:2302.13971) and of the families that
// llama_config.c lists, which compute the same but for a few differences: a model has the weights
// in device memory; a session of the model has the KV cache of one text and computes the next
// token's logits.
//
// One thread uses a model, its sessions and its device.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/device.h"
#include "server/pipeline/pipeline.h"
#include "server/workload/byte_source.h"
#include "server/workload/llm/gguf.h"

// What distinguishes the families of transformers.  A file names its own in the key
// general.architecture, and begins the keys of its hyperparameters with that name.
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

// Rotary embeddings (Su et al., arXiv:2104.09864), and their scaling for texts that are longer than
// those of the training: linear (arXiv:2306.15595) and YaRN (arXiv:2309.00071).
struct rope {
    size_t size;      // elements of a head that are rotated; even
    double base;      // of the frequencies
    double factor;    // positions are divided by it; 1: not scaled
    double magnitude; // cosines and sines are multiplied by it
    bool yarn;        // only low frequencies are divided by the factor
    // Of YaRN: pairs that turn at least `fast` times within `context` positions keep their
    // frequency, those that turn at most `slow` times are scaled, those between partly.
    size_t context;
    double fast, slow;
};

// Hyperparameters, from the metadata keys of the GGUF file.
struct llama_config {
    const struct architecture *architecture; // static
    size_t context;         // maximum number of positions that the model was trained for
    size_t dim, ff;         // elements of an embedding and of a feed-forward layer
    size_t layers;          // number of transformer blocks
    size_t heads, kv_heads; // query heads, key/value heads; kv_heads divides heads
    size_t head_size;       // elements of one head
    size_t window;          // positions, its own included, that a token attends to; 0: all
    size_t experts;      // experts of a feed-forward layer, of `ff` elements each; 0: it has none
    size_t experts_used; // of them, by a token: 1..experts
    size_t vocabulary;   // rows of the embedding: tokens
    float epsilon;       // of RMSNorm
    struct rope rope;    // rotary embedding
};

// Reads and checks the hyperparameters.  `vocabulary` is the tokenizer's number of tokens.  Fails
// with STATUS_UNSUPPORTED if the architecture or a key of its attention, rotary embedding or
// experts is unknown, STATUS_NOT_FOUND if a key is missing, STATUS_CORRUPT if a value has the wrong
// type or is out of range.
MUST_CHECK enum status llama_config_read(struct llama_config *out, const struct gguf *gguf,
                                         size_t vocabulary, struct error *err);

// Metrics of the copy of all weights to the device; zero before it ran.
struct transfer_figures {
    uint64_t started_ns; // monotonic clock
    uint64_t bytes;      // read from the file
    uint64_t read_ns;    // time during which at least one thread was reading
    struct pipeline_plan plan;
    struct pipeline_figures pipeline;
};

struct llama;
struct llama_session;

// Creates a model: copies all weights to the memory of `device`.  Borrows `device` until
// llama_free, `source` and `gguf` only during the call.  Polls `cancelled` (may be NULL); once it
// returns true, the load ends with STATUS_CANCELLED.  Fills `*figures` also after a failure.  Fails
// with STATUS_NOT_FOUND if a tensor is missing, STATUS_CORRUPT if a tensor has the wrong shape, a
// divisor of the rotary embedding's frequencies is no positive number, or a read meets the file's
// end, STATUS_UNSUPPORTED if a tensor is unknown or of a type that the device does not compute with
// (norms and biases: other than F32), or heads are too large for the device, STATUS_INVALID if a
// chunk or pool size from the environment is out of range (tuning.h), STATUS_NOMEM, or STATUS_IO.
MUST_CHECK enum status llama_load(struct llama **out, struct device *device,
                                  const struct byte_source *source, const struct gguf *gguf,
                                  const struct llama_config *config, bool (*cancelled)(void),
                                  struct transfer_figures *figures, struct error *err);

// Accepts NULL.  Sessions must have been freed.
void llama_free(struct llama *llama);

const struct llama_config *llama_get_config(const struct llama *llama);

// The number of elements of all weights, of all experts too.  An output matrix that is also the
// embedding counts once.
uint64_t llama_parameters(const struct llama *llama);

// Bytes of weights that the computation of a token reads: all but those of experts that it does not
// use, and those of an embedding that is not the output matrix, too, of which it reads one row.
uint64_t llama_weight_bytes_per_token(const struct llama *llama);

// Bytes of a session's KV cache per position.
uint64_t llama_kv_bytes_per_token(const struct llama *llama);

// Calls visit(context, name, tensor), unless it is NULL, for each weight tensor, and returns their
// number.  `name` is the one in the file,
// "blk.3.attn_q.weight"; an embedding that is also the output matrix is named "output.weight".
// `name` is borrowed during the call, `tensor` until llama_free.
typedef void llama_weight_visit(void *context, const char *name, const struct tensor *tensor);
size_t llama_each_weight(struct llama *llama, llama_weight_visit *visit, void *context);

// The element type of most weights ("F16").
const char *llama_quantisation(const struct llama *llama);

enum {
    LLAMA_CONTEXT_DEFAULT = 4096,
    // A session's memory is limited to BASE bytes plus FACTOR times the bytes of the weights.
    LLAMA_SESSION_BASE = 16 << 20,
    LLAMA_SESSION_FACTOR = 16,
};

// The model's own context, at most LLAMA_CONTEXT_DEFAULT.
size_t llama_default_context(const struct llama_config *config);

// Bytes of device memory that a session with `context` positions takes.
uint64_t llama_session_bytes(const struct llama_config *config, size_t context);

// Fails with STATUS_INVALID if `context` is 0 or above the model's own, and with STATUS_NOMEM if a
// session would exceed the limit above: the keys of a small file can claim any size.  `weights` is
// the number of bytes of all weights.
MUST_CHECK enum status llama_check_context(const struct llama_config *config, uint64_t weights,
                                           size_t context, struct error *err);

// Creates a session: allocates activations and a KV cache for `context` positions.  Fails as
// llama_check_context does, and with STATUS_NOMEM, before it allocates device memory, if the
// session would exceed the available memory.
MUST_CHECK enum status llama_session_new(struct llama_session **out, const struct llama *llama,
                                         size_t context, struct error *err);

// Accepts NULL.
void llama_session_free(struct llama_session *session);

// Begins a new text: empties the KV cache.
void llama_session_reset(struct llama_session *session);

// Sets the callback that llama_session_eval polls before every layer; NULL: none.  Once it returns
// true, llama_session_eval ends with STATUS_CANCELLED.  It computes up to 64 tokens at once; the KV
// cache keeps those that were complete, also after other errors.
void llama_session_set_cancelled(struct llama_session *session, bool (*cancelled)(void));

// The number of tokens in the KV cache, and the maximum of this number.
size_t llama_session_position(const struct llama_session *session);
size_t llama_session_context(const struct llama_session *session);

// Appends `count` > 0 tokens to the text and computes the next token's logits, one per token of the
// vocabulary, in host memory.  Fails with STATUS_FULL if the context is too short (the KV cache
// stays as is), STATUS_INVALID on a token outside the vocabulary, STATUS_CANCELLED, or STATUS_IO.
MUST_CHECK enum status llama_session_eval(struct llama_session *session, const uint32_t *ids,
                                          size_t count, float *logits, struct error *err);
