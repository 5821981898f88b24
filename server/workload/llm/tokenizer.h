// Tokenizer compatible with SentencePiece's BPE: converts text to tokens and back.  Neighbouring
// characters are merged, best score first, into tokens of the vocabulary; characters without a
// token become byte tokens.
//
// A tokenizer is immutable; any thread may use it.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_TOKENIZER_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/llm/vocabulary.h"

struct tokenizer;

// Creates a tokenizer from a file's header; copies what it needs.  Fails as vocabulary_init does.
MUST_CHECK enum status tokenizer_new(struct tokenizer **out, const struct gguf *gguf,
                                     struct error *err);

// Accepts NULL.
void tokenizer_free(struct tokenizer *tokenizer);

uint32_t tokenizer_count(const struct tokenizer *tokenizer);

// True when the token ends generation.
bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id);

struct token_list {
    uint32_t *ids; // to be freed with free()
    size_t count, capacity;
};

struct encode_options {
    bool add_special;   // the model's tokens for beginning and end
    bool parse_special; // "<s>" in the text is the token, not three characters
};

// Encodes `size` arbitrary bytes in O(n log n).  Fails with STATUS_INVALID when the vocabulary
// has no token for a byte or the text exceeds 16 MiB, with STATUS_NOMEM.
MUST_CHECK enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text,
                                        size_t size, struct encode_options options,
                                        struct token_list *out, struct error *err);

// Writes the bytes of a token to `out`, TOKEN_SIZE_MAX bytes, and returns their
// number.  They need not be whole characters (text_stream.h assembles them).  Control tokens have
// none.
size_t tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, char *out);

#endif
