// Text to tokens and back, as SentencePiece's BPE does it: characters are merged
// pairwise, best score first, into tokens of the vocabulary; what has no token is
// spelled in byte tokens.
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

struct tokenizer;

// Makes a tokenizer from a file's header, which may go afterwards.  Fails as
// vocabulary_init does.
MUST_CHECK enum status tokenizer_new(struct tokenizer **out, const struct gguf *gguf,
                                     struct error *err);

// Accepts NULL.
void tokenizer_free(struct tokenizer *tokenizer);

uint32_t tokenizer_count(const struct tokenizer *tokenizer);

// The token that starts a text; TOKEN_NONE (vocabulary.h) where there is none.
uint32_t tokenizer_bos(const struct tokenizer *tokenizer);

// Whether a token ends an answer.
bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id);

struct token_list {
    uint32_t *ids; // to be freed with free()
    size_t count, capacity;
};

struct encode_options {
    bool add_special;   // what the model wants at the beginning and the end
    bool parse_special; // "<s>" in the text is the token, not three characters
};

// Encodes `size` bytes of text, of any content; time grows as n log n.  Fails with
// STATUS_INVALID where the vocabulary has no token for a byte of the text or the
// text exceeds 16 MiB, with STATUS_NOMEM.
MUST_CHECK enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text,
                                        size_t size, struct encode_options options,
                                        struct token_list *out, struct error *err);

// What a token adds to the text: bytes that need not be whole characters
// (text_stream.h puts them together).  Control tokens add nothing.
struct token_piece {
    const char *data; // borrowed from the tokenizer
    size_t size;
};

struct token_piece tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id);

#endif
