// Tokenizers and models against ids and scores another program computed: the
// folder INFERSTAT_TEST_MODELS.
#include <math.h>

#include "server/workload/llm/llama.h"
#include "server/workload/llm/token_sampler.h"
#include "server/workload/llm/tokenizer/tokenizer.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/workload/vectors.h"

#ifdef VECTORS_ON_CUDA
#define DEVICE "cuda"
#else
#define DEVICE "cpu"
#endif

// How much of the generations is compared: all of it, but where a device is emulated.
#ifdef VECTORS_BRIEF
enum { THREADS_MOST = 1, CASES_MOST = 1, IDS_MOST = 6 };
#else
enum { THREADS_MOST = 3, CASES_MOST = 5, IDS_MOST = 64 };
#endif

static const char *path_or_skip(const char *name)
{
    const char *path = vectors_path(name);
    if (!path) {
        print_message("INFERSTAT_TEST_MODELS is not set: skipped\n");
        skip();
    }
    return path;
}

static struct gguf *read_gguf(const char *path, struct byte_source *source)
{
    struct error err = {0};
    struct gguf *gguf = NULL;
    if (byte_source_open(source, path, &err) != STATUS_OK ||
        gguf_read(&gguf, source, NULL, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    return gguf;
}

static struct tokenizer *read_tokenizer(const char *path)
{
    struct byte_source source;
    struct error err = {0};
    struct tokenizer *tokenizer = NULL;
    struct gguf *gguf = read_gguf(path, &source);
    if (tokenizer_new(&tokenizer, gguf, NULL, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    gguf_free(gguf);
    byte_source_close(&source);
    return tokenizer;
}

static double number_at(const json_t *array, size_t index)
{
    return json_number_value(json_array_get(array, index));
}

static void check_ids(const struct tokenizer *tokenizer, const char *text, size_t size,
                      struct encode_options options, const json_t *expected)
{
    struct token_list list;
    struct error err = {0};
    enum status status = tokenizer_encode(tokenizer, text, size, options, &list, &err);
    if (json_is_null(expected)) {
        assert_int_not_equal(status, STATUS_OK);
        return;
    }
    if (status != STATUS_OK)
        fail_msg("'%s': %s", text, err.text);
    bool same = list.count == json_array_size(expected);
    for (size_t i = 0; same && i < list.count; i++)
        same = list.ids[i] == number_at(expected, i);
    if (!same)
        fail_msg("'%.*s' has other ids than expected", (int)size, text);
    free(list.ids);
}

// The ids as text, without the space put before it.
static void check_text(const struct tokenizer *tokenizer, const json_t *ids, const json_t *expected)
{
    if (json_is_null(ids) || json_is_null(expected))
        return;
    char *text = calloc(1, 4096 + TOKEN_SIZE_MAX);
    size_t size = 0;
    for (size_t i = 0; i < json_array_size(ids); i++)
        size += tokenizer_piece(tokenizer, (uint32_t)number_at(ids, i), text + size);
    size_t start = size == json_string_length(expected) + 1 && text[0] == ' ';
    assert_int_equal(size - start, json_string_length(expected));
    assert_memory_equal(text + start, json_string_value(expected), size - start);
    free(text);
}

static void check_tokenizer(const char *model, const char *vectors)
{
    struct tokenizer *tokenizer = read_tokenizer(path_or_skip(model));
    json_t *json = vectors_read(path_or_skip(vectors));
    assert_int_equal(tokenizer_count(tokenizer),
                     (uint32_t)json_number_value(vectors_get(json, "n_vocab")));
    const json_t *cases = vectors_get(json, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        size_t size;
        char *text = vectors_hex(vectors_get(c, "hex"), &size);
        check_ids(tokenizer, text, size, (struct encode_options){0}, vectors_get(c, "ids"));
        check_ids(tokenizer, text, size, (struct encode_options){.add_special = true},
                  vectors_get(c, "ids_add_special"));
        check_ids(tokenizer, text, size, (struct encode_options){.parse_special = true},
                  vectors_get(c, "ids_parse_special"));
        check_text(tokenizer, vectors_get(c, "ids"), vectors_get(c, "detok"));
        free(text);
    }
    assert_int_equal(json_array_size(cases), 39);
    json_decref(json);
    tokenizer_free(tokenizer);
}

TEST_CASE(stories260k_tokenizer)
{
    check_tokenizer("stories260K.gguf", "tokenizer/stories260K.json");
}

TEST_CASE(stories3m_tokenizer)
{
    check_tokenizer("stories3M-q8_0.gguf", "tokenizer/stories3M.json");
}

TEST_CASE(llama_spm_tokenizer)
{
    check_tokenizer("vocab/ggml-vocab-llama-spm.gguf", "tokenizer/llama-spm.json");
}

TEST_CASE(gpt_2_tokenizer)
{
    check_tokenizer("vocab/ggml-vocab-gpt-2.gguf", "tokenizer/gpt-2.json");
}

TEST_CASE(deepseek_coder_tokenizer)
{
    check_tokenizer("vocab/ggml-vocab-deepseek-coder.gguf", "tokenizer/deepseek-coder.json");
}

// Inputs, each ended by a divider; outputs one line each.
static void check_inputs(const char *model)
{
    static const char divider[] = "\n__ggml_vocab_test__\n";
    char path[64];
    struct tokenizer *tokenizer = read_tokenizer(path_or_skip(model));
    size_t in_size;
    size_t out_size;
    (void)snprintf(path, sizeof path, "%s.inp", model);
    char *in = read_file(path_or_skip(path), &in_size);
    (void)snprintf(path, sizeof path, "%s.out", model);
    char *out = read_file(path_or_skip(path), &out_size);

    size_t cases = 0;
    char *line = out;
    for (char *end, *text = in; (end = strstr(text, divider)); cases++) {
        size_t size = (size_t)(end - text);
        struct token_list list;
        assert_int_equal(
            tokenizer_encode(tokenizer, text, size, (struct encode_options){0}, &list, NULL),
            STATUS_OK);
        char *line_end = strchr(line, '\n');
        if (line_end)
            *line_end = '\0';
        for (size_t i = 0; i < list.count; i++)
            assert_int_equal(strtoul(line, &line, 10), list.ids[i]);
        assert_int_equal(strspn(line, " "), strlen(line));
        free(list.ids);
        line = line_end ? line_end + 1 : line + strlen(line);
        text = end + strlen(divider);
    }
    assert_int_equal(cases, 46);
    free(in);
    free(out);
    tokenizer_free(tokenizer);
}

TEST_CASE(llama_spm_inputs)
{
    check_inputs("vocab/ggml-vocab-llama-spm.gguf");
}

TEST_CASE(gpt_2_inputs)
{
    check_inputs("vocab/ggml-vocab-gpt-2.gguf");
}

TEST_CASE(deepseek_coder_inputs)
{
    check_inputs("vocab/ggml-vocab-deepseek-coder.gguf");
}

// A vocabulary alone has no weights to run.
TEST_CASE(vocabulary_without_weights)
{
    struct byte_source source;
    struct gguf *gguf = read_gguf(path_or_skip("vocab/ggml-vocab-llama-spm.gguf"), &source);
    assert_int_equal(gguf_tensor_count(gguf), 0);
    gguf_free(gguf);
    byte_source_close(&source);
}

struct running {
    struct byte_source source;
    struct gguf *gguf;
    struct tokenizer *tokenizer;
    struct device *device;
    struct llama *llama;
    struct llama_session *session;
};

static struct running start_model(const char *path, unsigned int threads)
{
    struct running r = {0};
    struct error err = {0};
    struct llama_config config;
    struct transfer_figures transfer;
    r.gguf = read_gguf(path, &r.source);
    enum status status = tokenizer_new(&r.tokenizer, r.gguf, NULL, &err);
    if (status == STATUS_OK)
        status = llama_config_read(&config, r.gguf, tokenizer_count(r.tokenizer), &err);
    if (status == STATUS_OK)
        status = device_open(&r.device,
                             &(struct device_options){.spec = DEVICE, .threads = threads}, &err);
    if (status == STATUS_OK)
        status = llama_load(&r.llama, r.device, &r.source, r.gguf, &config, NULL, &transfer, &err);
    if (status == STATUS_OK)
        status = llama_session_new(&r.session, r.llama, config.context, &err);
    if (status != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    return r;
}

static void stop_model(struct running *r)
{
    llama_session_free(r->session);
    llama_free(r->llama);
    assert_int_equal(device_memory_used(r->device), 0);
    device_close(r->device);
    tokenizer_free(r->tokenizer);
    gguf_free(r->gguf);
    byte_source_close(&r->source);
}

// How far scores may be from another program's, and the margin of the best token below which the
// next one may differ; larger where activations are rounded to 8 bits (block-quantised weights).
struct tolerance {
    double scores, margin;
};

static const struct tolerance plain = {0.01, 0.002};

static void check_scores(const float *logits, const json_t *top, double most)
{
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *pair = json_array_get(top, i);
        const size_t id = (size_t)number_at(pair, 0);
        const double expected = number_at(pair, 1);
        if (fabs((double)logits[id] - expected) > most)
            fail_msg("score of token %zu is %g, not %g", id, (double)logits[id], expected);
    }
}

// Evaluates a prompt in pieces.
static void eval_prompt(struct running *r, const struct token_list *list, size_t piece,
                        float *logits)
{
    llama_session_reset(r->session);
    for (size_t done = 0; done < list->count; done += piece) {
        const size_t count = list->count - done < piece ? list->count - done : piece;
        assert_int_equal(llama_session_eval(r->session, list->ids + done, count, logits, NULL),
                         STATUS_OK);
    }
}

// Returns how many ids were certain enough to compare.
static size_t check_generation(struct running *r, const json_t *c, size_t piece,
                               const struct tolerance *tolerance)
{
    size_t size;
    char *prompt = vectors_hex(vectors_get(c, "prompt_hex"), &size);
    struct token_list list;
    assert_int_equal(tokenizer_encode(r->tokenizer, prompt, size,
                                      (struct encode_options){.add_special = true}, &list, NULL),
                     STATUS_OK);
    check_ids(r->tokenizer, prompt, size, (struct encode_options){.add_special = true},
              vectors_get(c, "prompt_ids"));

    float *logits = calloc(tokenizer_count(r->tokenizer), sizeof *logits);
    eval_prompt(r, &list, piece, logits);
    check_scores(logits, vectors_get(c, "top5_first"), tolerance->scores);

    struct token_sampler *greedy = NULL;
    struct token_sampler_options options = {.temperature = 0.0, .top_p = 1.0};
    assert_int_equal(token_sampler_new(&greedy, &options, tokenizer_count(r->tokenizer), NULL),
                     STATUS_OK);
    const json_t *ids = vectors_get(c, "ids"), *margins = vectors_get(c, "margins");
    const size_t count = json_array_size(ids);
    size_t compared = 0;
    for (; compared < count && compared < IDS_MOST &&
           number_at(margins, compared) >= tolerance->margin;
         compared++) {
        uint32_t next;
        assert_int_equal(token_sampler_pick(greedy, logits, &next, NULL), STATUS_OK);
        assert_int_equal(next, (uint32_t)number_at(ids, compared));
        if (compared + 1 < count)
            assert_int_equal(llama_session_eval(r->session, &next, 1, logits, NULL), STATUS_OK);
    }
    token_sampler_free(greedy);
    free(logits);
    free(list.ids);
    free(prompt);
    return compared;
}

static void check_model(const char *model, const char *vectors, const struct tolerance *tolerance)
{
    static const size_t pieces[] = {64, 1, 7};
    for (unsigned int threads = 1; threads <= THREADS_MOST; threads += 2) {
        struct running r = start_model(path_or_skip(model), threads);
        json_t *json = vectors_read(path_or_skip(vectors));
        const json_t *cases = vectors_get(json, "cases");
        assert_true(json_array_size(cases) >= CASES_MOST);
        size_t compared = 0;
        for (size_t i = 0; i < CASES_MOST; i++)
            compared += check_generation(&r, json_array_get(cases, i), pieces[i % 3], tolerance);
        assert_true(compared > 0);
        json_decref(json);
        stop_model(&r);
    }
}

TEST_CASE(stories260k)
{
    check_model("stories260K.gguf", "expected/stories260K.json", &plain);
}

TEST_CASE(stories260k_f16)
{
    check_model("stories260K-f16.gguf", "expected/stories260K-f16.json", &plain);
}

#ifdef VECTORS_ON_CUDA
TEST_CASE(quantised_is_refused_by_name)
{
    struct byte_source source;
    struct error err = {0};
    struct gguf *gguf = read_gguf(path_or_skip("stories260K-q4_0.gguf"), &source);
    struct llama_config config;
    assert_int_equal(llama_config_read(&config, gguf, 512, &err), STATUS_OK);
    struct device *device = NULL;
    assert_int_equal(
        device_open(&device, &(struct device_options){.spec = DEVICE, .threads = 1}, &err),
        STATUS_OK);
    struct llama *llama = NULL;
    struct transfer_figures transfer;
    assert_int_equal(llama_load(&llama, device, &source, gguf, &config, NULL, &transfer, &err),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "Q4_0"));
    assert_null(llama);
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
    gguf_free(gguf);
    byte_source_close(&source);
}
#else
static const struct tolerance rounded = {0.5, 0.3};

TEST_CASE(stories260k_q8_0)
{
    check_model("stories260K-q8_0.gguf", "expected/stories260K-q8_0.json", &rounded);
}

TEST_CASE(stories260k_q4_0)
{
    check_model("stories260K-q4_0.gguf", "expected/stories260K-q4_0.json", &rounded);
}

TEST_CASE(stories3m_q8_0)
{
    check_model("stories3M-q8_0.gguf", "expected/stories3M-q8_0.json", &rounded);
}
#endif

int main(void)
{
    if (!vectors_path("stories260K.gguf")) {
        print_message("INFERSTAT_TEST_MODELS names no folder of models: skipped\n");
        return 77;
    }
    struct error err = {0};
    struct device *probe = NULL;
    if (device_open(&probe, &(struct device_options){.spec = DEVICE}, &err) != STATUS_OK) {
        print_message("skipped: %s\n", err.text);
        return 77;
    }
    device_close(probe);
#ifdef VECTORS_ON_CUDA
    return TEST_RUN(stories260k_tokenizer, stories3m_tokenizer, llama_spm_tokenizer,
                    gpt_2_tokenizer, deepseek_coder_tokenizer, llama_spm_inputs, gpt_2_inputs,
                    deepseek_coder_inputs, vocabulary_without_weights, stories260k, stories260k_f16,
                    quantised_is_refused_by_name);
#else
    return TEST_RUN(stories260k_tokenizer, stories3m_tokenizer, llama_spm_tokenizer,
                    gpt_2_tokenizer, deepseek_coder_tokenizer, llama_spm_inputs, gpt_2_inputs,
                    deepseek_coder_inputs, vocabulary_without_weights, stories260k, stories260k_f16,
                    stories260k_q8_0, stories260k_q4_0, stories3m_q8_0);
#endif
}
