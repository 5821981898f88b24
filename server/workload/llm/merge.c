#include "server/workload/llm/merge.h"

#include <stdlib.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"

#define NO_SYMBOL UINT32_MAX

// A part of the text that is, or may become part of, a token.
struct symbol {
    uint32_t start, size; // size 0: merged into the one before
    uint32_t previous, next;
};

// Two neighbours that could be merged.
struct pair {
    float score;
    uint32_t left, right;
    uint32_t size; // of both together, to detect stale pairs
};

struct merger {
    const struct vocabulary *vocabulary;
    const char *text;
    struct symbol *symbols;
    uint32_t symbol_count;
    struct pair *heap; // the best pair at heap[0]
    size_t heap_count;
};

enum status token_list_add(struct token_list *list, uint32_t id, struct error *err)
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

static void split_characters(struct merger *merger, uint32_t size)
{
    uint32_t at = 0;
    while (at < size) {
        uint32_t length = (uint32_t)text_character(merger->text + at, size - at, NULL);
        if (length == 0)
            length = 1; // malformed
        uint32_t number = merger->symbol_count++;
        merger->symbols[number] = (struct symbol){
            .start = at, .size = length, .previous = number - 1, .next = number + 1};
        at += length;
    }
    merger->symbols[0].previous = NO_SYMBOL;
    merger->symbols[merger->symbol_count - 1].next = NO_SYMBOL;
}

// Adds a pair of neighbours to the heap if their text is a token.
static void propose(struct merger *merger, uint32_t left, uint32_t right)
{
    if (left == NO_SYMBOL || right == NO_SYMBOL)
        return;
    const struct symbol *a = &merger->symbols[left];
    uint32_t size = a->size + merger->symbols[right].size;
    uint32_t id = vocabulary_find(merger->vocabulary, merger->text + a->start, size);
    if (id != TOKEN_NONE)
        heap_push(merger, (struct pair){.score = merger->vocabulary->tokens[id].score,
                                        .left = left,
                                        .right = right,
                                        .size = size});
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
        uint32_t id = merger->vocabulary->bytes[byte];
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
        uint32_t id =
            vocabulary_find(merger->vocabulary, merger->text + symbol->start, symbol->size);
        status =
            id != TOKEN_NONE ? token_list_add(out, id, err) : add_bytes(merger, symbol, out, err);
    }
    return status;
}

enum status merge_text(const struct vocabulary *vocabulary, const char *text, size_t size,
                       struct token_list *out, struct error *err)
{
    if (size == 0)
        return STATUS_OK;
    if (size >= NO_SYMBOL / 4)
        return error_set(err, STATUS_INVALID, "text of %zu bytes: too long", size);
    struct merger merger = {.vocabulary = vocabulary, .text = text};
    // At most one pair per symbol, and two per merge, of which there are fewer than symbols.
    merger.symbols = calloc(size, sizeof *merger.symbols);
    merger.heap = calloc(size, 3 * sizeof *merger.heap);
    enum status status = STATUS_NOMEM;
    if (merger.symbols && merger.heap) {
        split_characters(&merger, (uint32_t)size);
        merge_all(&merger);
        status = add_tokens(&merger, out, err);
    } else {
        (void)error_set(err, STATUS_NOMEM, "tokenizer: no memory for a text of %zu bytes", size);
    }
    free(merger.symbols);
    free(merger.heap);
    return status;
}
