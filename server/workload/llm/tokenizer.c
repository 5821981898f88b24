#include "server/workload/llm/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/workload/llm/merge.h"

enum { TEXT_SIZE_MAX = 16 << 20 };

// A space in a vocabulary: U+2581.
static const char space_mark[] = {'\xe2', '\x96', '\x81'};

struct tokenizer {
    struct vocabulary vocabulary;
};

// ---- Pieces ---------------------------------------------------------------

// Writes a token's text with spaces for space marks; returns its size.
static size_t write_unmarked(char *out, const struct token *token)
{
    size_t size = 0;
    for (size_t i = 0; i < token->size;) {
        bool mark = token->size - i >= sizeof space_mark &&
                    memcmp(token->text + i, space_mark, sizeof space_mark) == 0;
        out[size++] = mark ? ' ' : token->text[i];
        i += mark ? sizeof space_mark : 1;
    }
    return size;
}

size_t tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, char *out)
{
    if (id >= tokenizer->vocabulary.count)
        return 0;
    const struct vocabulary *vocabulary = &tokenizer->vocabulary;
    const struct token *token = &vocabulary->tokens[id];
    if (token->kind == TOKEN_CONTROL || token->kind == TOKEN_UNKNOWN)
        return 0;
    char spelled[sizeof "<0x0A>"] = "";
    unsigned int byte;
    memcpy(spelled, token->text, token->size < sizeof spelled ? token->size : 0);
    if (token->kind == TOKEN_BYTE && sscanf(spelled, "<0x%2x>", &byte) == 1) {
        out[0] = (char)byte;
        return 1;
    }
    return write_unmarked(out, token);
}

// ---- The whole ------------------------------------------------------------

enum status tokenizer_new(struct tokenizer **out, const struct gguf *gguf, struct error *err)
{
    struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer)
        return error_no_memory(err, "tokenizer");
    enum status status = vocabulary_init(&tokenizer->vocabulary, gguf, err);
    if (status != STATUS_OK) {
        tokenizer_free(tokenizer);
        return status;
    }
    *out = tokenizer;
    return STATUS_OK;
}

void tokenizer_free(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    vocabulary_deinit(&tokenizer->vocabulary);
    free(tokenizer);
}

uint32_t tokenizer_count(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.count;
}

bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id)
{
    return id != TOKEN_NONE &&
           (id == tokenizer->vocabulary.eos || id == tokenizer->vocabulary.end_of_turn);
}

// ---- Encoding -------------------------------------------------------------

// Finds special tokens in the text, longer ones first, and sets `found` to their ids at each of
// their bytes, to TOKEN_NONE elsewhere.  User-defined ones are always tokens; control ones only
// where `parse_special` says so.
static void find_special(const struct vocabulary *vocabulary, const char *text, size_t size,
                         bool parse_special, uint32_t *found)
{
    memset(found, 0xff, size * sizeof *found);
    for (uint32_t i = 0; i < vocabulary->special_count; i++) {
        const uint32_t id = vocabulary->special[i];
        const struct token *token = &vocabulary->tokens[id];
        if (!parse_special && token->kind != TOKEN_USER_DEFINED)
            continue;
        const char *at = text;
        while ((at = memmem(at, (size_t)(text + size - at), token->text, token->size))) {
            uint32_t *bytes = found + (at - text);
            size_t vacant = 0; // the number of bytes before the first of another token
            while (vacant < token->size && bytes[vacant] == TOKEN_NONE)
                vacant++;
            if (vacant < token->size) {
                at += vacant + 1;
                continue;
            }
            for (size_t j = 0; j < token->size; j++)
                bytes[j] = id;
            at += token->size;
        }
    }
}

// Encodes a part of plain text, with spaces replaced by U+2581.
static enum status encode_text(const struct vocabulary *vocabulary, const char *text, size_t size,
                               bool prefix, struct token_list *out, struct error *err)
{
    size_t spaces = prefix;
    for (size_t i = 0; i < size; i++)
        spaces += text[i] == ' ';
    size_t marked_size = size + prefix + spaces * (sizeof space_mark - 1);
    char *marked = malloc(marked_size + 1);
    if (!marked)
        return error_no_memory(err, "tokenizer");

    char *at = marked;
    if (prefix)
        at = mempcpy(at, space_mark, sizeof space_mark);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ')
            at = mempcpy(at, space_mark, sizeof space_mark);
        else
            *at++ = text[i];
    }
    enum status status = merge_text(vocabulary, marked, marked_size, out, err);
    free(marked);
    return status;
}

// Encodes the special tokens as `found` has them, and the text between them.
static enum status encode_all(const struct vocabulary *vocabulary, const char *text, size_t size,
                              const uint32_t *found, struct token_list *out, struct error *err)
{
    enum status status = STATUS_OK;
    bool after_special = true; // the beginning counts as one
    for (size_t at = 0, end; at < size && status == STATUS_OK; at = end) {
        if (found[at] != TOKEN_NONE) {
            end = at + vocabulary->tokens[found[at]].size;
            status = token_list_add(out, found[at], err);
            after_special = true;
            continue;
        }
        end = at + 1;
        while (end < size && found[end] == TOKEN_NONE)
            end++;
        status = encode_text(vocabulary, text + at, end - at,
                             vocabulary->add_space_prefix && after_special, out, err);
        after_special = false;
    }
    return status;
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                             struct encode_options options, struct token_list *out,
                             struct error *err)
{
    const struct vocabulary *vocabulary = &tokenizer->vocabulary;
    memset(out, 0, sizeof *out);
    if (size > TEXT_SIZE_MAX)
        return error_set(err, STATUS_INVALID, "text of %zu bytes: too long", size);

    uint32_t *found = malloc((size + 1) * sizeof *found);
    enum status status = found ? STATUS_OK : error_no_memory(err, "tokenizer");
    if (status == STATUS_OK && options.add_special && vocabulary->add_bos &&
        vocabulary->bos != TOKEN_NONE)
        status = token_list_add(out, vocabulary->bos, err);
    if (status == STATUS_OK) {
        find_special(vocabulary, text, size, options.parse_special, found);
        status = encode_all(vocabulary, text, size, found, out, err);
    }
    if (status == STATUS_OK && options.add_special && vocabulary->add_eos &&
        vocabulary->eos != TOKEN_NONE)
        status = token_list_add(out, vocabulary->eos, err);
    free(found);
    if (status != STATUS_OK) {
        free(out->ids);
        memset(out, 0, sizeof *out);
    }
    return status;
}
