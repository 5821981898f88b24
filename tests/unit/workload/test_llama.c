// The llama model against a straightforward reference in double precision that
// reads the same file in its own way.
#include <math.h>

#include "server/device/half.h"
#include "server/workload/llm/llama.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/workload/llama_fixture.h"
#include "tests/unit/workload/model_files.h"

static float *eval(struct ready *r, const uint32_t *ids, size_t count)
{
    float *logits = calloc(r->config.vocabulary, sizeof *logits);
    struct error err = {0};
    expect_ok(llama_session_eval(r->session, ids, count, logits, &err), &err);
    return logits;
}

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
        for (size_t i = 0; i < c->rope.size; i += 2) {
            double frequency = 1.0 / pow(c->rope.base, (double)i / (double)c->rope.size);
            double angle = (double)position / c->rope.factor * frequency;
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

TEST_CASE(agrees_with_reference)
{
    uint64_t seed = 17;
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        for (int half = 0; half <= 1; half++) {
            struct ready r = llama_ready_make(&shapes[s], half, 1 + (unsigned int)s, 80);
            check_scores(&r, shapes[s].name, &seed);
            llama_ready_end(&r);
        }
    }
}

// Another base, stretched positions, heads of which only a part turns.
TEST_CASE(rotary_variants)
{
    static const struct {
        double base, scale;
        size_t size;
    } cases[] = {{500.0, 1.0, 16}, {10000.0, 4.0, 16}, {10000.0, 0.5, 6}};
    uint64_t seed = 18;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ready r = llama_ready_make(&shapes[0], false, 1, 80);
        llama_session_free(r.session);
        llama_free(r.llama);
        r.config.rope.base = cases[i].base;
        r.config.rope.factor = cases[i].scale;
        r.config.rope.size = cases[i].size;
        struct transfer_figures transfer;
        assert_int_equal(
            llama_load(&r.llama, r.device, &r.source, r.gguf, &r.config, NULL, &transfer, NULL),
            STATUS_OK);
        assert_int_equal(llama_session_new(&r.session, r.llama, 80, NULL), STATUS_OK);
        check_scores(&r, "rotary", &seed);
        llama_ready_end(&r);
    }
}

// One by one, in any batches, with any number of threads: the same bits.
TEST_CASE(batches_and_threads_change_nothing)
{
    static const size_t splits[][4] = {{70}, {1, 69}, {64, 6}, {63, 2, 5}, {30, 30, 9, 1}};
    uint32_t ids[70];
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        ids[i] = (uint32_t)(i * 7 % 500);
    float *first = NULL;
    for (unsigned int threads = 1; threads <= 4; threads += 3) {
        struct ready r = llama_ready_make(&shapes[0], threads == 1, threads, 70);
        if (threads == 1) { // F16 alone first: its result is not compared with F32's
            free(eval(&r, ids, COUNT_OF(ids)));
            llama_ready_end(&r);
            r = llama_ready_make(&shapes[0], false, threads, 70);
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
        llama_ready_end(&r);
    }
    free(first);
}

TEST_CASE(context_is_a_limit)
{
    struct ready r = llama_ready_make(&model_files_smallest, false, 1, 5);
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
    llama_ready_end(&r);
}

// Small files whose keys promise giants: the session is refused before it costs
// anything, and nothing is allocated by the length of the context alone.
TEST_CASE(sessions_of_absurd_size)
{
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
        assert_int_equal(llama_ready_load(&r, 1, NULL, &err), STATUS_OK);
        int64_t before = device_memory_used(r.device);
        size_t context = cases[i].context ? cases[i].context : llama_default_context(&r.config);
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
        llama_ready_end(&r);
    }
}

static unsigned int polls;

static bool stop_at_second_layer(void)
{
    return ++polls == 3;
}

// A long prompt ends where a stop is asked for, and can be computed again.
TEST_CASE(computing_can_be_cancelled)
{
    struct ready r = llama_ready_make(&shapes[0], false, 1, 128);
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
    llama_ready_end(&r);
}

// What it says a position takes is what one more position in the context takes.
TEST_CASE(tells_the_size_of_its_cache)
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct ready r = llama_ready_make(&shapes[i], true, 1, 70);
        const int64_t before = device_memory_used(r.device);
        llama_session_free(r.session);
        struct error err = {0};
        assert_int_equal(llama_session_new(&r.session, r.llama, 87, &err), STATUS_OK);
        assert_int_equal(device_memory_used(r.device) - before,
                         17 * (int64_t)llama_kv_bytes_per_token(r.llama));
        llama_ready_end(&r);
    }
}

TEST_CASE(describes_itself)
{
    struct ready r = llama_ready_make(&shapes[1], true, 1, 10); // tied
    uint64_t d = 30;
    uint64_t expected = 401 * d + d + 3 * (d + 4 * d * d + d + 3 * 37 * d);
    assert_int_equal(llama_parameters(r.llama), expected);
    assert_string_equal(llama_quantisation(r.llama), "F16");
    llama_ready_end(&r);
    r = llama_ready_make(&shapes[0], false, 1, 10);
    assert_string_equal(llama_quantisation(r.llama), "F32");
    // A token reads all weights but those of the embedding, which is not the output matrix here.
    const struct llama_config *config = llama_get_config(r.llama);
    const uint64_t read =
        llama_parameters(r.llama) - (uint64_t)config->vocabulary * (uint64_t)config->dim;
    assert_int_equal(llama_weight_bytes_per_token(r.llama), 4 * read);
    llama_ready_end(&r);
    r = llama_ready_make(&shapes[1], false, 1, 10);
    assert_int_equal(llama_weight_bytes_per_token(r.llama), 4 * llama_parameters(r.llama));
    llama_ready_end(&r);
}

// The same arguments give the same file, another seed another.
TEST_CASE(synthetic_models_repeat)
{
    size_t a_size;
    size_t b_size;
    unsigned char *a = model_files_make(&model_files_smallest, true, &a_size);
    unsigned char *b = model_files_make(&model_files_smallest, true, &b_size);
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a, b, a_size);
    assert_non_null(memmem(a, a_size, "Synthetic: random weights", 25));
    free(b);
    const char *path = model_files_path("other.gguf");
    assert_int_equal(synthetic_write(path, &model_files_smallest, TENSOR_F16, 12, 1, NULL),
                     STATUS_OK);
    b = read_file(path, &b_size);
    assert_int_equal(b_size, a_size);
    assert_int_not_equal(memcmp(a, b, a_size), 0);
    free(a);
    free(b);
}
TEST_MAIN_ONCE(model_files_setup, model_files_teardown, agrees_with_reference, rotary_variants,
               batches_and_threads_change_nothing, context_is_a_limit, sessions_of_absurd_size,
               computing_can_be_cancelled, tells_the_size_of_its_cache, describes_itself,
               synthetic_models_repeat)
