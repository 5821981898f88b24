// Synthetic models: the types of their tensors, their weights, and that files repeat.

#include "common/core/base/crc32c.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/llm/synthetic.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/workload/model_files.h"

// Rows of 256 are whole blocks of every type, those of ffn_down only of types without blocks.
static const struct synthetic_shape shape = {.name = "blocks",
                                             .dim = 256,
                                             .ff = 40,
                                             .layers = 1,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .vocabulary = 400,
                                             .context = 16};

struct file {
    unsigned char *data;
    size_t size;
    struct gguf *gguf;
};

static struct file make(enum tensor_type type, uint64_t seed, unsigned int threads)
{
    struct error err = {0};
    struct file file = {0};
    struct byte_source source;
    const char *path = model_files_path("made.gguf");
    expect_ok(synthetic_write(path, &shape, type, seed, threads, &err), &err);
    file.data = read_file(path, &file.size);
    byte_source_from_memory(&source, file.data, file.size);
    expect_ok(gguf_read(&file.gguf, &source, NULL, &err), &err);
    return file;
}

static void end(struct file *file)
{
    gguf_free(file->gguf);
    free(file->data);
}

// The weights of a tensor, to be freed.
static float *widen(const struct file *file, const char *name, enum tensor_type type, size_t *count)
{
    const struct gguf_tensor *tensor = gguf_find_tensor(file->gguf, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->type->number, tensor_formats[type].number);
    *count = (size_t)(tensor->shape[0] * tensor->shape[1]);
    float *out = calloc(*count, sizeof *out);
    assert_non_null(out);
    tensor_widen(type, out, file->data + tensor->offset, *count);
    return out;
}

// The mean square of what rounding has changed, relative to that of the weights.
static double error_of(const struct file *file, const struct file *exact, const char *name,
                       enum tensor_type type)
{
    size_t count;
    float *a = widen(exact, name, TENSOR_F32, &count);
    float *b = widen(file, name, type, &count);
    double error = 0.0;
    double square = 0.0;
    for (size_t i = 0; i < count; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        square += (double)a[i] * (double)a[i];
    }
    free(a);
    free(b);
    return error / square;
}

// The weights of a type are those of F32, rounded; norms stay F32, and rows that are no whole
// blocks become F16.
TEST_CASE(types_round_the_same_weights)
{
    // By bits of a weight: a step is 2^-bits of the range, or somewhat more.
    static const double most[TENSOR_TYPE_COUNT] = {
        [TENSOR_F32] = 0.0,   [TENSOR_F16] = 1e-6,  [TENSOR_BF16] = 1e-5, [TENSOR_Q8_0] = 1e-4,
        [TENSOR_Q4_0] = 1e-2, [TENSOR_Q4_1] = 1e-2, [TENSOR_Q5_0] = 3e-3, [TENSOR_Q5_1] = 3e-3,
        [TENSOR_Q4_K] = 1e-2, [TENSOR_Q5_K] = 3e-3, [TENSOR_Q6_K] = 1e-3,
    };
    struct file exact = make(TENSOR_F32, 5, 1);
    for (enum tensor_type type = 0; type < TENSOR_TYPE_COUNT; type++) {
        struct file file = make(type, 5, 1);
        const bool blocks = tensor_formats[type].block_elements > 1;
        const char *const names[] = {"token_embd.weight", "blk.0.attn_k.weight", "output.weight"};
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            const double error = error_of(&file, &exact, names[i], type);
            if (!(error <= most[type]) || (type > TENSOR_F16 && error < most[type] / 100.0))
                fail_msg("%s %s: an error of %g", tensor_formats[type].name, names[i], error);
        }
        assert_true(error_of(&file, &exact, "blk.0.ffn_down.weight", blocks ? TENSOR_F16 : type) <=
                    most[type]);
        assert_true(error_of(&file, &exact, "blk.0.ffn_norm.weight", TENSOR_F32) <= 0.0);
        assert_int_equal(gguf_has(file.gguf, "general.quantization_version"), blocks);
        end(&file);
    }
    end(&exact);
}

// Neither threads nor the machine change a file: only a new rounding or layout may change these
// checksums.
TEST_CASE(files_repeat)
{
    static const uint32_t expected[TENSOR_TYPE_COUNT] = {
        [TENSOR_F32] = 0x7b74a0bc,  [TENSOR_F16] = 0x269264a7,  [TENSOR_BF16] = 0x5f0eab17,
        [TENSOR_Q8_0] = 0xb2167fc4, [TENSOR_Q4_0] = 0xc06e9408, [TENSOR_Q4_1] = 0x50985583,
        [TENSOR_Q5_0] = 0x4cd13b00, [TENSOR_Q5_1] = 0x57bf5e2c, [TENSOR_Q4_K] = 0xc54296e0,
        [TENSOR_Q5_K] = 0x2f165ee6, [TENSOR_Q6_K] = 0x4ca8a96f,
    };
    for (enum tensor_type type = 0; type < TENSOR_TYPE_COUNT; type++) {
        struct file one = make(type, 9, 1);
        struct file three = make(type, 9, 3);
        assert_int_equal(one.size, three.size);
        assert_memory_equal(one.data, three.data, one.size);
        const uint32_t sum = crc32c(0, one.data, one.size);
        if (sum != expected[type])
            fail_msg("%s: checksum %08x", tensor_formats[type].name, sum);
        end(&one);
        end(&three);
    }
}

TEST_MAIN_ONCE(model_files_setup, model_files_teardown, types_round_the_same_weights, files_repeat)
