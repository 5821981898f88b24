// The llama model against a straightforward reference in double precision that
// reads the same file in its own way; loading's refusals.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/device/half.h"
#include "server/workload/llm/gguf_writer.h"
#include "server/workload/llm/llama.h"
#include "tests/support/test.h"
#include "tests/unit/model_files.h"

// ---- A model made ready ---------------------------------------------------

struct ready {
    unsigned char *data;
    size_t size;
    struct source source;
    struct gguf *gguf;
    struct llama_config config;
    struct device *device;
    struct llama *llama;
    struct llama_session *session;
};

static enum status load(struct ready *r, unsigned int threads, bool (*cancelled)(void),
                        struct error *err)
{
    struct transfer_figures transfer;
    source_from_memory(&r->source, r->data, r->size);
    enum status status = gguf_read(&r->gguf, &r->source, err);
    if (status == STATUS_OK)
        status = device_open(&r->device, &(struct device_options){.threads = threads}, err);
    struct gguf_array tokens;
    if (status == STATUS_OK)
        status = gguf_get_array(r->gguf, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, err);
    if (status == STATUS_OK)
        status = llama_config_read(&r->config, r->gguf, tokens.count, err);
    if (status == STATUS_OK)
        status = llama_load(&r->llama, r->device, &r->source, r->gguf, &r->config, cancelled,
                            &transfer, err);
    if (status == STATUS_OK)
        assert_int_equal(transfer.bytes, device_memory_used(r->device));
    return status;
}

static void unload(struct ready *r)
{
    llama_session_free(r->session);
    llama_free(r->llama);
    if (r->device)
        assert_int_equal(device_memory_used(r->device), 0);
    device_close(r->device);
    gguf_free(r->gguf);
}

static struct ready make_ready(const struct synthetic_shape *shape, bool half, unsigned int threads,
                               size_t context)
{
    struct ready r = {0};
    struct error err = {0};
    r.data = model_files_make(shape, half, &r.size);
    if (load(&r, threads, NULL, &err) != STATUS_OK ||
        llama_session_new(&r.session, r.llama, context, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return r;
}

static void end_ready(struct ready *r)
{
    unload(r);
    free(r->data);
}

static float *eval(struct ready *r, const uint32_t *ids, size_t count)
{
    float *logits = calloc(r->config.vocabulary, sizeof *logits);
    struct error err = {0};
    if (llama_session_eval(r->session, ids, count, logits, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return logits;
}

// ---- The reference --------------------------------------------------------

// A tensor of the file as doubles; NULL where there is none.
static double *weights(const struct ready *r, const char *name)
{
    const struct gguf_tensor *t = gguf_find_tensor(r->gguf, name);
    if (!t)
        return NULL;
    size_t n = (size_t)(t->shape[0] * t->shape[1]);
    double *w = calloc(n, sizeof *w);
    for (size_t i = 0; i < n; i++) {
        float single;
        uint16_t half;
        if (t->type->number == GGUF_TENSOR_F32) {
            memcpy(&single, r->data + t->offset + 4 * i, 4);
            w[i] = (double)single;
        } else {
            memcpy(&half, r->data + t->offset + 2 * i, 2);
            w[i] = (double)half_to_float(half);
        }
    }
    return w;
}

static double *layer_weights(const struct ready *r, size_t layer, const char *name)
{
    char full[64];
    (void)snprintf(full, sizeof full, "blk.%zu.%s.weight", layer, name);
    return weights(r, full);
}

static void multiply(double *out, const double *in, double *w, size_t k, size_t m)
{
    for (size_t o = 0; o < m; o++) {
        out[o] = 0;
        for (size_t i = 0; i < k; i++)
            out[o] += in[i] * w[o * k + i];
    }
    free(w);
}

static void norm(double *out, const double *in, double *w, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += in[i] * in[i];
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] / sqrt(sum / (double)n + 1e-5) * w[i];
    free(w);
}

static void turn(double *x, size_t heads, const struct llama_config *c, size_t position)
{
    size_t size = c->head_size;
    for (size_t h = 0; h < heads; h++) {
        for (size_t i = 0; i < c->rope_size; i += 2) {
            double frequency = 1.0 / pow(c->rope_base, (double)i / (double)c->rope_size);
            double angle = (double)position / c->rope_scale * frequency;
            double *pair = x + h * size + i;
            double a = pair[0];
            double b = pair[1];
            pair[0] = a * cos(angle) - b * sin(angle);
            pair[1] = a * sin(angle) + b * cos(angle);
        }
    }
}

enum { REFERENCE_MAX = 512 };

// x[t] and the keys and values of one layer for all positions up to `count`.
static void reference_attention(const struct ready *r, size_t layer, double (*x)[REFERENCE_MAX],
                                size_t count)
{
    const struct llama_config *c = &r->config;
    size_t size = c->head_size;
    size_t kv = c->kv_heads * size;
    double(*keys)[REFERENCE_MAX] = calloc(count, sizeof *keys);
    double(*values)[REFERENCE_MAX] = calloc(count, sizeof *values);
    for (size_t t = 0; t < count; t++) {
        double n[REFERENCE_MAX] = {0};
        double query[REFERENCE_MAX] = {0};
        double mixed[REFERENCE_MAX] = {0};
        norm(n, x[t], layer_weights(r, layer, "attn_norm"), c->dim);
        multiply(query, n, layer_weights(r, layer, "attn_q"), c->dim, c->heads * size);
        multiply(keys[t], n, layer_weights(r, layer, "attn_k"), c->dim, kv);
        multiply(values[t], n, layer_weights(r, layer, "attn_v"), c->dim, kv);
        turn(query, c->heads, c, t);
        turn(keys[t], c->kv_heads, c, t);
        for (size_t h = 0; h < c->heads; h++) {
            size_t shared = h * c->kv_heads / c->heads * size;
            double sum = 0;
            for (size_t s = 0; s <= t; s++) {
                double dot = 0;
                for (size_t i = 0; i < size; i++)
                    dot += query[h * size + i] * keys[s][shared + i];
                double e = exp(dot / sqrt((double)size));
                sum += e;
                for (size_t i = 0; i < size; i++)
                    mixed[h * size + i] += e * values[s][shared + i];
            }
            for (size_t i = 0; i < size; i++)
                mixed[h * size + i] /= sum;
        }
        multiply(n, mixed, layer_weights(r, layer, "attn_output"), c->heads * size, c->dim);
        for (size_t i = 0; i < c->dim; i++)
            x[t][i] += n[i];
    }
    free(keys);
    free(values);
}

static void reference_feed_forward(const struct ready *r, size_t layer, double *x)
{
    const struct llama_config *c = &r->config;
    double n[REFERENCE_MAX] = {0};
    double gate[REFERENCE_MAX] = {0};
    double up[REFERENCE_MAX] = {0};
    norm(n, x, layer_weights(r, layer, "ffn_norm"), c->dim);
    multiply(gate, n, layer_weights(r, layer, "ffn_gate"), c->dim, c->ff);
    multiply(up, n, layer_weights(r, layer, "ffn_up"), c->dim, c->ff);
    for (size_t i = 0; i < c->ff; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    multiply(n, gate, layer_weights(r, layer, "ffn_down"), c->ff, c->dim);
    for (size_t i = 0; i < c->dim; i++)
        x[i] += n[i];
}

// Scores of what follows `ids`.
static double *reference(const struct ready *r, const uint32_t *ids, size_t count)
{
    const struct llama_config *c = &r->config;
    assert_true(c->dim <= REFERENCE_MAX && c->ff <= REFERENCE_MAX);
    double(*x)[REFERENCE_MAX] = calloc(count, sizeof *x);
    double *embedding = weights(r, "token_embd.weight");
    for (size_t t = 0; t < count; t++)
        memcpy(x[t], embedding + ids[t] * c->dim, c->dim * sizeof(double));
    for (size_t layer = 0; layer < c->layers; layer++) {
        reference_attention(r, layer, x, count);
        for (size_t t = 0; t < count; t++)
            reference_feed_forward(r, layer, x[t]);
    }
    double *logits = calloc(c->vocabulary, sizeof *logits);
    double last[REFERENCE_MAX] = {0};
    norm(last, x[count - 1], weights(r, "output_norm.weight"), c->dim);
    double *output = weights(r, "output.weight");
    multiply(logits, last, output ? output : weights(r, "token_embd.weight"), c->dim,
             c->vocabulary);
    free(embedding);
    free(x);
    return logits;
}

// ---- Agreement ------------------------------------------------------------

static const struct synthetic_shape shapes[] = {
    // Own output, shared heads.
    {"shared", 64, 172, 2, 4, 2, 512, 128, false},
    // Tied output, a head for every query, sizes that are no multiple of anything.
    {"odd", 30, 37, 3, 5, 5, 401, 100, true},
    // All queries share one head.
    {"one", 48, 64, 1, 6, 1, 450, 90, false},
};

// Evaluates some tokens, more than one batch of them, and compares all scores.
static void check_scores(struct ready *r, const char *name, uint64_t *seed)
{
    uint32_t ids[70];
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        ids[i] = (uint32_t)(test_random(seed) % r->config.vocabulary);
    double *expected = reference(r, ids, COUNT_OF(ids));
    float *logits = eval(r, ids, COUNT_OF(ids));
    double spread = 0;
    for (size_t i = 0; i < r->config.vocabulary; i++) {
        if (fabs((double)logits[i] - expected[i]) > 1e-4)
            fail_msg("%s: score %zu is %g, not %g", name, i, (double)logits[i], expected[i]);
        spread = fmax(spread, fabs(expected[i]));
    }
    assert_true(spread > 0.5); // all zeroes would agree, too
    free(expected);
    free(logits);
}

static void agrees_with_reference(void **state)
{
    (void)state;
    uint64_t seed = 17;
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        for (int half = 0; half <= 1; half++) {
            struct ready r = make_ready(&shapes[s], half, 1 + (unsigned int)s, 80);
            check_scores(&r, shapes[s].name, &seed);
            end_ready(&r);
        }
    }
}

// Another base, stretched positions, heads of which only a part turns.
static void rotary_variants(void **state)
{
    (void)state;
    static const struct {
        double base, scale;
        size_t size;
    } cases[] = {{500.0, 1.0, 16}, {10000.0, 4.0, 16}, {10000.0, 0.5, 6}};
    uint64_t seed = 18;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ready r = make_ready(&shapes[0], false, 1, 80);
        llama_session_free(r.session);
        llama_free(r.llama);
        r.config.rope_base = cases[i].base;
        r.config.rope_scale = cases[i].scale;
        r.config.rope_size = cases[i].size;
        struct transfer_figures transfer;
        assert_int_equal(
            llama_load(&r.llama, r.device, &r.source, r.gguf, &r.config, NULL, &transfer, NULL),
            STATUS_OK);
        assert_int_equal(llama_session_new(&r.session, r.llama, 80, NULL), STATUS_OK);
        check_scores(&r, "rotary", &seed);
        end_ready(&r);
    }
}

// One by one, in any batches, with any number of threads: the same bits.
static void batches_and_threads_change_nothing(void **state)
{
    (void)state;
    static const size_t splits[][4] = {{70}, {1, 69}, {64, 6}, {63, 2, 5}, {30, 30, 9, 1}};
    uint32_t ids[70];
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        ids[i] = (uint32_t)(i * 7 % 500);
    float *first = NULL;
    for (unsigned int threads = 1; threads <= 4; threads += 3) {
        struct ready r = make_ready(&shapes[0], threads == 1, threads, 70);
        if (threads == 1) { // F16 alone first: its result is not compared with F32's
            free(eval(&r, ids, COUNT_OF(ids)));
            end_ready(&r);
            r = make_ready(&shapes[0], false, threads, 70);
        }
        for (size_t s = 0; s < COUNT_OF(splits); s++) {
            float *logits = NULL;
            size_t done = 0;
            llama_session_reset(r.session);
            for (size_t i = 0; i < COUNT_OF(splits[s]) && splits[s][i]; i++) {
                free(logits);
                logits = eval(&r, ids + done, splits[s][i]);
                done += splits[s][i];
                assert_int_equal(llama_session_position(r.session), done);
            }
            if (!first) {
                first = logits;
                continue;
            }
            assert_memory_equal(logits, first, r.config.vocabulary * sizeof *logits);
            free(logits);
        }
        end_ready(&r);
    }
    free(first);
}

static void context_is_a_limit(void **state)
{
    (void)state;
    struct ready r = make_ready(&model_files_smallest, false, 1, 5);
    struct error err = {0};
    uint32_t ids[6] = {0};
    float logits[400];
    assert_int_equal(llama_session_context(r.session), 5);
    assert_int_equal(llama_session_eval(r.session, ids, 6, logits, &err), STATUS_FULL);
    assert_int_equal(llama_session_eval(r.session, ids, 0, logits, &err), STATUS_FULL);
    assert_int_equal(llama_session_position(r.session), 0);
    assert_int_equal(llama_session_eval(r.session, ids, 5, logits, &err), STATUS_OK);
    assert_int_equal(llama_session_eval(r.session, ids, 1, logits, &err), STATUS_FULL);
    llama_session_reset(r.session);
    ids[0] = 400;
    assert_int_equal(llama_session_eval(r.session, ids, 1, logits, &err), STATUS_INVALID);
    struct llama_session *session = NULL;
    assert_int_equal(llama_session_new(&session, r.llama, 0, &err), STATUS_INVALID);
    assert_int_equal(llama_session_new(&session, r.llama, 17, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "1..16"));
    end_ready(&r);
}

// Small files whose keys promise giants: the session is refused before it costs
// anything, and nothing is allocated by the length of the context alone.
static void sessions_of_absurd_size(void **state)
{
    (void)state;
    static const struct {
        struct synthetic_shape shape;
        size_t context;
        const char *says; // NULL: it is made
    } cases[] = {
        {{"wide", 2, 300000, 1, 1, 1, 400, 64, false},
         64,
         "a context of 64 needs 146.5 MB, but a model of 6.9 MB"},
        {{"long", 8, 12, 1, 2, 1, 400, 1 << 24, false}, 1 << 24, "needs 512.0 MB"},
        {{"long", 8, 12, 1, 2, 1, 400, 1 << 24, false}, 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ready r = {0};
        struct error err = {0};
        r.data = model_files_make(&cases[i].shape, false, &r.size);
        assert_int_equal(load(&r, 1, NULL, &err), STATUS_OK);
        int64_t before = device_memory_used(r.device);
        size_t context = cases[i].context ? cases[i].context : llama_default_context(r.llama);
        enum status status = llama_session_new(&r.session, r.llama, context, &err);
        assert_int_equal(status, cases[i].says ? STATUS_NOMEM : STATUS_OK);
        if (cases[i].says) {
            if (!strstr(err.text, cases[i].says))
                fail_msg("%s", err.text);
            assert_int_equal(device_memory_used(r.device), before);
        } else {
            assert_int_equal(context, LLAMA_CONTEXT_DEFAULT);
            assert_true(device_memory_used(r.device) - before < LLAMA_SESSION_BASE);
        }
        end_ready(&r);
    }
}

static unsigned int polls;

static bool stop_at_second_layer(void)
{
    return ++polls == 3;
}

// A long prompt ends where a stop is asked for, and can be computed again.
static void computing_can_be_cancelled(void **state)
{
    (void)state;
    struct ready r = make_ready(&shapes[0], false, 1, 128);
    uint32_t ids[120] = {0};
    struct error err = {0};
    float *logits = calloc(r.config.vocabulary, sizeof *logits);
    llama_session_set_cancelled(r.session, stop_at_second_layer);
    polls = 0;
    assert_int_equal(llama_session_eval(r.session, ids, COUNT_OF(ids), logits, &err),
                     STATUS_CANCELLED);
    assert_int_equal(llama_session_position(r.session), 64); // two layers of the first batch
    llama_session_set_cancelled(r.session, NULL);
    llama_session_reset(r.session);
    free(logits);
    logits = eval(&r, ids, COUNT_OF(ids));
    free(logits);
    end_ready(&r);
}

// What it says a position takes is what one more position in the context takes.
static void tells_the_size_of_its_cache(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct ready r = make_ready(&shapes[i], true, 1, 70);
        const int64_t before = device_memory_used(r.device);
        llama_session_free(r.session);
        struct error err = {0};
        assert_int_equal(llama_session_new(&r.session, r.llama, 87, &err), STATUS_OK);
        assert_int_equal(device_memory_used(r.device) - before,
                         17 * (int64_t)llama_kv_bytes_per_token(r.llama));
        end_ready(&r);
    }
}

static void describes_itself(void **state)
{
    (void)state;
    struct ready r = make_ready(&shapes[1], true, 1, 10); // tied
    uint64_t d = 30;
    uint64_t expected = 401 * d + d + 3 * (d + 4 * d * d + d + 3 * 37 * d);
    assert_int_equal(llama_parameters(r.llama), expected);
    assert_string_equal(llama_quantisation(r.llama), "F16");
    end_ready(&r);
    r = make_ready(&shapes[0], false, 1, 10);
    assert_string_equal(llama_quantisation(r.llama), "F32");
    end_ready(&r);
    size_t count;
    const struct synthetic_shape *all = synthetic_shapes(&count);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(synthetic_find(all[i].name), &all[i]);
    assert_null(synthetic_find("15"));
}

// The same arguments give the same file, another seed another.
static void synthetic_models_repeat(void **state)
{
    (void)state;
    size_t a_size;
    size_t b_size;
    unsigned char *a = model_files_make(&model_files_smallest, true, &a_size);
    unsigned char *b = model_files_make(&model_files_smallest, true, &b_size);
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a, b, a_size);
    assert_non_null(memmem(a, a_size, "Synthetic: random weights", 25));
    free(b);
    const char *path = model_files_path("other.gguf");
    assert_int_equal(synthetic_write(path, &model_files_smallest, true, 12, NULL), STATUS_OK);
    FILE *file = fopen(path, "rb");
    b = malloc(a_size);
    assert_int_equal(fread(b, 1, a_size, file), a_size);
    assert_int_not_equal(memcmp(a, b, a_size), 0);
    (void)fclose(file);
    free(a);
    free(b);
}

// ---- Refusals -------------------------------------------------------------

// A small model with one thing replaced, and what loading it says.
struct change {
    const char *key; // whose value is replaced, or whose name where `rename` is set
    uint64_t value;
    size_t value_size; // 0: a float in `real`
    float real;
    const char *rename; // of the same length
    enum status status;
    const char *says;
};

#define UINT_KEY(key, value, status, says)                                                         \
    {                                                                                              \
        key, value, 4, 0, NULL, status, says                                                       \
    }
#define FLOAT_KEY(key, real, status, says)                                                         \
    {                                                                                              \
        key, 0, 0, real, NULL, status, says                                                        \
    }
#define RENAME(key, to, status, says)                                                              \
    {                                                                                              \
        key, 0, 0, 0, to, status, says                                                             \
    }

static const struct change changes[] = {
    RENAME("general.architecture", "general.architectur_", STATUS_NOT_FOUND,
           "'general.architecture' is missing"),
    RENAME("llama.context_length", "llama.context_lengt_", STATUS_NOT_FOUND, "context_length"),
    RENAME("llama.embedding_length", "llama.embedding_lengt_", STATUS_NOT_FOUND, "embedding"),
    RENAME("llama.feed_forward_length", "llama.feed_forward_lengt_", STATUS_NOT_FOUND, "feed_"),
    RENAME("llama.block_count", "llama.block_coun_", STATUS_NOT_FOUND, "block_count"),
    RENAME("llama.attention.head_count", "llama.attention.head_coun_", STATUS_NOT_FOUND,
           "head_count"),
    RENAME("llama.attention.layer_norm_rms_epsilon", "llama.attention.layer_norm_rms_epsilo_",
           STATUS_NOT_FOUND, "epsilon"),
    // Without it every query has a key of its own, and those are not in the file.
    RENAME("llama.attention.head_count_kv", "llama.attention.head_count_k_", STATUS_CORRUPT,
           "attn_k"),
    UINT_KEY("llama.context_length", 0, STATUS_CORRUPT, "context_length"),
    UINT_KEY("llama.context_length", UINT32_MAX, STATUS_CORRUPT, "context_length"),
    UINT_KEY("llama.embedding_length", 0, STATUS_CORRUPT, "embedding_length"),
    UINT_KEY("llama.embedding_length", 10, STATUS_CORRUPT, "rotary|token_embd"),
    UINT_KEY("llama.embedding_length", 7, STATUS_CORRUPT, "cut into"),
    UINT_KEY("llama.embedding_length", 1 << 20, STATUS_CORRUPT, "heads of 524288"),
    UINT_KEY("llama.embedding_length", UINT32_MAX, STATUS_CORRUPT, "embedding_length"),
    UINT_KEY("llama.feed_forward_length", 13, STATUS_CORRUPT, "ffn_"),
    UINT_KEY("llama.block_count", 2, STATUS_NOT_FOUND, "'blk.1.attn_norm.weight' is missing"),
    UINT_KEY("llama.block_count", 4096, STATUS_NOT_FOUND, "missing"),
    UINT_KEY("llama.block_count", 1000000, STATUS_CORRUPT, "block_count"),
    UINT_KEY("llama.attention.head_count", 0, STATUS_CORRUPT, "head_count"),
    UINT_KEY("llama.attention.head_count", 3, STATUS_CORRUPT, "cut into|share"),
    UINT_KEY("llama.attention.head_count", 8, STATUS_CORRUPT, "rotary"),
    UINT_KEY("llama.attention.head_count", 65536, STATUS_CORRUPT, "cut into"),
    UINT_KEY("llama.attention.head_count_kv", 3, STATUS_CORRUPT, "cannot share"),
    UINT_KEY("llama.attention.head_count_kv", 2, STATUS_CORRUPT, "attn_k"),
    UINT_KEY("llama.rope.dimension_count", 3, STATUS_CORRUPT, "rotary"),
    UINT_KEY("llama.rope.dimension_count", 6, STATUS_CORRUPT, "rotary"),
    UINT_KEY("llama.rope.dimension_count", 2, STATUS_OK, NULL), // only part of a head turns
    FLOAT_KEY("llama.attention.layer_norm_rms_epsilon", -1.0F, STATUS_CORRUPT, "epsilon"),
    FLOAT_KEY("llama.attention.layer_norm_rms_epsilon", NAN, STATUS_CORRUPT, "epsilon"),
    FLOAT_KEY("llama.rope.freq_base", 0.0F, STATUS_CORRUPT, "freq_base"),
    FLOAT_KEY("llama.rope.freq_base", INFINITY, STATUS_CORRUPT, "freq_base"),
    FLOAT_KEY("llama.rope.freq_base", 500000.0F, STATUS_OK, NULL),
    RENAME("output_norm.weight", "output_norm.weigh_", STATUS_UNSUPPORTED, "'output_norm.weigh_'"),
    RENAME("output.weight", "outpu_.weight", STATUS_UNSUPPORTED, "'outpu_.weight'"),
    RENAME("blk.0.ffn_up.weight", "blk.1.ffn_up.weight", STATUS_UNSUPPORTED, "1 layers"),
    RENAME("blk.0.ffn_up.weight", "blk.0.ffn_up.scales", STATUS_UNSUPPORTED, "ffn_up.scales"),
};

static void apply(unsigned char *data, size_t size, const struct change *c)
{
    size_t value = model_files_find_key(data, size, c->key);
    if (c->rename) {
        size_t length = strlen(c->key);
        assert_int_equal(strlen(c->rename), length);
        memcpy(data + value - 4 - length, c->rename, length);
    } else if (c->value_size) {
        memcpy(data + value, &c->value, c->value_size);
    } else {
        memcpy(data + value, &c->real, sizeof c->real);
    }
}

static bool says_one_of(const char *text, const char *alternatives)
{
    char copy[256];
    (void)snprintf(copy, sizeof copy, "%s", alternatives);
    for (char *rest = copy, *one; (one = strsep(&rest, "|"));)
        if (strstr(text, one))
            return true;
    return false;
}

static void refusals(void **state)
{
    (void)state;
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct ready r = {.data = malloc(size), .size = size};
        memcpy(r.data, data, size);
        apply(r.data, size, &changes[i]);
        struct error err = {0};
        enum status status = load(&r, 1, NULL, &err);
        if (status != changes[i].status ||
            (changes[i].says && !says_one_of(err.text, changes[i].says)))
            fail_msg("%s (%zu): status %d, %s", changes[i].key, i, (int)status, err.text);
        end_ready(&r);
    }
    free(data);
}

// Keys that not every model has.
static void optional_keys(void **state)
{
    (void)state;
    static const struct {
        const char *text_key, *text; // NULL: none
        const char *uint_key;
        uint32_t number;
        const char *float_key;
        float real;
        enum status status;
        const char *says;
    } cases[] = {
        {NULL, NULL, NULL, 0, NULL, 0, STATUS_OK, NULL},
        {"llama.rope.scaling.type", "none", NULL, 0, NULL, 0, STATUS_OK, NULL},
        {"llama.rope.scaling.type", "yarn", NULL, 0, NULL, 0, STATUS_UNSUPPORTED, "'yarn'"},
        {"llama.rope.scaling.type", "linear", NULL, 0, NULL, 0, STATUS_NOT_FOUND, "factor"},
        {"llama.rope.scaling.type", "linear", NULL, 0, "llama.rope.scaling.factor", 4, STATUS_OK,
         NULL},
        {"llama.rope.scaling.type", "linear", NULL, 0, "llama.rope.scaling.factor", 0,
         STATUS_CORRUPT, "factor"},
        {NULL, NULL, "llama.expert_count", 0, NULL, 0, STATUS_OK, NULL},
        {NULL, NULL, "llama.expert_count", 8, NULL, 0, STATUS_UNSUPPORTED, "8 experts"},
        {NULL, NULL, "llama.attention.key_length", 16, NULL, 0, STATUS_OK, NULL},
        {NULL, NULL, "llama.attention.value_length", 6, NULL, 0, STATUS_UNSUPPORTED, "6 values"},
        {NULL, NULL, "llama.attention.key_length", 262144, NULL, 0, STATUS_CORRUPT, "key_length"},
        {NULL, NULL, "llama.attention.value_length", 4, NULL, 0, STATUS_OK, NULL},
        {"llama.attention.key_length", "4", NULL, 0, NULL, 0, STATUS_CORRUPT, "key_length"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gguf_writer *writer = NULL;
        const char *path = model_files_path("keys.gguf");
        assert_int_equal(gguf_writer_open(&writer, path, NULL), STATUS_OK);
        gguf_writer_text(writer, "general.architecture", "llama");
        gguf_writer_uint(writer, "llama.context_length", 16);
        gguf_writer_uint(writer, "llama.embedding_length", 8);
        gguf_writer_uint(writer, "llama.feed_forward_length", 12);
        gguf_writer_uint(writer, "llama.block_count", 1);
        gguf_writer_uint(writer, "llama.attention.head_count", 2);
        gguf_writer_float(writer, "llama.attention.layer_norm_rms_epsilon", 1e-6F);
        if (cases[i].text_key)
            gguf_writer_text(writer, cases[i].text_key, cases[i].text);
        if (cases[i].uint_key)
            gguf_writer_uint(writer, cases[i].uint_key, cases[i].number);
        if (cases[i].float_key)
            gguf_writer_float(writer, cases[i].float_key, cases[i].real);
        assert_int_equal(gguf_writer_commit(writer, NULL), STATUS_OK);

        struct source source;
        struct gguf *gguf = NULL;
        struct llama_config config;
        struct error err = {0};
        assert_int_equal(source_open(&source, path, NULL), STATUS_OK);
        assert_int_equal(gguf_read(&gguf, &source, NULL), STATUS_OK);
        enum status status = llama_config_read(&config, gguf, 400, &err);
        if (status != cases[i].status || (cases[i].says && !strstr(err.text, cases[i].says)))
            fail_msg("case %zu: status %d, %s", i, (int)status, err.text);
        if (status == STATUS_OK) {
            assert_int_equal(config.kv_heads, 2);
            assert_int_equal(config.head_size, i == 8 ? 16 : 4);
            assert_int_equal(config.rope_size, config.head_size);
            assert_true(config.rope_base == 10000.0);
            assert_true(config.rope_scale == (i == 4 ? 4.0 : 1.0));
        }
        gguf_free(gguf);
        source_close(&source);
    }
}

// A type that is known but cannot be computed with is named.
static void types_that_are_not_supported(void **state)
{
    (void)state;
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    // The embedding of 400 x 8 is described as BF16: half as many bytes.
    size_t at = model_files_find_tensor(data, size, "token_embd.weight") + 4 + 16;
    memcpy(data + at, &(uint32_t){30}, 4);
    struct ready r = {.data = data, .size = size};
    struct error err = {0};
    assert_int_equal(load(&r, 1, NULL, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'token_embd.weight' is of type BF16"));
    unload(&r);
    memcpy(data + at, &(uint32_t){0}, 4);
    at = model_files_find_tensor(data, size, "output_norm.weight") + 4 + 8;
    memcpy(data + at, &(uint32_t){1}, 4);
    memset(&r, 0, sizeof r);
    r.data = data;
    r.size = size;
    assert_int_equal(load(&r, 1, NULL, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'output_norm.weight' is of type F16: only F32"));
    end_ready(&r);
}

static unsigned int asked;

static bool stop_at_fifth(void)
{
    return ++asked == 5;
}

static void can_be_cancelled(void **state)
{
    (void)state;
    struct ready r = {0};
    struct error err = {0};
    r.data = model_files_make(&model_files_smallest, false, &r.size);
    asked = 0;
    assert_int_equal(load(&r, 1, stop_at_fifth, &err), STATUS_CANCELLED);
    assert_int_equal(asked, 5);
    assert_null(r.llama);
    end_ready(&r);
}

// The file shrinks after its header was read: an error, whatever the tensor.
static void shrinks_while_loading(void **state)
{
    (void)state;
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    const char *path = model_files_write("shrinking.gguf", data, size);
    struct ready r = {.data = data, .size = size};
    struct error err = {0};
    struct transfer_figures transfer;
    assert_int_equal(source_open(&r.source, path, &err), STATUS_OK);
    assert_int_equal(gguf_read(&r.gguf, &r.source, &err), STATUS_OK);
    assert_int_equal(llama_config_read(&r.config, r.gguf, 400, &err), STATUS_OK);
    assert_int_equal(device_open(&r.device, &(struct device_options){.threads = 1}, &err),
                     STATUS_OK);
    assert_int_equal(truncate(path, (off_t)size - 200), 0);
    assert_int_equal(
        llama_load(&r.llama, r.device, &r.source, r.gguf, &r.config, NULL, &transfer, &err),
        STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "tensor 'blk.0.ffn_down.weight': the file ends at byte"));
    source_close(&r.source);
    end_ready(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_reference),
        cmocka_unit_test(rotary_variants),
        cmocka_unit_test(batches_and_threads_change_nothing),
        cmocka_unit_test(context_is_a_limit),
        cmocka_unit_test(sessions_of_absurd_size),
        cmocka_unit_test(computing_can_be_cancelled),
        cmocka_unit_test(tells_the_size_of_its_cache),
        cmocka_unit_test(describes_itself),
        cmocka_unit_test(synthetic_models_repeat),
        cmocka_unit_test(refusals),
        cmocka_unit_test(optional_keys),
        cmocka_unit_test(types_that_are_not_supported),
        cmocka_unit_test(can_be_cancelled),
        cmocka_unit_test(shrinks_while_loading),
    };
    return cmocka_run_group_tests(tests, model_files_setup, model_files_teardown);
}
