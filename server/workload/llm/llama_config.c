#include "server/workload/llm/llama.h"

#include <inttypes.h>
#include <string.h>

// Limits of accepted models, beyond all known ones: the bytes of a session's KV cache,
// 8 * context * layers * heads * head_size, fit 64 bits.
enum {
    CONTEXT_MAX = 1 << 24,
    DIM_MAX = 1 << 20,
    FF_MAX = 1 << 22,
    LAYERS_MAX = 1 << 12,
    HEADS_MAX = 1 << 14,
    HEAD_SIZE_MAX = 1024,
};

static enum status check_architecture(const struct gguf *gguf, struct error *err)
{
    struct gguf_text name;
    enum status status = gguf_get_text(gguf, "general.architecture", &name, err);
    if (status != STATUS_OK)
        return status;
    if (!gguf_text_is(&name, "llama"))
        return error_set(err, STATUS_UNSUPPORTED,
                         "architecture '%.*s' is not supported, only 'llama'",
                         (int)(name.size < 32 ? name.size : 32), name.data);

    uint64_t experts = 0;
    if (gguf_has(gguf, "llama.expert_count")) {
        status = gguf_get_uint(gguf, "llama.expert_count", 0, UINT32_MAX, &experts, err);
        if (status == STATUS_OK && experts > 0)
            status = error_set(err, STATUS_UNSUPPORTED,
                               "a mixture of %" PRIu64 " experts is not supported", experts);
    }
    return status;
}

// Completes and checks the heads; `value_size` is that of their values, 0: not given.
static enum status check_heads(struct llama_config *config, size_t value_size, struct error *err)
{
    if (config->kv_heads == 0)
        config->kv_heads = config->heads;
    if (config->heads % config->kv_heads != 0)
        return error_set(err, STATUS_CORRUPT, "%zu heads cannot share %zu key/value heads",
                         config->heads, config->kv_heads);
    if (config->head_size == 0 && config->dim % config->heads != 0)
        return error_set(err, STATUS_CORRUPT, "an embedding of %zu cannot be cut into %zu heads",
                         config->dim, config->heads);
    if (config->head_size == 0)
        config->head_size = config->dim / config->heads;
    if (config->head_size > HEAD_SIZE_MAX)
        return error_set(err, STATUS_CORRUPT, "heads of %zu elements: more than %d",
                         config->head_size, HEAD_SIZE_MAX);
    if (value_size != 0 && value_size != config->head_size)
        return error_set(err, STATUS_UNSUPPORTED, "heads of %zu keys and %zu values",
                         config->head_size, value_size);
    return STATUS_OK;
}

static enum status read_rope_scale(struct llama_config *config, const struct gguf *gguf,
                                   struct error *err)
{
    static const char key[] = "llama.rope.scaling.type";
    config->rope_scale = 1.0;
    if (!gguf_has(gguf, key))
        return STATUS_OK;
    struct gguf_text type;
    enum status status = gguf_get_text(gguf, key, &type, err);
    if (status != STATUS_OK || gguf_text_is(&type, "none"))
        return status;
    if (!gguf_text_is(&type, "linear"))
        return error_set(err, STATUS_UNSUPPORTED, "rotary scaling '%.*s' is not supported",
                         (int)(type.size < 32 ? type.size : 32), type.data);
    return gguf_get_float(gguf, "llama.rope.scaling.factor", 1e-3, 1e6, &config->rope_scale, err);
}

static enum status read_rope(struct llama_config *config, const struct gguf *gguf,
                             struct error *err)
{
    if (config->rope_size == 0)
        config->rope_size = config->head_size;
    if (config->rope_size > config->head_size || config->rope_size % 2 != 0)
        return error_set(err, STATUS_CORRUPT,
                         "%zu rotary elements do not fit a head of %zu in pairs", config->rope_size,
                         config->head_size);
    enum status status = STATUS_OK;
    config->rope_base = 10000.0;
    if (gguf_has(gguf, "llama.rope.freq_base"))
        status = gguf_get_float(gguf, "llama.rope.freq_base", 1.0, 1e12, &config->rope_base, err);
    return status == STATUS_OK ? read_rope_scale(config, gguf, err) : status;
}

enum status llama_config_read(struct llama_config *out, const struct gguf *gguf, size_t vocabulary,
                              struct error *err)
{
    memset(out, 0, sizeof *out);
    out->vocabulary = vocabulary;
    enum status status = check_architecture(gguf, err);
    if (status != STATUS_OK)
        return status;
    size_t value_size = 0;
    const struct {
        const char *key;
        size_t maximum;
        size_t *out;
        bool optional; // if missing, `*out` stays 0
    } sizes[] = {
        {"llama.context_length", CONTEXT_MAX, &out->context, false},
        {"llama.embedding_length", DIM_MAX, &out->dim, false},
        {"llama.feed_forward_length", FF_MAX, &out->ff, false},
        {"llama.block_count", LAYERS_MAX, &out->layers, false},
        {"llama.attention.head_count", HEADS_MAX, &out->heads, false},
        {"llama.attention.head_count_kv", HEADS_MAX, &out->kv_heads, true},
        {"llama.attention.key_length", HEAD_SIZE_MAX, &out->head_size, true},
        {"llama.attention.value_length", HEAD_SIZE_MAX, &value_size, true},
        {"llama.rope.dimension_count", HEAD_SIZE_MAX, &out->rope_size, true},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && status == STATUS_OK; i++) {
        uint64_t value = 0;
        if (!sizes[i].optional || gguf_has(gguf, sizes[i].key))
            status = gguf_get_uint(gguf, sizes[i].key, 1, sizes[i].maximum, &value, err);
        *sizes[i].out = (size_t)value;
    }
    double epsilon = 0.0;
    if (status == STATUS_OK)
        status =
            gguf_get_float(gguf, "llama.attention.layer_norm_rms_epsilon", 0.0, 1.0, &epsilon, err);
    out->epsilon = (float)epsilon;
    if (status == STATUS_OK)
        status = check_heads(out, value_size, err);
    return status == STATUS_OK ? read_rope(out, gguf, err) : status;
}
