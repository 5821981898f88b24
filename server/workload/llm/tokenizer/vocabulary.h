// Vocabulary of a tokenizer (tokenizer.h): an array of tokens, a hash table from a token's text to
// its id (index), and the merges of a byte-level vocabulary.  Private to the tokenizer, except the
// kinds of tokens.
#pragma once

#include "server/workload/llm/tokenizer/tokenizer.h"

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
    // Not terminated.  As in the file, where U+2581 stands for a space; in a byte-level vocabulary
    // the bytes that a normal token stands for.
    char *text;
    uint32_t size; // bytes of `text`
    enum token_kind kind;
    bool is_end; // generation ends with it
    float score; // the tokenizer merges the pair with the highest score first; byte-level: unused
};

// A merge of a byte-level vocabulary: ids of two neighbours, and of the token that they become.
struct merge {
    uint32_t left, right, merged;
};

struct tokenizer {
    struct token *tokens;
    uint32_t count;
    char *texts;     // storage of the tokens' texts
    uint32_t *slots; // hash table of ids; TOKEN_NONE: empty slot
    size_t slot_count;
    unsigned char hash_key[16]; // random, so that texts with equal hashes cannot be chosen
    // Byte-level BPE (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019):
    // merges, the first of which goes first, and a hash table of them; NULL elsewhere.
    struct merge *merges;
    uint32_t merge_count;
    uint32_t *merge_slots; // of `merges`; TOKEN_NONE: empty slot
    size_t merge_slot_count;
    struct pre_tokenizer *pre_tokenizer;
    bool ignore_merges; // a word that is a token becomes this token, whatever the merges
    // Ids of the tokens for beginning and end of text; TOKEN_NONE: none.
    uint32_t bos, eos;
    uint32_t bytes[256]; // the token of each single byte; TOKEN_NONE: none
    uint32_t *special;   // ids of control, unknown and user-defined tokens, longest text first
    uint32_t special_count;
    // What the model expects: `bos` before a text, `eos` after it, a space before each plain part.
    bool add_bos, add_eos, add_space_prefix;
};

// Returns the id of the token with the text `text`; the last id if several tokens have it,
// TOKEN_NONE if none has.
uint32_t vocabulary_find(const struct tokenizer *tokenizer, const char *text, size_t size);

// Reads the merges and the pre-tokenizer of a byte-level vocabulary whose tokens are spelled as in
// the file, and respells the normal tokens as bytes (vocabulary_bytes.c).  Fails with
// STATUS_NOT_FOUND, STATUS_CORRUPT, STATUS_UNSUPPORTED if the pre-tokenizer is unknown, or
// STATUS_NOMEM, or STATUS_CANCELLED (tokenizer_new).
MUST_CHECK enum status vocabulary_read_merges(struct tokenizer *tokenizer, const struct gguf *gguf,
                                              bool (*cancelled)(void), struct error *err);

// Returns the number of the merge of two tokens; TOKEN_NONE: there is none.
uint32_t vocabulary_find_merge(const struct tokenizer *tokenizer, uint32_t left, uint32_t right);

// Fills the hash table of texts; the last of equal texts counts.  Of a byte-level vocabulary
// (`bytes`) only normal tokens are in it.
void vocabulary_index(struct tokenizer *tokenizer, bool bytes);
