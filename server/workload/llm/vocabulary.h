// Vocabulary of a tokenizer (tokenizer.h): an array of tokens, and a hash table from a token's text
// to its id (index).  Private to the tokenizer, except the kinds of tokens.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_VOCABULARY_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_VOCABULARY_H

#include "server/workload/llm/tokenizer.h"

// Kinds of tokens, with the same values as in a GGUF file.  UNKNOWN: for text without a token;
// CONTROL: a mark without text, such as the end of a text; USER_DEFINED: one token wherever its
// spelling occurs; BYTE: a byte, "<0x0A>"; the others: plain text.
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

struct token {
    const char *text; // spelled as in the file: U+2581 stands for a space; not terminated
    uint32_t size;    // bytes of `text`
    enum token_kind kind;
    float score; // the tokenizer merges the pair with the highest score first
};

struct tokenizer {
    struct token *tokens;
    uint32_t count;
    char *texts;     // storage of the tokens' texts
    uint32_t *slots; // hash table of ids; TOKEN_NONE: empty slot
    size_t slot_count;
    // Ids of the tokens for beginning of text, end of text and end of turn; TOKEN_NONE: none.
    uint32_t bos, eos, end_of_turn;
    uint32_t bytes[256]; // the token of each single byte; TOKEN_NONE: none
    uint32_t *special;   // ids of control, unknown and user-defined tokens, longest text first
    uint32_t special_count;
    // What the model expects: `bos` before a text, `eos` after it, a space before each plain part.
    bool add_bos, add_eos, add_space_prefix;
};

// Returns the id of the token with the text `text`; the last id if several tokens have it,
// TOKEN_NONE if none has.
uint32_t vocabulary_find(const struct tokenizer *tokenizer, const char *text, size_t size);

#endif
