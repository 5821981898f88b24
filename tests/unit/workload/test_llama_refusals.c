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
    RENAME("llama.attention.head_count_kv", "llama_attention.head_count_kv", STATUS_CORRUPT,
           "attn_k"),
    RENAME("llama.attention.head_count_kv", "llama.attention.head_count_k_", STATUS_UNSUPPORTED,
           "'llama.attention.head_count_k_' is not supported"),
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

// A key beside the necessary ones: a text where `text` is set, an integer where `number` is not -1,
// else a float.
struct more_key {
    const char *name, *text;
    int64_t number;
    float real;
};

#define TEXT(name, text)                                                                           \
    {                                                                                              \
        name, text, -1, 0                                                                          \
    }
#define NUMBER(name, number)                                                                       \
    {                                                                                              \
        name, NULL, number, 0                                                                      \
    }
#define REAL(name, real)                                                                           \
    {                                                                                              \
        name, NULL, -1, real                                                                       \
    }

static void write_keys(const char *path, const char *architecture, const struct more_key *more)
{
    struct gguf_writer *writer = NULL;
    assert_int_equal(gguf_writer_open(&writer, path, NULL), STATUS_OK);
    gguf_writer_text(writer, "general.architecture", architecture);
    const struct more_key keys[] = {
        NUMBER("context_length", 16),      NUMBER("embedding_length", 8),
        NUMBER("feed_forward_length", 12), NUMBER("block_count", 1),
        NUMBER("attention.head_count", 2), REAL("attention.layer_norm_rms_epsilon", 1e-6F),
    };
    for (size_t i = 0; i < COUNT_OF(keys) + 3; i++) {
        const struct more_key *key = i < COUNT_OF(keys) ? &keys[i] : &more[i - COUNT_OF(keys)];
        const char *name = format_text("%s.%s", architecture, key->name ? key->name : "");
        if (key->text)
            gguf_writer_text(writer, name, key->text);
        else if (key->name && key->number >= 0)
            gguf_writer_uint(writer, name, (uint32_t)key->number);
        else if (key->name)
            gguf_writer_float(writer, name, key->real);
    }
    assert_int_equal(gguf_writer_close(writer, STATUS_OK, NULL), STATUS_OK);
}

// Keys that not every model has.
TEST_CASE(optional_keys)
{
    static const struct {
        struct more_key more[3];
        double factor;            // of rope; 0: 1
        const char *architecture; // NULL: llama
        enum status status;
        const char *says;
    } cases[] = {
        {.says = NULL},
        {.more = {TEXT("rope.scaling.type", "none")}},
        {.more = {TEXT("rope.scaling.type", "none"), REAL("rope.scaling.factor", 4)}},
        {.more = {REAL("rope.scaling.factor", 4)}, .factor = 4},
        {.more = {REAL("rope.scale_linear", 4)}, .factor = 4},
        {.more = {TEXT("rope.scaling.type", "linear"), REAL("rope.scaling.factor", 4)},
         .factor = 4},
        {.more = {TEXT("rope.scaling.type", "yarn"), REAL("rope.scaling.factor", 4)}, .factor = 4},
        {.more = {TEXT("rope.scaling.type", "longrope")},
         .status = STATUS_UNSUPPORTED,
         .says = "'longrope'"},
        {.more = {TEXT("rope.scaling.type", "linear")},
         .status = STATUS_NOT_FOUND,
         .says = "'llama.rope.scaling.factor'"},
        {.more = {REAL("rope.scaling.factor", 0)}, .status = STATUS_CORRUPT, .says = "factor"},
        {.more = {NUMBER("attention.value_length", 4)}},
        {.more = {NUMBER("attention.value_length", 6)},
         .status = STATUS_UNSUPPORTED,
         .says = "6 values"},
        {.more = {NUMBER("attention.key_length", 262144)},
         .status = STATUS_CORRUPT,
         .says = "key_length"},
        {.more = {TEXT("attention.key_length", "4")},
         .status = STATUS_CORRUPT,
         .says = "key_length"},
        {.more = {NUMBER("attention.sliding_window", 0)}},
        // Those that would have another meaning, or any.
        {.more = {NUMBER("attention.sliding_window", 8)},
         .architecture = "qwen2",
         .status = STATUS_UNSUPPORTED,
         .says = "key 'qwen2.attention.sliding_window' is not supported"},
        {.more = {REAL("attention.scale", 1)}, .status = STATUS_UNSUPPORTED, .says = "n.scale'"},
        {.more = {REAL("rope.freq_base_swa", 1)}, .status = STATUS_UNSUPPORTED, .says = "_swa'"},
        {.more = {NUMBER("expert_shared_count", 1)},
         .status = STATUS_UNSUPPORTED,
         .says = "'llama.expert_shared_count'"},
        {.more = {NUMBER("vocab_size", 400)}},
        // Mixtures.
        {.more = {NUMBER("expert_count", 0)}},
        {.more = {NUMBER("expert_count", 8), NUMBER("expert_used_count", 8)}},
        {.more = {NUMBER("expert_count", 8)}, .status = STATUS_CORRUPT, .says = "is 0 of 8"},
        {.more = {NUMBER("expert_count", 8), NUMBER("expert_used_count", 9)},
         .status = STATUS_CORRUPT,
         .says = "'llama.expert_used_count' is 9 of 8"},
        {.more = {NUMBER("expert_count", 8)},
         .architecture = "qwen3",
         .status = STATUS_UNSUPPORTED,
         .says = "'qwen3.expert_count'"},
        {.architecture = "qwen3moe", .status = STATUS_NOT_FOUND, .says = "'qwen3moe.expert_count'"},
        {.architecture = "gemma",
         .status = STATUS_UNSUPPORTED,
         .says = "'gemma' is not supported, "
                 "only llama, qwen2"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *path = model_files_path("keys.gguf");
        const char *architecture = cases[i].architecture ? cases[i].architecture : "llama";
        write_keys(path, architecture, cases[i].more);
        struct byte_source source;
        struct gguf *gguf = NULL;
        struct llama_config config;
        struct error err = {0};
        assert_int_equal(byte_source_open(&source, path, NULL), STATUS_OK);
        assert_int_equal(gguf_read(&gguf, &source, NULL, NULL), STATUS_OK);
        enum status status = llama_config_read(&config, gguf, 400, &err);
        if (status != cases[i].status || (cases[i].says && !strstr(err.text, cases[i].says)))
            fail_msg("case %zu: status %d, %s", i, (int)status, err.text);
        if (status == STATUS_OK) {
            assert_int_equal(config.kv_heads, 2);
            assert_int_equal(config.head_size, 4);
            assert_int_equal(config.rope.size, config.head_size);
            assert_true(config.rope.base == 10000.0);
            assert_true(config.rope.factor == (cases[i].factor > 0.0 ? cases[i].factor : 1.0));
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
        // 400 x 8 described as I8: a quarter of the bytes.
        {"token_embd.weight", 4 + 16, 24, "'token_embd.weight' is of type I8"},
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
    assert_int_equal(gguf_read(&r.gguf, &r.source, NULL, &err), STATUS_OK);
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
