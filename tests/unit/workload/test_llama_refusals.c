// What loading a llama model refuses, and in which words.
#include <math.h>
#include <unistd.h>

#include "server/workload/llm/gguf_writer.h"
#include "server/workload/llm/llama.h"
#include "tests/support/test.h"
#include "tests/unit/workload/llama_fixture.h"
#include "tests/unit/workload/model_files.h"

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
    UINT_KEY("llama.attention.head_count", 16384, STATUS_CORRUPT, "cut into"),
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

TEST_CASE(refusals)
{
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct ready r = {.data = malloc(size), .size = size};
        memcpy(r.data, data, size);
        apply(r.data, size, &changes[i]);
        struct error err = {0};
        enum status status = llama_ready_load(&r, 1, NULL, &err);
        if (status != changes[i].status ||
            (changes[i].says && !says_one_of(err.text, changes[i].says)))
            fail_msg("%s (%zu): status %d, %s", changes[i].key, i, (int)status, err.text);
        llama_ready_end(&r);
    }
    free(data);
}

// Keys that not every model has.
TEST_CASE(optional_keys)
{
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
        assert_int_equal(gguf_writer_close(writer, STATUS_OK, NULL), STATUS_OK);

        struct byte_source source;
        struct gguf *gguf = NULL;
        struct llama_config config;
        struct error err = {0};
        assert_int_equal(byte_source_open(&source, path, NULL), STATUS_OK);
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
        byte_source_close(&source);
    }
}

// A type that is known but cannot be computed with is named.
TEST_CASE(types_that_are_not_supported)
{
    static const struct {
        const char *tensor;
        size_t place; // of the type, behind the name
        uint32_t type;
        const char *says;
    } cases[] = {
        // 400 x 8 described as BF16: half as many bytes.
        {"token_embd.weight", 4 + 16, 30, "'token_embd.weight' is of type BF16"},
        {"output_norm.weight", 4 + 8, 1, "'output_norm.weight' is of type F16: only F32"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ready r = {0};
        struct error err = {0};
        r.data = model_files_make(&model_files_smallest, false, &r.size);
        memcpy(r.data + model_files_find_tensor(r.data, r.size, cases[i].tensor) + cases[i].place,
               &cases[i].type, 4);
        assert_int_equal(llama_ready_load(&r, 1, NULL, &err), STATUS_UNSUPPORTED);
        assert_non_null(strstr(err.text, cases[i].says));
        llama_ready_end(&r);
    }
}

static unsigned int asked;

static bool stop_at_fifth(void)
{
    return ++asked == 5;
}

TEST_CASE(can_be_cancelled)
{
    struct ready r = {0};
    struct error err = {0};
    r.data = model_files_make(&model_files_smallest, false, &r.size);
    asked = 0;
    assert_int_equal(llama_ready_load(&r, 1, stop_at_fifth, &err), STATUS_CANCELLED);
    assert_int_equal(asked, 5);
    assert_null(r.llama);
    llama_ready_end(&r);
}

// The file shrinks after its header was read: an error, whatever the tensor.
TEST_CASE(shrinks_while_loading)
{
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    const char *path = model_files_write("shrinking.gguf", data, size);
    struct ready r = {.data = data, .size = size};
    struct error err = {0};
    struct transfer_figures transfer;
    assert_int_equal(byte_source_open(&r.source, path, &err), STATUS_OK);
    assert_int_equal(gguf_read(&r.gguf, &r.source, &err), STATUS_OK);
    assert_int_equal(llama_config_read(&r.config, r.gguf, 400, &err), STATUS_OK);
    assert_int_equal(device_open(&r.device, &(struct device_options){.threads = 1}, &err),
                     STATUS_OK);
    assert_int_equal(truncate(path, (off_t)size - 200), 0);
    assert_int_equal(
        llama_load(&r.llama, r.device, &r.source, r.gguf, &r.config, NULL, &transfer, &err),
        STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "tensor 'blk.0.ffn_down.weight': the file ends at byte"));
    byte_source_close(&r.source);
    llama_ready_end(&r);
}
TEST_MAIN_ONCE(model_files_setup, model_files_teardown, refusals, optional_keys,
               types_that_are_not_supported, can_be_cancelled, shrinks_while_loading)
