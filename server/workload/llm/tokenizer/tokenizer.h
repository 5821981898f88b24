// Tokenizers by byte-pair encoding (BPE): convert text to token ids and back.
//
// SentencePiece ("llama" in the file): merges neighbouring characters into tokens of the
// vocabulary, the pair with the best score first.  A character without a token becomes one token
// per byte.  Of a character cut off before a space each byte counts as a character.
//
// Byte-level ("gpt2"): cuts the text into words (pre_tokenizer.h) and merges the bytes of each, the
// pair that comes first in the list of merges first.
//
// A tokenizer is immutable; any thread may use it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/workload/llm/gguf.h"

#define TOKEN_NONE UINT32_MAX // not an id: no such token

enum {
    TOKEN_SIZE_MAX = UINT16_MAX,   // bytes of a token's text
    TOKENIZER_TEXT_MAX = 16 << 20, // bytes of a text
};

struct tokenizer;

// Creates a tokenizer with a copy of the vocabulary in the metadata of `gguf`.  Fails with
// STATUS_NOT_FOUND if a metadata key is missing, STATUS_CORRUPT if keys are inconsistent,
// STATUS_UNSUPPORTED if the tokenizer or its pre-tokenizer is unknown or more than 8,192 tokens are
// control, unknown or user-defined ones, STATUS_NOMEM, or STATUS_CANCELLED once `cancelled`, which
// is polled (NULL: never), returns true.
MUST_CHECK enum status tokenizer_new(struct tokenizer **out, const struct gguf *gguf,
                                     bool (*cancelled)(void), struct error *err);

// Accepts NULL.
void tokenizer_free(struct tokenizer *tokenizer);

// The number of tokens of the vocabulary.
uint32_t tokenizer_count(const struct tokenizer *tokenizer);

// True if generation ends with the token `id`.
bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id);

// Token ids.  tokenizer_encode overwrites the list; the caller frees `ids` with free().
struct token_list {
    uint32_t *ids;
    size_t count, capacity;
};

struct encode_options {
    bool add_special;   // add the tokens for beginning and end of a text if the model expects them
    bool parse_special; // "<s>" in the text becomes the control token, not three characters
    size_t plain_from, plain_to; // but not where it overlaps these bytes of the text
};

// Encodes `size` arbitrary bytes in O(n log n), after one linear search of the text for each
// control and user-defined token.  Fails with STATUS_INVALID if the vocabulary has no token for a
// byte or the text exceeds 16 MiB, or with STATUS_NOMEM; `*out` is then empty.
MUST_CHECK enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text,
                                        size_t size, struct encode_options options,
                                        struct token_list *out, struct error *err);

// Decodes a token: writes its bytes to `out`, which has TOKEN_SIZE_MAX bytes, and returns their
// number.  The bytes need not be whole characters (text_stream.h assembles characters).  A control
// token, the unknown token and an id outside the vocabulary have none.
size_t tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, char *out);

// Returns the name of a control token or the unknown token, as "<s>", borrowed and not terminated,
// and sets `*size`.  Returns NULL for other tokens and for an id outside the vocabulary.
const char *tokenizer_control_name(const struct tokenizer *tokenizer, uint32_t id, size_t *size);
