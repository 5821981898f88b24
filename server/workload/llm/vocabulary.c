#include "server/workload/llm/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 1 << 26 };

// FNV-1a, 64 bits.
static uint64_t hash_text(const char *text, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

// The slot of a text, or the free slot to insert it.
static uint32_t *slot_of(const struct vocabulary *vocabulary, const char *text, size_t size)
{
    size_t mask = vocabulary->slot_count - 1;
    size_t at = (size_t)hash_text(text, size) & mask;
    while (vocabulary->slots[at] != TOKEN_NONE) {
        const struct token *token = &vocabulary->tokens[vocabulary->slots[at]];
        if (token->size == size && memcmp(token->text, text, size) == 0)
            break;
        at = (at + 1) & mask;
    }
    return &vocabulary->slots[at];
}

uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t size)
{
    return *slot_of(vocabulary, text, size);
}

// ---- Building -------------------------------------------------------------

static enum status check_model(const struct gguf *gguf, struct error *err)
{
    struct gguf_text model;
    enum status status = gguf_get_text(gguf, "tokenizer.ggml.model", &model, err);
    if (status != STATUS_OK)
        return status;
    if (!gguf_text_is(&model, "llama"))
        return error_set(err, STATUS_UNSUPPORTED,
                         "tokenizer '%.*s' is not supported yet, only 'llama'",
                         (int)(model.size < 32 ? model.size : 32), model.data);
    return STATUS_OK;
}

static enum status copy_texts(struct vocabulary *vocabulary, struct gguf_array texts,
                              struct error *err)
{
    vocabulary->count = (uint32_t)texts.count;
    vocabulary->tokens = calloc(texts.count, sizeof *vocabulary->tokens);
    // Each text is stored without its 8 bytes of length, so all fit.
    vocabulary->texts = malloc((size_t)(texts.end - texts.data));
    if (!vocabulary->tokens || !vocabulary->texts)
        return error_no_memory(err, "tokenizer");
    char *at = vocabulary->texts;
    for (struct token *token = vocabulary->tokens; texts.count > 0; token++) {
        struct gguf_text text = gguf_array_next_text(&texts);
        if (text.size > TOKEN_SIZE_MAX)
            return error_set(err, STATUS_CORRUPT, "tokenizer: a token of %zu bytes", text.size);
        memcpy(at, text.data, text.size);
        *token = (struct token){.text = at, .size = (uint32_t)text.size, .kind = TOKEN_NORMAL};
        at += text.size;
    }
    return STATUS_OK;
}

// Finds an array with an element for each token.
static enum status get_per_token(const struct vocabulary *vocabulary, const struct gguf *gguf,
                                 const char *key, enum gguf_value_type type, struct gguf_array *out,
                                 struct error *err)
{
    enum status status = gguf_get_array(gguf, key, type, out, err);
    if (status == STATUS_OK && out->count != vocabulary->count)
        status = error_set(err, STATUS_CORRUPT, "key '%s' has %zu elements for %u tokens", key,
                           out->count, (unsigned int)vocabulary->count);
    return status;
}

static enum status copy_scores(struct vocabulary *vocabulary, const struct gguf *gguf,
                               struct error *err)
{
    static const char key[] = "tokenizer.ggml.scores";
    struct gguf_array scores;
    enum status status = get_per_token(vocabulary, gguf, key, GGUF_FLOAT32, &scores, err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        vocabulary->tokens[i].score = gguf_array_float(&scores, i);
        if (isnan(vocabulary->tokens[i].score))
            return error_set(err, STATUS_CORRUPT, "key '%s': number %u is not a number", key,
                             (unsigned int)i);
    }
    return STATUS_OK;
}

// Without this key all tokens are normal.
static enum status copy_kinds(struct vocabulary *vocabulary, const struct gguf *gguf,
                              struct error *err)
{
    static const char key[] = "tokenizer.ggml.token_type";
    if (!gguf_has(gguf, key))
        return STATUS_OK;
    struct gguf_array kinds;
    enum status status = get_per_token(vocabulary, gguf, key, GGUF_INT32, &kinds, err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        int32_t kind = gguf_array_int(&kinds, i);
        if (kind < 0 || kind >= TOKEN_KIND_COUNT)
            return error_set(err, STATUS_CORRUPT, "key '%s': number %u is %d", key, (unsigned int)i,
                             (int)kind);
        vocabulary->tokens[i].kind = (enum token_kind)kind;
    }
    return STATUS_OK;
}

static enum status index_texts(struct vocabulary *vocabulary, struct error *err)
{
    vocabulary->slot_count = 16;
    while (vocabulary->slot_count < 2 * (size_t)vocabulary->count)
        vocabulary->slot_count *= 2;
    vocabulary->slots = malloc(vocabulary->slot_count * sizeof *vocabulary->slots);
    if (!vocabulary->slots)
        return error_no_memory(err, "tokenizer");
    memset(vocabulary->slots, 0xff, vocabulary->slot_count * sizeof *vocabulary->slots);
    for (uint32_t i = 0; i < vocabulary->count; i++)
        *slot_of(vocabulary, vocabulary->tokens[i].text, vocabulary->tokens[i].size) = i;
    return STATUS_OK;
}

// Bytes are spelled "<0x0A>"; a vocabulary without those may have the byte itself.
static void find_bytes(struct vocabulary *vocabulary)
{
    for (unsigned int byte = 0; byte < 256; byte++) {
        char text[8];
        int size = snprintf(text, sizeof text, "<0x%02X>", byte);
        uint32_t id = vocabulary_find(vocabulary, text, (size_t)size);
        text[0] = (char)byte;
        vocabulary->bytes[byte] = id != TOKEN_NONE ? id : vocabulary_find(vocabulary, text, 1);
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

static enum status list_special(struct vocabulary *vocabulary, struct error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < vocabulary->count; i++)
        count += is_special(&vocabulary->tokens[i]);
    vocabulary->special = calloc((size_t)count + 1, sizeof *vocabulary->special);
    if (!vocabulary->special)
        return error_no_memory(err, "tokenizer");
    for (uint32_t i = 0; i < vocabulary->count; i++)
        if (is_special(&vocabulary->tokens[i]))
            vocabulary->special[vocabulary->special_count++] = i;
    qsort_r(vocabulary->special, vocabulary->special_count, sizeof *vocabulary->special,
            longest_first, vocabulary->tokens);
    return STATUS_OK;
}

// Reads a token id from a key: the format's default if the key is missing, TOKEN_NONE if it has
// the largest number.
static enum status read_id(const struct vocabulary *vocabulary, const struct gguf *gguf,
                           const char *key, uint32_t fallback, uint32_t *out, struct error *err)
{
    uint64_t id = fallback < vocabulary->count ? fallback : TOKEN_NONE;
    if (gguf_has(gguf, key)) {
        enum status status = gguf_get_uint(gguf, key, 0, TOKEN_NONE, &id, err);
        if (status != STATUS_OK)
            return status;
        if (id >= vocabulary->count && id != TOKEN_NONE)
            return error_set(err, STATUS_CORRUPT, "key '%s' names token %u of %u", key,
                             (unsigned int)id, (unsigned int)vocabulary->count);
    }
    *out = (uint32_t)id;
    return STATUS_OK;
}

static enum status read_ids(struct vocabulary *vocabulary, const struct gguf *gguf,
                            struct error *err)
{
    const struct {
        const char *key;
        uint32_t fallback;
        uint32_t *out;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", 1, &vocabulary->bos},
        {"tokenizer.ggml.eos_token_id", 2, &vocabulary->eos},
        {"tokenizer.ggml.eot_token_id", TOKEN_NONE, &vocabulary->end_of_turn},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0] && status == STATUS_OK; i++)
        status = read_id(vocabulary, gguf, ids[i].key, ids[i].fallback, ids[i].out, err);
    return status;
}

static enum status read_flags(struct vocabulary *vocabulary, const struct gguf *gguf,
                              struct error *err)
{
    const struct {
        const char *key;
        bool fallback;
        bool *out;
    } flags[] = {
        {"tokenizer.ggml.add_bos_token", true, &vocabulary->add_bos},
        {"tokenizer.ggml.add_eos_token", false, &vocabulary->add_eos},
        {"tokenizer.ggml.add_space_prefix", true, &vocabulary->add_space_prefix},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && status == STATUS_OK; i++) {
        *flags[i].out = flags[i].fallback;
        if (gguf_has(gguf, flags[i].key))
            status = gguf_get_bool(gguf, flags[i].key, flags[i].out, err);
    }
    return status;
}

enum status vocabulary_init(struct vocabulary *vocabulary, const struct gguf *gguf,
                            struct error *err)
{
    static const char key[] = "tokenizer.ggml.tokens";
    struct gguf_array texts;
    enum status status = check_model(gguf, err);
    if (status == STATUS_OK)
        status = gguf_get_array(gguf, key, GGUF_STRING, &texts, err);
    if (status != STATUS_OK)
        return status;
    if (texts.count == 0 || texts.count > TOKENS_MAX)
        return error_set(err, STATUS_CORRUPT, "key '%s' has %zu elements", key, texts.count);
    status = copy_texts(vocabulary, texts, err);
    if (status == STATUS_OK)
        status = copy_scores(vocabulary, gguf, err);
    if (status == STATUS_OK)
        status = copy_kinds(vocabulary, gguf, err);
    if (status == STATUS_OK)
        status = index_texts(vocabulary, err);
    if (status == STATUS_OK)
        status = read_ids(vocabulary, gguf, err);
    if (status == STATUS_OK)
        status = read_flags(vocabulary, gguf, err);
    if (status != STATUS_OK)
        return status;
    find_bytes(vocabulary);
    return list_special(vocabulary, err);
}

void vocabulary_deinit(struct vocabulary *vocabulary)
{
    free(vocabulary->tokens);
    free(vocabulary->texts);
    free(vocabulary->slots);
    free(vocabulary->special);
}
