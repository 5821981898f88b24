// Tokenizer vocabulary of a model: the tokens' texts, scores and kinds, the special tokens, and a
// hash table from text to id.  Immutable once created; any thread.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_VOCABULARY_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/workload/llm/gguf.h"

// Kinds of tokens; the values are those in the file.
enum token_kind {
    TOKEN_UNDEFINED,
    TOKEN_NORMAL,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER_DEFINED,
    TOKEN_UNUSED,
    TOKEN_BYTE,
    TOKEN_KIND_COUNT
};

#define TOKEN_NONE UINT32_MAX

enum { TOKEN_SIZE_MAX = UINT16_MAX }; // bytes of a token's text

struct token {
    const char *text; // as the vocabulary spells it, U+2581 for a space
    uint32_t size;
    enum token_kind kind;
    float score;
};

struct vocabulary {
    struct token *tokens;
    uint32_t count;
    char *texts;     // storage of the tokens' texts
    uint32_t *slots; // hash table of ids, TOKEN_NONE where empty
    size_t slot_count;
    // TOKEN_NONE if the model has none.
    uint32_t bos, eos, end_of_turn;
    uint32_t bytes[256]; // the token of each single byte
    uint32_t *special;   // ids of control, unknown and user-defined tokens, longest first
    uint32_t special_count;
    bool add_bos, add_eos, add_space_prefix;
};

// Copies the vocabulary from a file's header into a zeroed structure; vocabulary_deinit frees it,
// also after a failure.  Fails with STATUS_NOT_FOUND on a missing key,
// STATUS_CORRUPT on inconsistent keys, STATUS_UNSUPPORTED on a tokenizer other than "llama",
// STATUS_NOMEM.
MUST_CHECK enum status vocabulary_init(struct vocabulary *vocabulary, const struct gguf *gguf,
                                       struct error *err);

void vocabulary_deinit(struct vocabulary *vocabulary);

// The id of the token with this text, the last one of duplicates; TOKEN_NONE if there is none.
uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t size);

#endif
