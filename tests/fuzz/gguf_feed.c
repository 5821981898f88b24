#include "tests/fuzz/gguf_feed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/tensor_types.h"
#include "server/workload/llm/gguf.h"

uint64_t feed_take(struct feed *feed, size_t bytes)
{
    uint64_t value = 0;
    for (; bytes > 0 && feed->size > 0; bytes--, feed->size--)
        value = value << 8 | *feed->data++;
    return value;
}

struct file {
    unsigned char data[FEED_FILE_MAX];
    size_t size;
};

static void put(struct file *file, const void *data, size_t size)
{
    if (size > sizeof file->data - file->size)
        size = sizeof file->data - file->size;
    memcpy(file->data + file->size, data, size);
    file->size += size;
}

static void put_number(struct file *file, uint64_t value, size_t size)
{
    put(file, &value, size);
}

static void put_text(struct file *file, const void *text, size_t size)
{
    put_number(file, size, 8);
    put(file, text, size);
}

// A number as it should be, or another one where the input's next byte asks for it.
static uint64_t maybe(struct feed *feed, uint64_t value)
{
    uint64_t choice = feed_take(feed, 1);
    switch (choice) {
    case 1:
        return feed_take(feed, 8);
    case 2:
        return value + feed_take(feed, 1);
    case 3:
        return value - feed_take(feed, 1);
    case 4:
        return feed_take(feed, 2);
    case 5:
        return value << feed_take(feed, 1) % 64;
    default:
        return value;
    }
}

enum { TOKENS = 12 };

static const struct {
    const char *text;
    uint32_t kind;
} tokens[TOKENS] = {
    {"<unk>", 2},
    {"<s>", 3},
    {"</s>", 3},
    {"\xe2\x96\x81", 1},
    {"a", 1},
    {"b", 1},
    {"ab", 1},
    {"ba", 1},
    {"abba", 1},
    {"<0x63>", 6},
    {"<|x|>", 4},
    {"\xe2\x96\x81"
     "a",
     1},
};

static void put_token(struct file *file, struct feed *feed, size_t number)
{
    unsigned char text[16];
    uint64_t size = feed_take(feed, 1);
    if (size == 0 || size > sizeof text) {
        put_text(file, tokens[number].text, strlen(tokens[number].text));
        return;
    }
    for (size_t i = 0; i < size; i++)
        text[i] = (unsigned char)feed_take(feed, 1);
    put_text(file, text, (size_t)size);
}

static void put_array_start(struct file *file, struct feed *feed, const char *key,
                            enum gguf_value_type type)
{
    put_text(file, key, strlen(key));
    put_number(file, maybe(feed, GGUF_ARRAY), 4);
    put_number(file, maybe(feed, type), 4);
    put_number(file, maybe(feed, TOKENS), 8);
}

static uint64_t put_vocabulary(struct file *file, struct feed *feed)
{
    static const char *const merges[TOKENS] = {"a b", "b a", "ab ba"};
    static const char *const pres[] = {"default",      "llama-bpe",      "qwen2",
                                       "deepseek-llm", "deepseek-coder", "deepseek-v3"};
    const uint64_t choice = feed_take(feed, 1) - 'b'; // of a byte-level vocabulary
    const bool bytes = choice < sizeof pres / sizeof *pres;
    put_text(file, "tokenizer.ggml.model", 20);
    put_number(file, GGUF_STRING, 4);
    put_text(file, bytes ? "gpt2" : "llama", bytes ? 4 : 5);
    put_array_start(file, feed, "tokenizer.ggml.tokens", GGUF_STRING);
    for (size_t i = 0; i < TOKENS; i++)
        put_token(file, feed, i);
    put_array_start(file, feed, "tokenizer.ggml.scores", GGUF_FLOAT32);
    for (size_t i = 0; i < TOKENS; i++) {
        float score = -(float)i;
        uint32_t bits;
        memcpy(&bits, &score, sizeof bits);
        put_number(file, maybe(feed, bits), 4);
    }
    put_array_start(file, feed, "tokenizer.ggml.token_type", GGUF_INT32);
    for (size_t i = 0; i < TOKENS; i++)
        put_number(file, maybe(feed, tokens[i].kind), 4);
    if (!bytes)
        return 4;
    put_array_start(file, feed, "tokenizer.ggml.merges", GGUF_STRING);
    for (size_t i = 0; i < TOKENS; i++) {
        const char *merge = merges[i] ? merges[i] : "a b";
        put_text(file, merge, strlen(merge));
    }
    put_text(file, "tokenizer.ggml.pre", 18);
    put_number(file, GGUF_STRING, 4);
    put_text(file, pres[choice], strlen(pres[choice]));
    return 6;
}

enum { DIM = 4, FF = 6, HEADS = 2, KV_HEADS = 1, CONTEXT = 16, EXPERTS = 3 };

struct feed_key {
    const char *key;
    enum gguf_value_type type;
    uint64_t value;
};

static const struct feed_key mixture_keys[] = {
    {"llama.expert_count", GGUF_UINT32, EXPERTS},
    {"llama.expert_used_count", GGUF_UINT32, 2},
    {"llama.attention.sliding_window", GGUF_UINT32, 2},
    {"llama.rope.scaling.factor", GGUF_FLOAT32, 0x40800000}, // 4
    {"llama.rope.scaling.original_context_length", GGUF_UINT32, 8},
    {"llama.rope.scaling.yarn_beta_fast", GGUF_FLOAT32, 0x40000000}, // 2
};

static const struct feed_key keys[] = {
    {"llama.context_length", GGUF_UINT32, CONTEXT},
    {"llama.embedding_length", GGUF_UINT32, DIM},
    {"llama.feed_forward_length", GGUF_UINT32, FF},
    {"llama.block_count", GGUF_UINT32, 1},
    {"llama.attention.head_count", GGUF_UINT32, HEADS},
    {"llama.attention.head_count_kv", GGUF_UINT32, KV_HEADS},
    {"llama.attention.layer_norm_rms_epsilon", GGUF_FLOAT32, 0x3727c5ac}, // 1e-5
    {"llama.rope.freq_base", GGUF_FLOAT32, 0x461c4000},                   // 10000
    {"llama.rope.dimension_count", GGUF_UINT32, DIM / HEADS},
    {"general.alignment", GGUF_UINT32, 32},
    {"tokenizer.ggml.bos_token_id", GGUF_UINT32, 1},
    {"tokenizer.ggml.eos_token_id", GGUF_UINT32, 2},
    {"tokenizer.ggml.add_bos_token", GGUF_BOOL, 1},
    {"tokenizer.ggml.add_space_prefix", GGUF_BOOL, 1},
};

enum {
    KEYS = sizeof keys / sizeof keys[0],
    MIXTURE_KEYS = sizeof mixture_keys / sizeof mixture_keys[0],
};

static uint64_t put_some(struct file *file, struct feed *feed, const struct feed_key *some,
                         size_t all)
{
    uint64_t count = 0;
    for (size_t i = 0; i < all; i++) {
        uint64_t choice = feed_take(feed, 1);
        if (choice == 1)
            continue; // left out
        enum gguf_value_type type = some[i].type;
        if (choice >= 2 && choice < 2 + GGUF_VALUE_TYPE_COUNT)
            type = (enum gguf_value_type)(choice - 2);
        size_t size = gguf_value_type_size(type);
        put_text(file, some[i].key, strlen(some[i].key));
        put_number(file, type, 4);
        put_number(file, maybe(feed, some[i].value), size ? size : 8);
        count++;
    }
    return count;
}

static uint64_t put_keys(struct file *file, struct feed *feed, bool mixture)
{
    put_text(file, "general.architecture", 20);
    put_number(file, GGUF_STRING, 4);
    put_text(file, "llama", 5);
    if (!mixture)
        return 1 + put_some(file, feed, keys, KEYS);
    put_text(file, "llama.rope.scaling.type", 23);
    put_number(file, GGUF_STRING, 4);
    put_text(file, "yarn", 4);
    return 2 + put_some(file, feed, mixture_keys, MIXTURE_KEYS) + put_some(file, feed, keys, KEYS);
}

static const struct {
    const char *name;
    uint64_t rows, columns;
    enum feed_model model; // FEED_VOCABULARY: of both others
    uint64_t experts;      // 0: no such dimension
} tensors[] = {
    {"token_embd.weight", TOKENS, DIM, FEED_VOCABULARY, 0},
    {"output_norm.weight", 1, DIM, FEED_VOCABULARY, 0},
    {"output.weight", TOKENS, DIM, FEED_VOCABULARY, 0},
    {"blk.0.attn_norm.weight", 1, DIM, FEED_VOCABULARY, 0},
    {"blk.0.attn_q.weight", DIM, DIM, FEED_VOCABULARY, 0},
    {"blk.0.attn_k.weight", DIM / HEADS *KV_HEADS, DIM, FEED_VOCABULARY, 0},
    {"blk.0.attn_v.weight", DIM / HEADS *KV_HEADS, DIM, FEED_VOCABULARY, 0},
    {"blk.0.attn_output.weight", DIM, DIM, FEED_VOCABULARY, 0},
    {"blk.0.ffn_norm.weight", 1, DIM, FEED_VOCABULARY, 0},
    {"blk.0.ffn_gate.weight", FF, DIM, FEED_DENSE, 0},
    {"blk.0.ffn_up.weight", FF, DIM, FEED_DENSE, 0},
    {"blk.0.ffn_down.weight", DIM, FF, FEED_DENSE, 0},
    {"rope_freqs.weight", 1, DIM / HEADS / 2, FEED_MIXTURE, 0},
    {"blk.0.ffn_gate_inp.weight", EXPERTS, DIM, FEED_MIXTURE, 0},
    {"blk.0.ffn_gate_exps.weight", FF, DIM, FEED_MIXTURE, EXPERTS},
    {"blk.0.ffn_up_exps.weight", FF, DIM, FEED_MIXTURE, EXPERTS},
    {"blk.0.ffn_down_exps.weight", DIM, FF, FEED_MIXTURE, EXPERTS},
};

enum { TENSORS = sizeof tensors / sizeof tensors[0] };

// Returns how many there are; `*data_size` bytes of data belong to them.
static uint64_t put_tensors(struct file *file, struct feed *feed, enum feed_model model,
                            uint64_t *data_size)
{
    uint64_t count = 0;
    uint64_t offset = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        if (tensors[i].model != FEED_VOCABULARY && tensors[i].model != model)
            continue;
        uint64_t choice = feed_take(feed, 1);
        if (choice == 1)
            continue;
        const uint64_t types[] = {GGUF_TENSOR_F16, tensor_formats[TENSOR_BF16].number};
        const bool half = choice >= 2 && choice <= 3 && tensors[i].rows > 1;
        put_text(file, tensors[i].name, strlen(tensors[i].name));
        put_number(file, maybe(feed, tensors[i].experts ? 3 : 2), 4);
        put_number(file, maybe(feed, tensors[i].columns), 8);
        put_number(file, maybe(feed, tensors[i].rows), 8);
        if (tensors[i].experts)
            put_number(file, maybe(feed, tensors[i].experts), 8);
        put_number(file, maybe(feed, half ? types[choice - 2] : GGUF_TENSOR_F32), 4);
        put_number(file, maybe(feed, offset), 8);
        uint64_t size = tensors[i].rows * tensors[i].columns * (half ? 2 : 4);
        size *= tensors[i].experts ? tensors[i].experts : 1;
        offset += (size + 31) / 32 * 32;
        count++;
    }
    *data_size = offset;
    return count;
}

static void put_data(struct file *file, struct feed *feed, uint64_t size)
{
    while (file->size % 32 != 0)
        put_number(file, 0, 1);
    for (uint64_t i = 0; i < size; i += 4) {
        // A byte of the input is a small number, as weights are; some are none.
        uint64_t choice = feed_take(feed, 1);
        float value = ((float)choice - 100.0F) / 64.0F;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        put_number(file, choice == 255 ? 0x7fc00000 : bits, 4);
    }
}

unsigned char *feed_gguf(struct feed *feed, enum feed_model model, size_t *size)
{
    static struct file file;
    file.size = 0;
    uint64_t data_size = 0;
    put(&file, "GGUF", 4);
    put_number(&file, maybe(feed, 3), 4);
    size_t counts = file.size;
    put_number(&file, 0, 8);
    put_number(&file, 0, 8);
    uint64_t key_count = put_vocabulary(&file, feed);
    key_count += put_keys(&file, feed, model == FEED_MIXTURE);
    uint64_t tensor_count = 0;
    if (model != FEED_VOCABULARY)
        tensor_count = put_tensors(&file, feed, model, &data_size);
    put_data(&file, feed, data_size);
    tensor_count = maybe(feed, tensor_count);
    key_count = maybe(feed, key_count);
    memcpy(file.data + counts, &tensor_count, sizeof tensor_count);
    memcpy(file.data + counts + 8, &key_count, sizeof key_count);

    *size = file.size;
    uint64_t cut = feed_take(feed, 2); // 0: nothing is missing
    if (cut < *size)
        *size -= (size_t)cut;
    unsigned char *exact = malloc(*size + 1);
    if (!exact)
        abort();
    memcpy(exact, file.data, *size);
    return exact;
}
