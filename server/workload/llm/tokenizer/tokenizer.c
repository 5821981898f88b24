#include "server/workload/llm/tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "server/workload/llm/tokenizer/pre_tokenizer.h"
#include "server/workload/llm/tokenizer/vocabulary.h"

// A space in a vocabulary: U+2581.
static const char space_mark[] = {'\xe2', '\x96', '\x81'};

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
    if (id >= tokenizer->count)
        return 0;
    const struct token *token = &tokenizer->tokens[id];
    if (token->kind == TOKEN_CONTROL || token->kind == TOKEN_UNKNOWN)
        return 0;
    char spelled[sizeof "<0x0A>"] = "";
    unsigned int byte;
    memcpy(spelled, token->text, token->size < sizeof spelled ? token->size : 0);
    if (token->kind == TOKEN_BYTE && sscanf(spelled, "<0x%2x>", &byte) == 1) {
        out[0] = (char)byte;
        return 1;
    }
    if (!tokenizer->merges)
        return write_unmarked(out, token);
    memcpy(out, token->text, token->size);
    return token->size;
}

const char *tokenizer_control_name(const struct tokenizer *tokenizer, uint32_t id, size_t *size)
{
    if (id >= tokenizer->count)
        return NULL;
    const struct token *token = &tokenizer->tokens[id];
    *size = token->size;
    return token->kind == TOKEN_CONTROL || token->kind == TOKEN_UNKNOWN ? token->text : NULL;
}

uint32_t tokenizer_count(const struct tokenizer *tokenizer)
{
    return tokenizer->count;
}

bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id)
{
    return id < tokenizer->count && tokenizer->tokens[id].is_end;
}

// ---- Merging --------------------------------------------------------------

#define NO_SYMBOL UINT32_MAX

// A part of the text that is, or may become part of, a token.
struct symbol {
    uint32_t start, size; // size 0: merged into the one before
    uint32_t previous, next;
    uint32_t id; // byte-level: its token
};

// Two neighbours that could be merged.
struct pair {
    float score;
    uint32_t left, right;
    uint32_t size; // of both together, to detect stale pairs
    uint32_t id;   // the token that they become
};

struct merger {
    const struct tokenizer *tokenizer;
    const char *text;
    struct symbol *symbols;
    uint32_t symbol_count;
    struct pair *heap; // the best pair at heap[0]
    size_t heap_count;
};

static enum status token_list_add(struct token_list *list, uint32_t id, struct error *err)
{
    if (!ARRAY_RESERVE(&list->ids, &list->capacity, list->count + 1))
        return error_no_memory(err, "tokenizer");
    list->ids[list->count++] = id;
    return STATUS_OK;
}

// ---- The heap of pairs ----------------------------------------------------

static bool better(const struct pair *a, const struct pair *b)
{
    return a->score > b->score || (!(a->score < b->score) && a->left < b->left);
}

static void heap_push(struct merger *merger, struct pair pair)
{
    size_t at = merger->heap_count++;
    while (at > 0 && better(&pair, &merger->heap[(at - 1) / 2])) {
        merger->heap[at] = merger->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merger->heap[at] = pair;
}

static struct pair heap_pop(struct merger *merger)
{
    struct pair best = merger->heap[0];
    struct pair last = merger->heap[--merger->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= merger->heap_count)
            break;
        if (child + 1 < merger->heap_count &&
            better(&merger->heap[child + 1], &merger->heap[child]))
            child++;
        if (!better(&merger->heap[child], &last))
            break;
        merger->heap[at] = merger->heap[child];
        at = child;
    }
    merger->heap[at] = last;
    return best;
}

// ---- Symbols --------------------------------------------------------------

// Byte-level vocabularies merge bytes, the others characters.
static void split_symbols(struct merger *merger, uint32_t size)
{
    const struct tokenizer *tokenizer = merger->tokenizer;
    uint32_t at = 0;
    while (at < size) {
        uint32_t length = 1;
        if (!tokenizer->merges)
            length = (uint32_t)text_character(merger->text + at, size - at, NULL);
        if (length == 0)
            length = 1; // malformed
        uint32_t number = merger->symbol_count++;
        merger->symbols[number] =
            (struct symbol){.start = at,
                            .size = length,
                            .previous = number - 1,
                            .next = number + 1,
                            .id = tokenizer->bytes[(unsigned char)merger->text[at]]};
        at += length;
    }
    merger->symbols[0].previous = NO_SYMBOL;
    merger->symbols[merger->symbol_count - 1].next = NO_SYMBOL;
}

// Adds a pair of neighbours to the heap if they can become a token.
static void propose(struct merger *merger, uint32_t left, uint32_t right)
{
    const struct tokenizer *tokenizer = merger->tokenizer;
    if (left == NO_SYMBOL || right == NO_SYMBOL)
        return;
    const struct symbol *a = &merger->symbols[left], *b = &merger->symbols[right];
    struct pair pair = {.left = left, .right = right, .size = a->size + b->size, .id = TOKEN_NONE};
    if (tokenizer->merges) {
        const uint32_t number = vocabulary_find_merge(tokenizer, a->id, b->id);
        if (number == TOKEN_NONE)
            return;
        pair.id = tokenizer->merges[number].merged;
        pair.score = -(float)number; // exact: see MERGES_MAX
    } else {
        pair.id = vocabulary_find(tokenizer, merger->text + a->start, pair.size);
        if (pair.id == TOKEN_NONE)
            return;
        pair.score = tokenizer->tokens[pair.id].score;
    }
    heap_push(merger, pair);
}

static void merge_all(struct merger *merger)
{
    for (uint32_t i = 1; i < merger->symbol_count; i++)
        propose(merger, i - 1, i);
    while (merger->heap_count > 0) {
        struct pair pair = heap_pop(merger);
        struct symbol *left = &merger->symbols[pair.left];
        struct symbol *right = &merger->symbols[pair.right];
        if (left->size == 0 || right->size == 0 || left->size + right->size != pair.size)
            continue; // stale: one of them has been merged
        left->size = pair.size;
        left->id = pair.id;
        right->size = 0;
        left->next = right->next;
        if (right->next != NO_SYMBOL)
            merger->symbols[right->next].previous = pair.left;
        propose(merger, left->previous, pair.left);
        propose(merger, pair.left, left->next);
    }
}

// ---- Tokens ---------------------------------------------------------------

static enum status add_bytes(const struct merger *merger, const struct symbol *symbol,
                             struct token_list *out, struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < symbol->size && status == STATUS_OK; i++) {
        unsigned char byte = (unsigned char)merger->text[symbol->start + i];
        uint32_t id = merger->tokenizer->bytes[byte];
        if (id == TOKEN_NONE)
            return error_set(err, STATUS_INVALID,
                             "text: the model's vocabulary has no token for byte 0x%02x", byte);
        status = token_list_add(out, id, err);
    }
    return status;
}

static enum status add_tokens(const struct merger *merger, struct token_list *out,
                              struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i != NO_SYMBOL && status == STATUS_OK; i = merger->symbols[i].next) {
        const struct symbol *symbol = &merger->symbols[i];
        uint32_t id = symbol->id;
        if (!merger->tokenizer->merges)
            id = vocabulary_find(merger->tokenizer, merger->text + symbol->start, symbol->size);
        status =
            id != TOKEN_NONE ? token_list_add(out, id, err) : add_bytes(merger, symbol, out, err);
    }
    return status;
}

// Appends the tokens of `size` bytes of `text` to `out`; a malformed byte counts as a character.
static enum status merge_text(const struct tokenizer *tokenizer, const char *text, size_t size,
                              struct token_list *out, struct error *err)
{
    if (size == 0)
        return STATUS_OK;
    if (size >= NO_SYMBOL / 4)
        return error_set(err, STATUS_INVALID, "text of %zu bytes: too long", size);
    struct merger merger = {.tokenizer = tokenizer, .text = text};
    // At most one pair per symbol, and two per merge, of which there are fewer than symbols.
    merger.symbols = calloc(size, sizeof *merger.symbols);
    merger.heap = calloc(size, 3 * sizeof *merger.heap);
    enum status status = STATUS_OK;
    if (merger.symbols && merger.heap) {
        split_symbols(&merger, (uint32_t)size);
        merge_all(&merger);
        status = add_tokens(&merger, out, err);
    } else {
        status = error_no_memory(err, "tokenizer");
    }
    free(merger.symbols);
    free(merger.heap);
    return status;
}

// ---- Encoding -------------------------------------------------------------

// Finds special tokens in the text, longer ones first, and sets `found` to their ids at each of
// their bytes, to TOKEN_NONE elsewhere.  User-defined ones are always tokens; control ones only
// where `options` say so.
static void find_special(const struct tokenizer *tokenizer, const char *text, size_t size,
                         const struct encode_options *options, uint32_t *found)
{
    const char *plain_from = text + options->plain_from, *plain_to = text + options->plain_to;
    memset(found, 0xff, size * sizeof *found);
    for (uint32_t i = 0; i < tokenizer->special_count; i++) {
        const uint32_t id = tokenizer->special[i];
        const struct token *token = &tokenizer->tokens[id];
        const bool control = token->kind != TOKEN_USER_DEFINED;
        if (control && !options->parse_special)
            continue;
        const char *at = text;
        while ((at = memmem(at, (size_t)(text + size - at), token->text, token->size))) {
            if (control && at < plain_to && at + token->size > plain_from) {
                at = plain_to; // what begins before it overlaps too
                continue;
            }
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

struct words {
    const struct tokenizer *tokenizer;
    struct token_list *out;
};

static enum status encode_word(void *context, const char *text, size_t size, struct error *err)
{
    const struct words *words = context;
    const struct tokenizer *tokenizer = words->tokenizer;
    uint32_t id = TOKEN_NONE;
    if (tokenizer->ignore_merges)
        id = vocabulary_find(tokenizer, text, size);
    return id != TOKEN_NONE ? token_list_add(words->out, id, err)
                            : merge_text(tokenizer, text, size, words->out, err);
}

// Encodes a part of plain text, with spaces replaced by U+2581.
static enum status encode_marked(const struct tokenizer *tokenizer, const char *text, size_t size,
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
    enum status status = merge_text(tokenizer, marked, marked_size, out, err);
    free(marked);
    return status;
}

// Encodes the special tokens as `found` has them, and the text between them.
static enum status encode_all(const struct tokenizer *tokenizer, const char *text, size_t size,
                              const uint32_t *found, struct token_list *out, struct error *err)
{
    enum status status = STATUS_OK;
    bool after_special = true; // the beginning counts as one
    for (size_t at = 0, end; at < size && status == STATUS_OK; at = end) {
        if (found[at] != TOKEN_NONE) {
            end = at + tokenizer->tokens[found[at]].size;
            status = token_list_add(out, found[at], err);
            after_special = true;
            continue;
        }
        end = at + 1;
        while (end < size && found[end] == TOKEN_NONE)
            end++;
        struct words words = {tokenizer, out};
        if (tokenizer->merges)
            status = pre_tokenizer_run(tokenizer->pre_tokenizer, text + at, end - at, encode_word,
                                       &words, err);
        else
            status = encode_marked(tokenizer, text + at, end - at,
                                   tokenizer->add_space_prefix && after_special, out, err);
        after_special = false;
    }
    return status;
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                             struct encode_options options, struct token_list *out,
                             struct error *err)
{
    memset(out, 0, sizeof *out);
    if (size > TOKENIZER_TEXT_MAX)
        return error_set(err, STATUS_INVALID, "text of %zu bytes: too long", size);

    uint32_t *found = malloc((size + 1) * sizeof *found);
    enum status status = found ? STATUS_OK : error_no_memory(err, "tokenizer");
    if (status == STATUS_OK && options.add_special && tokenizer->add_bos &&
        tokenizer->bos != TOKEN_NONE)
        status = token_list_add(out, tokenizer->bos, err);
    if (status == STATUS_OK) {
        find_special(tokenizer, text, size, &options, found);
        status = encode_all(tokenizer, text, size, found, out, err);
    }
    if (status == STATUS_OK && options.add_special && tokenizer->add_eos &&
        tokenizer->eos != TOKEN_NONE)
        status = token_list_add(out, tokenizer->eos, err);
    free(found);
    if (status != STATUS_OK) {
        free(out->ids);
        memset(out, 0, sizeof *out);
    }
    return status;
}
