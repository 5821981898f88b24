#include "server/workload/llm/synthetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/stop.h"
#include "server/device/cpu/thread_pool.h"
#include "server/workload/llm/gguf_writer.h"
#include "server/workload/llm/random.h"
#include "server/workload/llm/tokenizer/vocabulary.h"

const struct synthetic_shape synthetic_shapes[SYNTHETIC_COUNT] = {
    // name, dim, ff, layers, heads, kv_heads, vocabulary, context, tied
    [SYNTHETIC_TINY] = {"tiny", 64, 172, 2, 4, 2, 512, 256, false},
    [SYNTHETIC_15M] = {"15m", 288, 768, 6, 6, 6, 32000, 1024, true},
    [SYNTHETIC_42M] = {"42m", 512, 1376, 8, 8, 8, 32000, 1024, true},
    [SYNTHETIC_110M] = {"110m", 768, 2048, 12, 12, 12, 32000, 1024, true},
    [SYNTHETIC_1B] = {"1b", 2048, 5632, 22, 32, 4, 32000, 2048, false},
    [SYNTHETIC_8B] = {"8b", 4096, 14336, 32, 32, 8, 128256, 8192, false},
};

enum {
    PIECE_SIZE = 16, // of the longest token's text, with its terminator
    NAME_SIZE = 64,
    CHUNK = 16384, // weights that one thread rounds at once: whole blocks of any type
    ROUND = 64,    // chunks between two writes
};

// Values of the key general.file_type, which names the type of most weights.
static const uint32_t file_types[TENSOR_TYPE_COUNT] = {
    [TENSOR_F32] = 0,   [TENSOR_F16] = 1,   [TENSOR_Q4_0] = 2,  [TENSOR_Q4_1] = 3,
    [TENSOR_Q8_0] = 7,  [TENSOR_Q5_0] = 8,  [TENSOR_Q5_1] = 9,  [TENSOR_Q4_K] = 14,
    [TENSOR_Q5_K] = 16, [TENSOR_Q6_K] = 18, [TENSOR_BF16] = 32,
};

// The ids of the vocabulary: three special tokens, all bytes, the space, the printable
// characters, then words.
enum {
    FIRST_BYTE = 3,
    SPACE = FIRST_BYTE + 256,
    FIRST_CHARACTER = SPACE + 1,
    FIRST_WORD = FIRST_CHARACTER + '~' - '!' + 1,
};

// Writes word `number`: those of one syllable, then of two, of three, each without and with a
// space before it.
static void write_word(char out[PIECE_SIZE], uint32_t number)
{
    enum { SYLLABLES = 21 * 5 }; // of one consonant and one vowel
    uint32_t count = SYLLABLES;
    size_t length = 1;
    for (; number >= 2 * count; number -= 2 * count, count *= SYLLABLES)
        length++;
    char *at = number % 2 ? stpcpy(out, "\u2581") : out;
    uint32_t word = number / 2;
    for (size_t i = 0; i < length; i++, word /= SYLLABLES) {
        *at++ = "bcdfghjklmnpqrstvwxyz"[word % SYLLABLES / 5];
        *at++ = "aeiou"[word % SYLLABLES % 5];
    }
    *at = '\0';
}

// Writes the text of token `id` and returns its kind.
static enum token_kind write_piece(char out[PIECE_SIZE], uint32_t id)
{
    static const char *const special[FIRST_BYTE] = {"<unk>", "<s>", "</s>"};
    if (id < FIRST_BYTE)
        (void)strcpy(out, special[id]);
    else if (id < SPACE)
        (void)snprintf(out, PIECE_SIZE, "<0x%02X>", id - FIRST_BYTE);
    else if (id == SPACE)
        (void)strcpy(out, "\u2581");
    else if (id < FIRST_WORD)
        (void)snprintf(out, PIECE_SIZE, "%c", (int)(id - FIRST_CHARACTER) + '!');
    else
        write_word(out, id - FIRST_WORD);
    if (id < FIRST_BYTE)
        return id == 0 ? TOKEN_UNKNOWN : TOKEN_CONTROL;
    return id < SPACE ? TOKEN_BYTE : TOKEN_NORMAL;
}

static enum status write_vocabulary(struct gguf_writer *writer, uint32_t count, struct error *err)
{
    char(*texts)[PIECE_SIZE] = calloc(count, sizeof *texts);
    const char **pointers = calloc(count, sizeof *pointers);
    float *scores = calloc(count, sizeof *scores);
    int32_t *kinds = calloc(count, sizeof *kinds);
    enum status status = STATUS_OK;
    if (texts && pointers && scores && kinds) {
        for (uint32_t id = 0; id < count; id++) {
            kinds[id] = (int32_t)write_piece(texts[id], id);
            pointers[id] = texts[id];
            // Shorter tokens come first and are merged first, so that longer ones can be merged
            // from them.
            scores[id] = kinds[id] == TOKEN_NORMAL ? -(float)id : 0.0F;
        }
        gguf_writer_text(writer, "tokenizer.ggml.model", "llama");
        gguf_writer_texts(writer, "tokenizer.ggml.tokens", pointers, count);
        gguf_writer_array(writer, "tokenizer.ggml.scores", GGUF_FLOAT32, scores, count);
        gguf_writer_array(writer, "tokenizer.ggml.token_type", GGUF_INT32, kinds, count);
        gguf_writer_uint(writer, "tokenizer.ggml.unknown_token_id", 0);
        gguf_writer_uint(writer, "tokenizer.ggml.bos_token_id", 1);
        gguf_writer_uint(writer, "tokenizer.ggml.eos_token_id", 2);
        gguf_writer_bool(writer, "tokenizer.ggml.add_bos_token", true);
        gguf_writer_bool(writer, "tokenizer.ggml.add_eos_token", false);
    } else {
        status = error_no_memory(err, "vocabulary");
    }
    free(texts);
    free(pointers);
    free(scores);
    free(kinds);
    return status;
}

static void write_keys(struct gguf_writer *writer, const struct synthetic_shape *shape,
                       enum tensor_type type)
{
    char text[NAME_SIZE];
    (void)snprintf(text, sizeof text, "synthetic-%s", shape->name);
    gguf_writer_text(writer, "general.architecture", "llama");
    gguf_writer_text(writer, "general.name", text);
    gguf_writer_text(writer, "general.description",
                     "Synthetic: random weights, made by inferstat-worker make-model.  "
                     "What it says means nothing.");
    gguf_writer_uint(writer, "general.file_type", file_types[type]);
    if (tensor_formats[type].block_elements > 1)
        gguf_writer_uint(writer, "general.quantization_version", 2); // of the blocks' layout
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

struct weight {
    char name[NAME_SIZE];
    uint64_t rows, columns;
    double spread; // standard deviation; 0: all ones, a norm
};

// Fills `*out` with tensor `index` of the file; false after the last.  The spreads keep activations
// near 1 through all layers, and scores near 2.
static bool weight_at(const struct synthetic_shape *s, size_t index, struct weight *out)
{
    enum { MODEL = 3, LAYER = 9 }; // tensors of the model as a whole, and of each layer
    const uint64_t kv = (uint64_t)s->dim / s->heads * s->kv_heads;
    const double in = 1.0 / sqrt((double)s->dim);
    const double back = in / sqrt(2.0 * (double)s->layers);
    const struct {
        const char *name;
        uint64_t rows, columns;
        double spread;
    } lines[MODEL + LAYER] = {
        {"token_embd", s->vocabulary, s->dim, 2.0 * in},
        {"output_norm", 1, s->dim, 0.0},
        {"output", s->vocabulary, s->dim, 2.0 * in},
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
    if (s->tied && index >= MODEL - 1)
        index++; // no output matrix
    const size_t layer = index < MODEL ? 0 : (index - MODEL) / LAYER;
    const size_t line = index - layer * LAYER;
    if (layer >= s->layers)
        return false;
    out->rows = lines[line].rows;
    out->columns = lines[line].columns;
    out->spread = lines[line].spread;
    if (line < MODEL)
        (void)snprintf(out->name, sizeof out->name, "%s.weight", lines[line].name);
    else
        (void)snprintf(out->name, sizeof out->name, "blk.%zu.%s.weight", layer, lines[line].name);
    return true;
}

static const struct tensor_format *format_of(const struct weight *weight, enum tensor_type type)
{
    if (weight->spread <= 0.0)
        return &tensor_formats[TENSOR_F32];
    return &tensor_formats[weight->columns % tensor_formats[type].block_elements == 0 ? type
                                                                                      : TENSOR_F16];
}

struct synthetic_measure synthetic_measure(const struct synthetic_shape *shape,
                                           enum tensor_type type)
{
    uint64_t bytes = 0, typed = 0, all = 0;
    struct weight weight;
    for (size_t i = 0; weight_at(shape, i, &weight); i++) {
        const struct tensor_format *format = format_of(&weight, type);
        const uint64_t count = weight.rows * weight.columns;
        bytes += count / format->block_elements * format->block_bytes;
        if (weight.spread <= 0.0)
            continue;
        all += count;
        typed += format == &tensor_formats[type] ? count : 0;
    }
    return (struct synthetic_measure){bytes, (double)typed / (double)all};
}

// The weights of a round, each chunk of them rounded by one thread.
struct rounding {
    const struct tensor_format *format;
    double spread;
    uint64_t *drawn; // two weights each
    void *rounded;
    size_t count;
};

// Makes evenly spread numbers of the standard deviation `spread`, and rounds them.
static void round_chunk(void *context, size_t part, __attribute__((unused)) unsigned int thread)
{
    const struct rounding *r = context;
    const struct tensor_format *format = r->format;
    const size_t first = part * CHUNK;
    const size_t count = r->count - first < CHUNK ? r->count - first : CHUNK;
    const uint64_t *drawn = r->drawn + first / 2;
    float single[CHUNK + 1];                                  // drawings make pairs
    const float width = (float)(r->spread * 2.0 * sqrt(3.0)); // of an even distribution
    for (size_t i = 0; i < count && r->spread > 0.0; i += 2) {
        const uint64_t bits = drawn[i / 2];
        single[i] = ((float)(bits >> 40) * 0x1p-24F - 0.5F) * width;
        single[i + 1] = ((float)(bits >> 8 & 0xffffffU) * 0x1p-24F - 0.5F) * width;
    }
    for (size_t i = 0; i < count && r->spread <= 0.0; i++)
        single[i] = 1.0F;
    unsigned char *rounded = r->rounded;
    tensor_narrow(format, rounded + first / format->block_elements * format->block_bytes, single,
                  count);
}

static enum status write_tensor(struct gguf_writer *writer, const struct weight *weight,
                                struct rounding *r, struct random *random, struct thread_pool *pool,
                                struct error *err)
{
    const uint64_t elements = weight->rows * weight->columns;
    for (uint64_t done = 0; done < elements && !gguf_writer_failed(writer); done += r->count) {
        if (stop_requested())
            return error_set(err, STATUS_CANCELLED, "stopped while writing");
        const uint64_t left = elements - done;
        r->count = left < (uint64_t)ROUND * CHUNK ? (size_t)left : (size_t)ROUND * CHUNK;
        for (size_t i = 0; i < r->count && r->spread > 0.0; i += 2)
            r->drawn[i / 2] = random_next(random);
        thread_pool_run(pool, round_chunk, r, (r->count + CHUNK - 1) / CHUNK);
        gguf_writer_data(writer, r->rounded,
                         r->count / r->format->block_elements * r->format->block_bytes);
    }
    gguf_writer_align(writer);
    return STATUS_OK;
}

static enum status write_weights(struct gguf_writer *writer, const struct synthetic_shape *shape,
                                 enum tensor_type type, uint64_t seed, struct thread_pool *pool,
                                 struct error *err)
{
    struct weight weight;
    for (size_t i = 0; weight_at(shape, i, &weight); i++)
        gguf_writer_tensor(writer, weight.name, format_of(&weight, type)->number, weight.rows,
                           weight.columns);
    gguf_writer_align(writer);

    struct random random;
    random_seed(&random, seed);
    struct rounding rounding = {
        .drawn = calloc((size_t)ROUND * CHUNK / 2, sizeof(uint64_t)),
        .rounded = calloc((size_t)ROUND * CHUNK, sizeof(float)),
    };
    enum status status =
        rounding.drawn && rounding.rounded ? STATUS_OK : error_no_memory(err, "weights");
    for (size_t i = 0; status == STATUS_OK && weight_at(shape, i, &weight); i++) {
        rounding.format = format_of(&weight, type);
        rounding.spread = weight.spread;
        status = write_tensor(writer, &weight, &rounding, &random, pool, err);
    }
    free(rounding.drawn);
    free(rounding.rounded);
    return status;
}

enum status synthetic_write(const char *path, const struct synthetic_shape *shape,
                            enum tensor_type type, uint64_t seed, unsigned int threads,
                            struct error *err)
{
    struct thread_pool *pool = NULL;
    struct gguf_writer *writer = NULL;
    enum status status = thread_pool_new(&pool, threads < ROUND ? threads : ROUND, err);
    if (status == STATUS_OK)
        status = gguf_writer_open(&writer, path, err);
    if (status == STATUS_OK) {
        write_keys(writer, shape, type);
        status = write_vocabulary(writer, shape->vocabulary, err);
        if (status == STATUS_OK)
            status = write_weights(writer, shape, type, seed, pool, err);
        status = gguf_writer_close(writer, status, err);
    }
    thread_pool_free(pool);
    return status;
}
