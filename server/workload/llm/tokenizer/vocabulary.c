#include "server/workload/llm/tokenizer/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "server/workload/llm/tokenizer/pre_tokenizer.h"

// Several times those of any model known.  A text is searched for each special token.
enum { TOKENS_MAX = 1 << 20, SPECIAL_MAX = 1 << 13 };

// The slot of a text, or the free slot to insert it.
static uint32_t *slot_of(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    size_t mask = tokenizer->slot_count - 1;
    uint64_t hash;
    (void)crypto_shorthash((unsigned char *)&hash, (const unsigned char *)text, size,
                           tokenizer->hash_key);
    size_t at = (size_t)hash & mask;
    while (tokenizer->slots[at] != TOKEN_NONE) {
        const struct token *token = &tokenizer->tokens[tokenizer->slots[at]];
        if (token->size == size && memcmp(token->text, text, size) == 0)
            break;
        at = (at + 1) & mask;
    }
    return &tokenizer->slots[at];
}

uint32_t vocabulary_find(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    return *slot_of(tokenizer, text, size);
}

// ---- Building -------------------------------------------------------------

static enum status check_model(const struct gguf *gguf, bool *bytes, struct error *err)
{
    struct gguf_text model;
    enum status status = gguf_get_text(gguf, "tokenizer.ggml.model", &model, err);
    if (status != STATUS_OK)
        return status;
    *bytes = gguf_text_is(&model, "gpt2");
    if (!*bytes && !gguf_text_is(&model, "llama"))
        return error_set(err, STATUS_UNSUPPORTED,
                         "key 'tokenizer.ggml.model': tokenizer '%.*s' is not supported, only "
                         "'llama' and 'gpt2'",
                         (int)(model.size < 32 ? model.size : 32), model.data);
    return STATUS_OK;
}

static enum status copy_texts(struct tokenizer *tokenizer, struct gguf_array texts,
                              struct error *err)
{
    tokenizer->count = (uint32_t)texts.count;
    tokenizer->tokens = calloc(texts.count, sizeof *tokenizer->tokens);
    // Each text is stored without its 8 bytes of length, so all fit.
    tokenizer->texts = malloc((size_t)(texts.end - texts.data));
    if (!tokenizer->tokens || !tokenizer->texts)
        return error_no_memory(err, "tokenizer");
    char *at = tokenizer->texts;
    for (struct token *token = tokenizer->tokens; texts.count > 0; token++) {
        struct gguf_text text = gguf_array_next_text(&texts);
        if (text.size > TOKEN_SIZE_MAX)
            return error_set(err, STATUS_CORRUPT,
                             "key 'tokenizer.ggml.tokens': number %zu has %zu bytes",
                             (size_t)(token - tokenizer->tokens), text.size);
        memcpy(at, text.data, text.size);
        *token = (struct token){.text = at, .size = (uint32_t)text.size, .kind = TOKEN_NORMAL};
        at += text.size;
    }
    return STATUS_OK;
}

// Finds an array with an element for each token.
static enum status get_per_token(const struct tokenizer *tokenizer, const struct gguf *gguf,
                                 const char *key, enum gguf_value_type type, struct gguf_array *out,
                                 struct error *err)
{
    enum status status = gguf_get_array(gguf, key, type, out, err);
    if (status == STATUS_OK && out->count != tokenizer->count)
        status = error_set(err, STATUS_CORRUPT, "key '%s' has %zu elements for %u tokens", key,
                           out->count, (unsigned int)tokenizer->count);
    return status;
}

static enum status copy_scores(struct tokenizer *tokenizer, const struct gguf *gguf,
                               struct error *err)
{
    static const char key[] = "tokenizer.ggml.scores";
    struct gguf_array scores;
    enum status status = get_per_token(tokenizer, gguf, key, GGUF_FLOAT32, &scores, err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < tokenizer->count; i++) {
        tokenizer->tokens[i].score = gguf_array_float(&scores, i);
        if (isnan(tokenizer->tokens[i].score))
            return error_set(err, STATUS_CORRUPT, "key '%s': number %u is not a number", key,
                             (unsigned int)i);
    }
    return STATUS_OK;
}

// Without this key all tokens are normal.
static enum status copy_kinds(struct tokenizer *tokenizer, const struct gguf *gguf,
                              struct error *err)
{
    static const char key[] = "tokenizer.ggml.token_type";
    if (!gguf_has(gguf, key))
        return STATUS_OK;
    struct gguf_array kinds;
    enum status status = get_per_token(tokenizer, gguf, key, GGUF_INT32, &kinds, err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < tokenizer->count; i++) {
        int32_t kind = gguf_array_int(&kinds, i);
        if (kind < 0 || kind >= TOKEN_KIND_COUNT)
            return error_set(err, STATUS_CORRUPT, "key '%s': number %u is %d", key, (unsigned int)i,
                             (int)kind);
        tokenizer->tokens[i].kind = (enum token_kind)kind;
    }
    return STATUS_OK;
}

void vocabulary_index(struct tokenizer *tokenizer, bool bytes)
{
    memset(tokenizer->slots, 0xff, tokenizer->slot_count * sizeof *tokenizer->slots);
    for (uint32_t i = 0; i < tokenizer->count; i++)
        if (!bytes || tokenizer->tokens[i].kind == TOKEN_NORMAL)
            *slot_of(tokenizer, tokenizer->tokens[i].text, tokenizer->tokens[i].size) = i;
}

static enum status index_texts(struct tokenizer *tokenizer, struct error *err)
{
    if (sodium_init() < 0)
        return error_set(err, STATUS_IO, "tokenizer: no random numbers");
    randombytes_buf(tokenizer->hash_key, sizeof tokenizer->hash_key);
    tokenizer->slot_count = 16;
    while (tokenizer->slot_count < 2 * (size_t)tokenizer->count)
        tokenizer->slot_count *= 2;
    tokenizer->slots = malloc(tokenizer->slot_count * sizeof *tokenizer->slots);
    if (!tokenizer->slots)
        return error_no_memory(err, "tokenizer");
    vocabulary_index(tokenizer, false);
    return STATUS_OK;
}

// Bytes are spelled "<0x0A>"; a tokenizer without those may have the byte itself.
static void find_bytes(struct tokenizer *tokenizer)
{
    for (unsigned int byte = 0; byte < 256; byte++) {
        char text[8];
        int size = snprintf(text, sizeof text, "<0x%02X>", byte);
        uint32_t id = vocabulary_find(tokenizer, text, (size_t)size);
        text[0] = (char)byte;
        tokenizer->bytes[byte] = id != TOKEN_NONE ? id : vocabulary_find(tokenizer, text, 1);
    }
}

static bool is_special(const struct token *token)
{
    return token->size > 0 && (token->kind == TOKEN_CONTROL || token->kind == TOKEN_UNKNOWN ||
                               token->kind == TOKEN_USER_DEFINED);
}

static int longest_first(const void *a, const void *b, void *context)
{
    const struct token *tokens = context;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    if (tokens[x].size != tokens[y].size)
        return tokens[x].size < tokens[y].size ? 1 : -1;
    return (x > y) - (x < y);
}

static enum status list_special(struct tokenizer *tokenizer, struct error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tokenizer->count; i++)
        count += is_special(&tokenizer->tokens[i]);
    if (count > SPECIAL_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "key 'tokenizer.ggml.token_type': %u control, unknown and user-defined "
                         "tokens, at most %d are supported",
                         (unsigned int)count, SPECIAL_MAX);
    tokenizer->special = calloc((size_t)count + 1, sizeof *tokenizer->special);
    if (!tokenizer->special)
        return error_no_memory(err, "tokenizer");
    for (uint32_t i = 0; i < tokenizer->count; i++)
        if (is_special(&tokenizer->tokens[i]))
            tokenizer->special[tokenizer->special_count++] = i;
    qsort_r(tokenizer->special, tokenizer->special_count, sizeof *tokenizer->special, longest_first,
            tokenizer->tokens);
    return STATUS_OK;
}

// Reads a token id from a key: the format's default if the key is missing, TOKEN_NONE if it has
// the largest number.
static enum status read_id(const struct tokenizer *tokenizer, const struct gguf *gguf,
                           const char *key, uint32_t fallback, uint32_t *out, struct error *err)
{
    uint64_t id = fallback < tokenizer->count ? fallback : TOKEN_NONE;
    if (gguf_has(gguf, key)) {
        enum status status = gguf_get_uint(gguf, key, 0, TOKEN_NONE, &id, err);
        if (status != STATUS_OK)
            return status;
        if (id >= tokenizer->count && id != TOKEN_NONE)
            return error_set(err, STATUS_CORRUPT, "key '%s' names token %u of %u", key,
                             (unsigned int)id, (unsigned int)tokenizer->count);
    }
    *out = (uint32_t)id;
    return STATUS_OK;
}

static enum status read_ids(struct tokenizer *tokenizer, const struct gguf *gguf, bool bytes,
                            struct error *err)
{
    uint32_t end_of_turn, end_of_message;
    const struct {
        const char *key;
        uint32_t fallback;
        uint32_t *out;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", bytes ? TOKEN_NONE : 1, &tokenizer->bos},
        {"tokenizer.ggml.eos_token_id", bytes ? TOKEN_NONE : 2, &tokenizer->eos},
        {"tokenizer.ggml.eot_token_id", TOKEN_NONE, &end_of_turn},
        {"tokenizer.ggml.eom_token_id", TOKEN_NONE, &end_of_message},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0] && status == STATUS_OK; i++) {
        status = read_id(tokenizer, gguf, ids[i].key, ids[i].fallback, ids[i].out, err);
        if (status == STATUS_OK && i > 0 && *ids[i].out != TOKEN_NONE)
            tokenizer->tokens[*ids[i].out].is_end = true;
    }
    return status;
}

// Marks that end a turn or a text in some family of models, whatever the keys say.
static void find_ends(struct tokenizer *tokenizer)
{
    static const char *const marks[] = {"<|eot_id|>",      "<|eom_id|>",    "<|im_end|>",
                                        "<|end_of_text|>", "<|endoftext|>", "<|end|>",
                                        "<|EOT|>",         "<end_of_turn>"};
    for (uint32_t i = 0; i < tokenizer->special_count; i++) {
        struct token *token = &tokenizer->tokens[tokenizer->special[i]];
        for (size_t j = 0; j < sizeof marks / sizeof *marks && token->kind == TOKEN_CONTROL; j++)
            token->is_end = token->is_end || (token->size == strlen(marks[j]) &&
                                              memcmp(token->text, marks[j], token->size) == 0);
    }
}

// What a model expects if its keys do not say so.  Of the byte-level families only Llama 3 begins
// a text with a token.
static enum status read_flags(struct tokenizer *tokenizer, const struct gguf *gguf, bool bytes,
                              struct error *err)
{
    const bool llama3 = bytes && pre_tokenizer_is_llama3(tokenizer->pre_tokenizer);
    const struct {
        const char *key;
        bool fallback;
        bool *out;
    } flags[] = {
        {"tokenizer.ggml.add_bos_token", !bytes || llama3, &tokenizer->add_bos},
        {"tokenizer.ggml.add_eos_token", false, &tokenizer->add_eos},
        {"tokenizer.ggml.add_space_prefix", !bytes, &tokenizer->add_space_prefix},
    };
    enum status status = STATUS_OK;
    tokenizer->ignore_merges = llama3;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && status == STATUS_OK; i++) {
        *flags[i].out = flags[i].fallback;
        if (gguf_has(gguf, flags[i].key))
            status = gguf_get_bool(gguf, flags[i].key, flags[i].out, err);
    }
    tokenizer->add_space_prefix = tokenizer->add_space_prefix && !bytes;
    return status;
}

static enum status fill(struct tokenizer *tokenizer, const struct gguf *gguf,
                        bool (*cancelled)(void), struct error *err)
{
    static const char key[] = "tokenizer.ggml.tokens";
    struct gguf_array texts;
    bool bytes = false;
    enum status status = check_model(gguf, &bytes, err);
    if (status == STATUS_OK)
        status = gguf_get_array(gguf, key, GGUF_STRING, &texts, err);
    if (status != STATUS_OK)
        return status;
    if (texts.count == 0 || texts.count > TOKENS_MAX)
        return error_set(err, STATUS_CORRUPT, "key '%s' has %zu elements", key, texts.count);
    status = copy_texts(tokenizer, texts, err);
    if (status == STATUS_OK && !bytes)
        status = copy_scores(tokenizer, gguf, err);
    if (status == STATUS_OK)
        status = copy_kinds(tokenizer, gguf, err);
    if (status == STATUS_OK)
        status = index_texts(tokenizer, err);
    if (status == STATUS_OK && bytes)
        status = vocabulary_read_merges(tokenizer, gguf, cancelled, err);
    else if (status == STATUS_OK)
        find_bytes(tokenizer);
    if (status == STATUS_OK)
        status = list_special(tokenizer, err);
    if (status == STATUS_OK)
        status = read_ids(tokenizer, gguf, bytes, err);
    if (status == STATUS_OK)
        status = read_flags(tokenizer, gguf, bytes, err);
    if (status == STATUS_OK)
        find_ends(tokenizer);
    return status;
}

enum status tokenizer_new(struct tokenizer **out, const struct gguf *gguf, bool (*cancelled)(void),
                          struct error *err)
{
    struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer)
        return error_no_memory(err, "tokenizer");
    enum status status = fill(tokenizer, gguf, cancelled, err);
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
    free(tokenizer->tokens);
    free(tokenizer->texts);
    free(tokenizer->slots);
    free(tokenizer->special);
    free(tokenizer->merges);
    free(tokenizer->merge_slots);
    pre_tokenizer_free(tokenizer->pre_tokenizer);
    free(tokenizer);
}
