#include "server/workload/llm/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "server/workload/llm/merge.h"
#include "server/workload/llm/vocabulary.h"

enum { TEXT_SIZE_MAX = 16 << 20 };

// A space in a vocabulary: U+2581.
static const char space_mark[] = {'\xe2', '\x96', '\x81'};

struct tokenizer {
    struct vocabulary vocabulary;
    // The bytes of all tokens: token `id` owns pieces[starts[id]] up to
    // pieces[starts[id + 1]].
    char *pieces;
    size_t *starts;
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

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The byte of a token with text "<0x0A>"; -1 for other texts.
static int byte_of(const struct token *token)
{
    if (token->size != 6 || memcmp(token->text, "<0x", 3) != 0 || token->text[5] != '>')
        return -1;
    int high = hex_digit(token->text[3]);
    int low = hex_digit(token->text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static size_t write_piece(char *out, const struct token *token)
{
    if (token->kind == TOKEN_CONTROL || token->kind == TOKEN_UNKNOWN)
        return 0;
    int byte = token->kind == TOKEN_BYTE ? byte_of(token) : -1;
    if (byte < 0)
        return write_unmarked(out, token);
    out[0] = (char)byte;
    return 1;
}

static enum status build_pieces(struct tokenizer *tokenizer, struct error *err)
{
    const struct vocabulary *vocabulary = &tokenizer->vocabulary;
    size_t size = 1; // never nothing
    for (uint32_t i = 0; i < vocabulary->count; i++)
        size += vocabulary->tokens[i].size;
    tokenizer->pieces = malloc(size);
    tokenizer->starts = calloc((size_t)vocabulary->count + 1, sizeof *tokenizer->starts);
    if (!tokenizer->pieces || !tokenizer->starts)
        return error_no_memory(err, "tokenizer");
    size_t at = 0;
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        at += write_piece(tokenizer->pieces + at, &vocabulary->tokens[i]);
        tokenizer->starts[i + 1] = at;
    }
    return STATUS_OK;
}

struct token_piece tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id)
{
    if (id >= tokenizer->vocabulary.count)
        return (struct token_piece){.data = "", .size = 0};
    size_t start = tokenizer->starts[id];
    return (struct token_piece){.data = tokenizer->pieces + start,
                                .size = tokenizer->starts[id + 1] - start};
}

// ---- The whole ------------------------------------------------------------

enum status tokenizer_new(struct tokenizer **out, const struct gguf *gguf, struct error *err)
{
    struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer)
        return error_no_memory(err, "tokenizer");
    enum status status = vocabulary_init(&tokenizer->vocabulary, gguf, err);
    if (status == STATUS_OK)
        status = build_pieces(tokenizer, err);
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
    free(tokenizer->pieces);
    free(tokenizer->starts);
    free(tokenizer);
}

uint32_t tokenizer_count(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.count;
}

uint32_t tokenizer_bos(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.bos;
}

bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id)
{
    return id != TOKEN_NONE &&
           (id == tokenizer->vocabulary.eos || id == tokenizer->vocabulary.end_of_turn);
}

// ---- Encoding -------------------------------------------------------------

// A part of the text, or a special token found in it.
struct fragment {
    uint32_t id; // TOKEN_NONE: text
    size_t start, size;
    size_t next; // number of the fragment that follows; 0: none
};

struct fragments {
    struct fragment *list; // list[0] is the first
    size_t count, capacity;
};

static enum status add_fragment(struct fragments *fragments, size_t after, struct fragment fragment,
                                struct error *err)
{
    if (!ARRAY_RESERVE(&fragments->list, &fragments->capacity, fragments->count + 1))
        return error_no_memory(err, "tokenizer");
    size_t number = fragments->count++;
    fragments->list[number] = fragment;
    if (number > 0) {
        fragments->list[number].next = fragments->list[after].next;
        fragments->list[after].next = number;
    }
    return STATUS_OK;
}

// Splits the text of fragment `at` at token `id`: the fragment keeps the text before it, two new
// ones hold the token and the text after it.
static enum status cut(struct fragments *fragments, size_t at, const char *text, uint32_t id,
                       const struct token *token, struct error *err)
{
    struct fragment whole = fragments->list[at];
    const char *found = memmem(text + whole.start, whole.size, token->text, token->size);
    if (!found)
        return STATUS_OK;
    size_t start = (size_t)(found - text);
    size_t behind = start + token->size;
    fragments->list[at].size = start - whole.start;
    enum status status = add_fragment(
        fragments, at, (struct fragment){.id = id, .start = start, .size = token->size}, err);
    if (status != STATUS_OK)
        return status;
    struct fragment rest = {
        .id = TOKEN_NONE, .start = behind, .size = whole.start + whole.size - behind};
    return add_fragment(fragments, fragments->list[at].next, rest, err);
}

// Finds special tokens in the text, longer ones first.  User-defined ones are
// always tokens; control ones only where `parse_special` says so.
static enum status split(const struct vocabulary *vocabulary, struct fragments *fragments,
                         const char *text, size_t size, bool parse_special, struct error *err)
{
    enum status status =
        add_fragment(fragments, 0, (struct fragment){.id = TOKEN_NONE, .size = size}, err);
    for (uint32_t i = 0; i < vocabulary->special_count && status == STATUS_OK; i++) {
        uint32_t id = vocabulary->special[i];
        const struct token *token = &vocabulary->tokens[id];
        if (!parse_special && token->kind != TOKEN_USER_DEFINED)
            continue;
        size_t at = 0;
        do {
            if (fragments->list[at].id == TOKEN_NONE)
                status = cut(fragments, at, text, id, token, err);
            at = fragments->list[at].next;
        } while (at != 0 && status == STATUS_OK);
    }
    return status;
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

static enum status encode_fragments(const struct vocabulary *vocabulary,
                                    const struct fragments *fragments, const char *text,
                                    struct token_list *out, struct error *err)
{
    enum status status = STATUS_OK;
    bool after_special = true; // the beginning counts as one
    size_t at = 0;
    do {
        const struct fragment *fragment = &fragments->list[at];
        if (fragment->id != TOKEN_NONE) {
            status = token_list_add(out, fragment->id, err);
            after_special = true;
        } else if (fragment->size > 0) {
            status = encode_text(vocabulary, text + fragment->start, fragment->size,
                                 vocabulary->add_space_prefix && after_special, out, err);
            after_special = false;
        }
        at = fragment->next;
    } while (at != 0 && status == STATUS_OK);
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

    struct fragments fragments = {0};
    enum status status = STATUS_OK;
    if (options.add_special && vocabulary->add_bos && vocabulary->bos != TOKEN_NONE)
        status = token_list_add(out, vocabulary->bos, err);
    if (status == STATUS_OK)
        status = split(vocabulary, &fragments, text, size, options.parse_special, err);
    if (status == STATUS_OK)
        status = encode_fragments(vocabulary, &fragments, text, out, err);
    if (status == STATUS_OK && options.add_special && vocabulary->add_eos &&
        vocabulary->eos != TOKEN_NONE)
        status = token_list_add(out, vocabulary->eos, err);
    free(fragments.list);
    if (status != STATUS_OK) {
        free(out->ids);
        memset(out, 0, sizeof *out);
    }
    return status;
}
