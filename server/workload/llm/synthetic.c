#include "server/workload/llm/synthetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/half.h"
#include "server/workload/llm/gguf_writer.h"
#include "server/workload/llm/random.h"
#include "server/workload/llm/vocabulary.h"

// tiny is for tests: it has a separate output matrix and grouped key/value heads.  15m and 42m
// have the shapes of the TinyStories models of those sizes.
static const struct synthetic_shape shapes[] = {
    // name, dim, ff, layers, heads, kv_heads, vocabulary, context, tied
    {"tiny", 64, 172, 2, 4, 2, 512, 256, false},
    {"15m", 288, 768, 6, 6, 6, 32000, 1024, true},
    {"42m", 512, 1376, 8, 8, 8, 32000, 1024, true},
};

enum {
    SHAPE_COUNT = sizeof shapes / sizeof shapes[0],
    PIECE_SIZE = 16, // of the longest token's text, with its terminator
    NAME_SIZE = 64,
    CHUNK = 16384, // weights generated at once
};

const struct synthetic_shape *synthetic_shapes(size_t *count)
{
    *count = SHAPE_COUNT;
    return shapes;
}

const struct synthetic_shape *synthetic_find(const char *name)
{
    for (size_t i = 0; i < SHAPE_COUNT; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

// ---- Vocabulary -----------------------------------------------------------

struct pieces {
    char (*texts)[PIECE_SIZE];
    const char **pointers;
    float *scores;
    int32_t *kinds;
    uint32_t count, limit;
};

static void add_piece(struct pieces *pieces, enum token_kind kind, const char *a, const char *b)
{
    uint32_t id = pieces->count;
    if (id == pieces->limit)
        return;
    (void)snprintf(pieces->texts[id], PIECE_SIZE, "%s%s", a, b);
    pieces->pointers[id] = pieces->texts[id];
    pieces->kinds[id] = (int32_t)kind;
    // Pieces made earlier are shorter and are merged first, so that longer ones can
    // be merged from them.
    pieces->scores[id] = kind == TOKEN_NORMAL ? -(float)id : 0.0F;
    pieces->count++;
}

enum { SYLLABLES = 21 * 5 }; // of one consonant and one vowel

// Writes word `number` of `length` syllables.
static void write_word(char out[PIECE_SIZE], uint32_t number, size_t length)
{
    for (size_t i = 0; i < length; i++, number /= SYLLABLES) {
        out[2 * i] = "bcdfghjklmnpqrstvwxyz"[number % SYLLABLES / 5];
        out[2 * i + 1] = "aeiou"[number % SYLLABLES % 5];
    }
    out[2 * length] = '\0';
}

static void add_basics(struct pieces *pieces)
{
    add_piece(pieces, TOKEN_UNKNOWN, "<unk>", "");
    add_piece(pieces, TOKEN_CONTROL, "<s>", "");
    add_piece(pieces, TOKEN_CONTROL, "</s>", "");
    for (unsigned int byte = 0; byte < 256; byte++) {
        char text[PIECE_SIZE];
        (void)snprintf(text, sizeof text, "<0x%02X>", byte);
        add_piece(pieces, TOKEN_BYTE, text, "");
    }
    add_piece(pieces, TOKEN_NORMAL, "\u2581", "");
    for (int c = '!'; c <= '~'; c++)
        add_piece(pieces, TOKEN_NORMAL, (const char[]){(char)c, '\0'}, "");
}

// Words of one, two and three syllables, with and without a space before, until
// the vocabulary is full.
static void add_words(struct pieces *pieces)
{
    static const char *const starts[] = {"", "\u2581"};
    uint32_t combinations = SYLLABLES;
    for (size_t length = 1; length <= 3; length++, combinations *= SYLLABLES) {
        for (uint32_t word = 0; word < 2 * combinations; word++) {
            char text[PIECE_SIZE];
            write_word(text, word / 2, length);
            add_piece(pieces, TOKEN_NORMAL, starts[word % 2], text);
            if (pieces->count == pieces->limit)
                return;
        }
    }
}

static void pieces_free(struct pieces *pieces)
{
    free(pieces->texts);
    free(pieces->pointers);
    free(pieces->scores);
    free(pieces->kinds);
}

static enum status write_vocabulary(struct gguf_writer *writer, uint32_t count, struct error *err)
{
    struct pieces pieces = {
        .texts = calloc(count, sizeof *pieces.texts),
        .pointers = calloc(count, sizeof *pieces.pointers),
        .scores = calloc(count, sizeof *pieces.scores),
        .kinds = calloc(count, sizeof *pieces.kinds),
        .limit = count,
    };
    if (!pieces.texts || !pieces.pointers || !pieces.scores || !pieces.kinds) {
        pieces_free(&pieces);
        return error_no_memory(err, "vocabulary");
    }
    add_basics(&pieces);
    add_words(&pieces);
    gguf_writer_text(writer, "tokenizer.ggml.model", "llama");
    gguf_writer_texts(writer, "tokenizer.ggml.tokens", pieces.pointers, pieces.count);
    gguf_writer_array(writer, "tokenizer.ggml.scores", GGUF_FLOAT32, pieces.scores, pieces.count);
    gguf_writer_array(writer, "tokenizer.ggml.token_type", GGUF_INT32, pieces.kinds, pieces.count);
    gguf_writer_uint(writer, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_uint(writer, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_uint(writer, "tokenizer.ggml.eos_token_id", 2);
    gguf_writer_bool(writer, "tokenizer.ggml.add_bos_token", true);
    gguf_writer_bool(writer, "tokenizer.ggml.add_eos_token", false);
    pieces_free(&pieces);
    return STATUS_OK;
}

// ---- Keys -----------------------------------------------------------------

static void write_keys(struct gguf_writer *writer, const struct synthetic_shape *shape, bool half)
{
    char text[NAME_SIZE];
    (void)snprintf(text, sizeof text, "synthetic-%s", shape->name);
    gguf_writer_text(writer, "general.architecture", "llama");
    gguf_writer_text(writer, "general.name", text);
    gguf_writer_text(writer, "general.description",
                     "Synthetic: random weights, made by inferstat-worker make-model.  "
                     "What it says means nothing.");
    gguf_writer_uint(writer, "general.file_type", half ? GGUF_TENSOR_F16 : GGUF_TENSOR_F32);
    gguf_writer_uint(writer, "llama.context_length", shape->context);
    gguf_writer_uint(writer, "llama.embedding_length", shape->dim);
    gguf_writer_uint(writer, "llama.feed_forward_length", shape->ff);
    gguf_writer_uint(writer, "llama.block_count", shape->layers);
    gguf_writer_uint(writer, "llama.attention.head_count", shape->heads);
    gguf_writer_uint(writer, "llama.attention.head_count_kv", shape->kv_heads);
    gguf_writer_uint(writer, "llama.rope.dimension_count", shape->dim / shape->heads);
    gguf_writer_float(writer, "llama.rope.freq_base", 10000.0F);
    gguf_writer_float(writer, "llama.attention.layer_norm_rms_epsilon", 1e-5F);
    gguf_writer_uint(writer, "llama.vocab_size", shape->vocabulary);
}

// ---- Weights --------------------------------------------------------------

// One tensor of the file, in the order in which it is listed and written.
struct plan_line {
    char name[NAME_SIZE];
    uint64_t rows, columns;
    double spread; // standard deviation; 0: all ones, a norm
};

typedef void plan_visit(void *context, const struct plan_line *line);

static void visit_line(plan_visit *visit, void *context, const char *name, uint64_t rows,
                       uint64_t columns, double spread)
{
    struct plan_line line = {.rows = rows, .columns = columns, .spread = spread};
    (void)snprintf(line.name, sizeof line.name, "%s", name);
    visit(context, &line);
}

// Spreads that keep activations near 1 through all layers, and scores near 2.
static void visit_all(const struct synthetic_shape *s, plan_visit *visit, void *context)
{
    uint64_t kv = (uint64_t)s->dim / s->heads * s->kv_heads;
    double in = 1.0 / sqrt((double)s->dim);
    double back = in / sqrt(2.0 * (double)s->layers);
    visit_line(visit, context, "token_embd.weight", s->vocabulary, s->dim, 2.0 * in);
    visit_line(visit, context, "output_norm.weight", 1, s->dim, 0.0);
    if (!s->tied)
        visit_line(visit, context, "output.weight", s->vocabulary, s->dim, 2.0 * in);
    const struct {
        const char *name;
        uint64_t rows, columns;
        double spread;
    } lines[] = {
        {"attn_norm", 1, s->dim, 0.0},
        {"attn_q", s->dim, s->dim, in},
        {"attn_k", kv, s->dim, in},
        {"attn_v", kv, s->dim, in},
        {"attn_output", s->dim, s->dim, back},
        {"ffn_norm", 1, s->dim, 0.0},
        {"ffn_gate", s->ff, s->dim, in},
        {"ffn_up", s->ff, s->dim, in},
        {"ffn_down", s->dim, s->ff, back},
    };
    for (uint32_t layer = 0; layer < s->layers; layer++) {
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            char name[NAME_SIZE];
            (void)snprintf(name, sizeof name, "blk.%u.%s.weight", (unsigned int)layer,
                           lines[i].name);
            visit_line(visit, context, name, lines[i].rows, lines[i].columns, lines[i].spread);
        }
    }
}

struct making {
    struct gguf_writer *writer;
    struct random random;
    bool half;
    float *single;    // CHUNK
    uint16_t *halves; // CHUNK
};

static bool is_half(const struct making *making, const struct plan_line *line)
{
    return making->half && line->spread > 0.0;
}

static void list_tensor(void *context, const struct plan_line *line)
{
    struct making *making = context;
    gguf_writer_tensor(making->writer, line->name,
                       is_half(making, line) ? GGUF_TENSOR_F16 : GGUF_TENSOR_F32, line->rows,
                       line->columns);
}

// Evenly spread numbers: two of 32 bits each from one drawing.
static void draw(struct making *making, size_t count, double spread)
{
    float width = (float)(spread * 2.0 * sqrt(3.0)); // of an even distribution
    for (size_t i = 0; i < count; i += 2) {
        uint64_t bits = random_next(&making->random);
        making->single[i] = ((float)(bits >> 40) * 0x1p-24F - 0.5F) * width;
        making->single[i + 1] = ((float)(bits >> 8 & 0xffffffU) * 0x1p-24F - 0.5F) * width;
    }
}

static void write_tensor(void *context, const struct plan_line *line)
{
    struct making *making = context;
    uint64_t elements = line->rows * line->columns;
    for (uint64_t done = 0; done < elements; done += CHUNK) {
        size_t count = elements - done < CHUNK ? (size_t)(elements - done) : CHUNK;
        if (line->spread > 0.0)
            draw(making, count, line->spread);
        else
            for (size_t i = 0; i < count; i++)
                making->single[i] = 1.0F;
        if (!is_half(making, line)) {
            gguf_writer_data(making->writer, making->single, count * sizeof *making->single);
            continue;
        }
        for (size_t i = 0; i < count; i++)
            making->halves[i] = half_from_float(making->single[i]);
        gguf_writer_data(making->writer, making->halves, count * sizeof *making->halves);
    }
}

static enum status write_weights(struct gguf_writer *writer, const struct synthetic_shape *shape,
                                 bool half, uint64_t seed, struct error *err)
{
    struct making making = {
        .writer = writer,
        .half = half,
        .single = calloc(CHUNK + 1, sizeof *making.single), // `draw` makes pairs
        .halves = calloc(CHUNK, sizeof *making.halves),
    };
    enum status status = STATUS_OK;
    if (making.single && making.halves) {
        random_seed(&making.random, seed);
        visit_all(shape, list_tensor, &making);
        visit_all(shape, write_tensor, &making);
    } else {
        status = error_no_memory(err, "weights");
    }
    free(making.single);
    free(making.halves);
    return status;
}

enum status synthetic_write(const char *path, const struct synthetic_shape *shape, bool half,
                            uint64_t seed, struct error *err)
{
    struct gguf_writer *writer = NULL;
    enum status status = gguf_writer_open(&writer, path, err);
    if (status != STATUS_OK)
        return status;
    write_keys(writer, shape, half);
    status = write_vocabulary(writer, shape->vocabulary, err);
    if (status == STATUS_OK)
        status = write_weights(writer, shape, half, seed, err);
    if (status != STATUS_OK) {
        gguf_writer_abandon(writer);
        return status;
    }
    return gguf_writer_commit(writer, err);
}
