// Byte-level vocabularies: a token's text in the file has a character for each byte.  Printable
// bytes of Latin-1 are spelled as themselves, all others by characters from U+0100 on.
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "server/workload/llm/tokenizer/pre_tokenizer.h"
#include "server/workload/llm/tokenizer/vocabulary.h"

enum { MERGES_MAX = 1 << 21, MERGES_BETWEEN_POLLS = 1 << 16, SHOWN_SIZE = 80 };

static bool is_spelled_alone(unsigned int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

// The character of each byte, and the byte of each character below U+0144, or -1.
struct alphabet {
    unsigned int characters[256];
    int bytes[0x144];
};

static void alphabet_init(struct alphabet *alphabet)
{
    unsigned int other = 0x100;
    memset(alphabet->bytes, 0xff, sizeof alphabet->bytes);
    for (unsigned int byte = 0; byte < 256; byte++) {
        alphabet->characters[byte] = is_spelled_alone(byte) ? byte : other++;
        alphabet->bytes[alphabet->characters[byte]] = (int)byte;
    }
}

// A character below U+0800 as UTF-8; returns its size.
static size_t spell(char out[2], unsigned int character)
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    out[0] = (char)(0xc0 | character >> 6);
    out[1] = (char)(0x80 | (character & 0x3f));
    return 2;
}

// Replaces a token's spelling by its bytes, unless it has a character of no byte.
static void respell(const struct alphabet *alphabet, struct token *token)
{
    char bytes[TOKEN_SIZE_MAX];
    size_t size = 0, at = 0;
    if (token->size == 0)
        return;
    do {
        uint32_t character = 0;
        const size_t length = text_character(token->text + at, token->size - at, &character);
        if (length == 0 || character >= 0x144 || alphabet->bytes[character] < 0)
            return;
        bytes[size++] = (char)alphabet->bytes[character];
        at += length;
    } while (at < token->size);
    memcpy(token->text, bytes, size);
    token->size = (uint32_t)size;
}

// The slot of a merge, or the free slot to insert it.  Ids are at most as many as tokens and
// multiplied by a random odd number, so that equal hashes cannot be chosen.
static uint32_t *slot_of(const struct tokenizer *tokenizer, uint32_t left, uint32_t right)
{
    uint64_t random[2];
    memcpy(random, tokenizer->hash_key, sizeof random);
    const size_t mask = tokenizer->merge_slot_count - 1;
    uint64_t hash = ((uint64_t)left << 32 | right) * (random[0] | 1);
    hash = (hash ^ hash >> 32) * (random[1] | 1);
    size_t at = (size_t)(hash >> 32) & mask;
    while (tokenizer->merge_slots[at] != TOKEN_NONE) {
        const struct merge *merge = &tokenizer->merges[tokenizer->merge_slots[at]];
        if (merge->left == left && merge->right == right)
            break;
        at = (at + 1) & mask;
    }
    return &tokenizer->merge_slots[at];
}

uint32_t vocabulary_find_merge(const struct tokenizer *tokenizer, uint32_t left, uint32_t right)
{
    return *slot_of(tokenizer, left, right);
}

// A merge is two texts with a space between them; the first may begin with a space.
static enum status read_merge(const struct tokenizer *tokenizer, const struct gguf_text *text,
                              struct merge *out, struct error *err)
{
    char joined[2 * TOKEN_SIZE_MAX];
    const char *space = text->size > 1 ? memchr(text->data + 1, ' ', text->size - 1) : NULL;
    *out = (struct merge){TOKEN_NONE, TOKEN_NONE, TOKEN_NONE};
    if (space && text->size <= sizeof joined) {
        const size_t left = (size_t)(space - text->data), right = text->size - left - 1;
        memcpy(joined, text->data, left);
        memcpy(joined + left, space + 1, right);
        out->left = vocabulary_find(tokenizer, joined, left);
        out->right = vocabulary_find(tokenizer, joined + left, right);
        out->merged = vocabulary_find(tokenizer, joined, left + right);
    }
    if (out->left != TOKEN_NONE && out->right != TOKEN_NONE && out->merged != TOKEN_NONE)
        return STATUS_OK;
    char shown[SHOWN_SIZE];
    return error_set(err, STATUS_CORRUPT,
                     "key 'tokenizer.ggml.merges': '%s' does not merge two tokens into one",
                     text_escape(shown, sizeof shown, text->data, text->size));
}

// The first of equal merges counts.
static enum status read_merges(struct tokenizer *tokenizer, const struct gguf *gguf,
                               bool (*cancelled)(void), struct error *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    struct gguf_array texts;
    enum status status = gguf_get_array(gguf, key, GGUF_STRING, &texts, err);
    if (status != STATUS_OK)
        return status;
    if (texts.count > MERGES_MAX)
        return error_set(err, STATUS_CORRUPT, "key '%s' has %zu elements", key, texts.count);
    tokenizer->merge_slot_count = 16;
    while (tokenizer->merge_slot_count < 2 * texts.count)
        tokenizer->merge_slot_count *= 2;
    const size_t size = tokenizer->merge_slot_count * sizeof *tokenizer->merge_slots;
    tokenizer->merges = calloc(texts.count + 1, sizeof *tokenizer->merges);
    tokenizer->merge_slots = malloc(size);
    if (!tokenizer->merges || !tokenizer->merge_slots)
        return error_no_memory(err, "tokenizer");
    memset(tokenizer->merge_slots, 0xff, size);
    while (texts.count > 0 && status == STATUS_OK) {
        const struct gguf_text text = gguf_array_next_text(&texts);
        const uint32_t number = tokenizer->merge_count++;
        if (number % MERGES_BETWEEN_POLLS == 0 && cancelled && cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped while reading the vocabulary");
        struct merge *merge = &tokenizer->merges[number];
        status = read_merge(tokenizer, &text, merge, err);
        if (status != STATUS_OK)
            break;
        uint32_t *slot = slot_of(tokenizer, merge->left, merge->right);
        if (*slot == TOKEN_NONE)
            *slot = number;
    }
    return status;
}

enum status vocabulary_read_merges(struct tokenizer *tokenizer, const struct gguf *gguf,
                                   bool (*cancelled)(void), struct error *err)
{
    static const char key[] = "tokenizer.ggml.pre";
    struct gguf_text name = {"default", strlen("default")};
    enum status status = STATUS_OK;
    if (gguf_has(gguf, key))
        status = gguf_get_text(gguf, key, &name, err);
    if (status == STATUS_OK)
        status = pre_tokenizer_new(&tokenizer->pre_tokenizer, &name, err);
    if (status == STATUS_OK)
        status = read_merges(tokenizer, gguf, cancelled, err);
    if (status != STATUS_OK)
        return status;
    struct alphabet alphabet;
    alphabet_init(&alphabet);
    for (unsigned int byte = 0; byte < 256; byte++) {
        char text[2];
        const size_t size = spell(text, alphabet.characters[byte]);
        tokenizer->bytes[byte] = vocabulary_find(tokenizer, text, size);
    }
    for (uint32_t i = 0; i < tokenizer->count; i++)
        if (tokenizer->tokens[i].kind == TOKEN_NORMAL)
            respell(&alphabet, &tokenizer->tokens[i]);
    vocabulary_index(tokenizer, true);
    return STATUS_OK;
}
