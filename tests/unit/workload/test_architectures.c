// Models of every architecture against what another program computed with the same weights:
// tests/support/llm/ has the program that writes the models, and the answers.
#include <math.h>

#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/workload/llama_fixture.h"
#include "tests/unit/workload/model_files.h"
#include "tests/unit/workload/vectors.h"

// What is compared: all of it, but where a device is emulated the logits of the last model.
#ifdef ARCHITECTURES_BRIEF
enum { FIRST_MODEL = 8, THREADS_MOST = 1, PIECES_MOST = 1, ANSWERS = 0 };
#else
enum { FIRST_MODEL = 0, THREADS_MOST = 3, PIECES_MOST = 3, ANSWERS = 1 };
#endif

enum { CONTEXT = 110, PROMPT_MAX = 100, VOCABULARY = 64 };

static json_t *expected;

static int make_models(void **state)
{
    char command[1024];
    expected = vectors_read(LLM_SUPPORT "/expected.json");
    (void)model_files_setup(state);
    (void)snprintf(command, sizeof command, "python3 " LLM_SUPPORT "/tiny_models.py %s",
                   model_files_path("."));
    return system(command);
}

static int remove_models(void **state)
{
    json_decref(expected);
    return model_files_teardown(state);
}

static size_t read_ids(uint32_t *out, const json_t *ids)
{
    const size_t count = json_array_size(ids);
    assert_in_range(count, 1, PROMPT_MAX);
    for (size_t i = 0; i < count; i++)
        out[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
    return count;
}

static void eval(struct ready *r, const uint32_t *ids, size_t count, size_t piece, float *logits)
{
    struct error err = {0};
    llama_session_reset(r->session);
    for (size_t done = 0; done < count; done += piece) {
        const size_t n = count - done < piece ? count - done : piece;
        expect_ok(llama_session_eval(r->session, ids + done, n, logits, &err), &err);
    }
}

static void check_logits(const char *file, const float *logits, const json_t *wanted)
{
    assert_int_equal(json_array_size(wanted), VOCABULARY);
    for (size_t i = 0; i < VOCABULARY; i++) {
        const double want = json_number_value(json_array_get(wanted, i));
        if (!(fabs((double)logits[i] - want) <= 1e-3))
            fail_msg("%s: the score of token %zu is %g, not %g", file, i, (double)logits[i], want);
    }
}

static void check_answer(struct ready *r, const char *file, const json_t *wanted, float *logits)
{
    uint32_t ids[PROMPT_MAX];
    const size_t count = read_ids(ids, wanted);
    for (size_t i = 0; i < count; i++) {
        uint32_t best = 0;
        struct error err = {0};
        for (uint32_t id = 1; id < VOCABULARY; id++)
            if (logits[id] > logits[best])
                best = id;
        if (best != ids[i])
            fail_msg("%s: token %zu of the answer is %u, not %u", file, i, best, ids[i]);
        expect_ok(llama_session_eval(r->session, &best, 1, logits, &err), &err);
    }
}

static void expect_in_file(void *context, const char *name, const struct tensor *tensor)
{
    const struct gguf_tensor *found = gguf_find_tensor(context, name);
    if (!found)
        fail_msg("a weight is named %s", name);
    assert_int_equal(found->bytes, tensor_bytes(tensor));
}

static void check_file(const char *file, const json_t *model, unsigned int threads)
{
    static const size_t pieces[] = {64, 7, 1};
    uint32_t prompt[PROMPT_MAX];
    const size_t count = read_ids(prompt, vectors_get(expected, "prompt"));
    struct ready r = {0};
    struct error err = {0};
    r.data = read_file(model_files_path(file), &r.size);
    expect_ok(llama_ready_load(&r, threads, NULL, &err), &err);
    expect_ok(llama_session_new(&r.session, r.llama, CONTEXT, &err), &err);
    assert_int_equal(llama_weight_bytes_per_token(r.llama),
                     json_integer_value(vectors_get(model, "bytes_per_token")));
    assert_int_equal(llama_each_weight(r.llama, expect_in_file, r.gguf), gguf_tensor_count(r.gguf));
    float logits[VOCABULARY] = {0};
    float first[VOCABULARY];
    for (size_t i = 0; i < PIECES_MOST; i++) {
        eval(&r, prompt, count, pieces[i], logits);
        check_logits(file, logits, vectors_get(model, "logits"));
        if (i == 0)
            memcpy(first, logits, sizeof first);
        assert_memory_equal(logits, first, sizeof first);
    }
    if (ANSWERS)
        check_answer(&r, file, vectors_get(model, "ids"), logits);
    llama_ready_end(&r);
}

TEST_CASE(answer_as_expected)
{
    const json_t *models = vectors_get(expected, "models");
    for (size_t i = FIRST_MODEL; i < json_array_size(models); i++) {
        const json_t *model = json_array_get(models, i);
        const json_t *files = vectors_get(model, "files");
        for (size_t f = 0; f < json_array_size(files); f++)
            for (unsigned int threads = 1; threads <= THREADS_MOST; threads += 2)
                check_file(json_string_value(json_array_get(files, f)), model, threads);
    }
    assert_int_equal(json_array_size(models), 9);
}

// Tensors that only some architectures have, damaged.
TEST_CASE(refusals)
{
    enum { EXTENTS = 4, NAME_END = -1 }; // behind the number of dimensions; of the name
    static const struct {
        const char *file, *tensor;
        ptrdiff_t place; // where a number is replaced, from behind the tensor's name on
        uint32_t number;
        enum status status;
        const char *says;
    } cases[] = {
        {"llama3.gguf", "rope_freqs.weight", EXTENTS, 4, STATUS_CORRUPT, "is 4 x 1 x 1, but"},
        {"mixtral.gguf", "blk.1.ffn_up_exps.weight", EXTENTS + 16, 2, STATUS_CORRUPT,
         "is 32 x 48 x 2, but the keys ask for 32 x 48 x 4"},
        {"qwen2.gguf", "blk.0.attn_k.bias", EXTENTS, 8, STATUS_CORRUPT, "is 8 x 1 x 1, but"},
        {"qwen2.gguf", "blk.0.attn_k.bias", NAME_END, '_', STATUS_UNSUPPORTED,
         "'blk.0.attn_k.bia_' belongs to no qwen2 model"},
        {"qwen3.gguf", "blk.1.attn_q_norm.weight", NAME_END, '_', STATUS_UNSUPPORTED, "weigh_'"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ready r = {0};
        struct error err = {0};
        r.data = read_file(model_files_path(cases[i].file), &r.size);
        unsigned char *at = r.data + model_files_find_tensor(r.data, r.size, cases[i].tensor);
        memcpy(at + cases[i].place, &cases[i].number, cases[i].place < 0 ? 1 : 4);
        const enum status status = llama_ready_load(&r, 1, NULL, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].says))
            fail_msg("case %zu: status %d, %s", i, (int)status, err.text);
        llama_ready_end(&r);
    }
}

TEST_CASE(divisors_are_positive)
{
    static const float divisors[] = {0.0F, -1.0F, NAN, INFINITY};
    for (size_t i = 0; i < COUNT_OF(divisors); i++) {
        struct ready r = {0};
        struct byte_source source;
        struct gguf *gguf = NULL;
        struct error err = {0};
        r.data = read_file(model_files_path("llama3.gguf"), &r.size);
        byte_source_from_memory(&source, r.data, r.size);
        expect_ok(gguf_read(&gguf, &source, NULL, &err), &err);
        memcpy(r.data + gguf_find_tensor(gguf, "rope_freqs.weight")->offset + 4, &divisors[i], 4);
        gguf_free(gguf);
        assert_int_equal(llama_ready_load(&r, 1, NULL, &err), STATUS_CORRUPT);
        assert_non_null(strstr(err.text, "divisor 1 is"));
        assert_null(r.llama);
        llama_ready_end(&r);
    }
}

TEST_MAIN_ONCE(make_models, remove_models, answer_as_expected, refusals, divisors_are_positive)
