#include "server/workload/llm/llama.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

// Limits of accepted models, beyond all known ones: the bytes of a session's KV cache,
// 8 * context * layers * heads * head_size, fit 64 bits.
enum {
    CONTEXT_MAX = 1 << 24,
    DIM_MAX = 1 << 20,
    FF_MAX = 1 << 22,
    LAYERS_MAX = 1 << 12,
    HEADS_MAX = 1 << 14,
    HEAD_SIZE_MAX = 1024,
    EXPERTS_MAX = 1024,
    KEY_SIZE = 96,
    SHOWN_SIZE = 80, // of a key in a message
};

static const struct architecture architectures[] = {
    // Also Mistral, whose first version has a window, and Mixtral, which has experts.
    {.name = "llama", .pairs = ROPE_ADJACENT, .window = true, .experts = EXPERTS_OPTIONAL},
    {.name = "qwen2", .pairs = ROPE_HALVES, .biases = true},
    {.name = "qwen3", .pairs = ROPE_HALVES, .head_norms = true},
    {.name = "qwen3moe", .pairs = ROPE_HALVES, .head_norms = true, .experts = EXPERTS_ALWAYS},
};

enum { ARCHITECTURE_COUNT = sizeof architectures / sizeof architectures[0] };

static enum status find_architecture(const struct architecture **out, const struct gguf *gguf,
                                     struct error *err)
{
    struct gguf_text name;
    enum status status = gguf_get_text(gguf, "general.architecture", &name, err);
    if (status != STATUS_OK)
        return status;
    char known[64] = "";
    size_t length = 0;
    for (size_t i = 0; i < ARCHITECTURE_COUNT; i++) {
        if (gguf_text_is(&name, architectures[i].name)) {
            *out = &architectures[i];
            return STATUS_OK;
        }
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "",
                                   architectures[i].name);
    }
    char shown[40];
    return error_set(err, STATUS_UNSUPPORTED,
                     "key 'general.architecture': architecture '%s' is not supported, only %s",
                     text_escape(shown, sizeof shown, name.data, name.size), known);
}

// Writes the key "NAME.SUFFIX" of an architecture to `out` and returns it.
static const char *full_key(char out[KEY_SIZE], const struct architecture *architecture,
                            const char *suffix)
{
    (void)snprintf(out, KEY_SIZE, "%s.%s", architecture->name, suffix);
    return out;
}

// What is read before it is checked.
struct values {
    struct llama_config config;
    size_t value_size, expert_ff; // 0: not given
    double epsilon, linear;       // `linear`: the factor under its old key
    struct gguf_text scaling;     // of rope; `data` NULL: not given
};

enum kind { SIZE, REAL, TEXT, NOTE }; // a note changes nothing in the computation

enum presence {
    REQUIRED,
    OPTIONAL,
    WITH_WINDOW,  // optional where architecture->window, else not understood
    WITH_EXPERTS, // the same of architecture->experts
};

// A key that is understood: its name behind that of the architecture, its member of struct values
// (size_t, double or struct gguf_text) and the limits of its value.
static const struct key_line {
    const char *name;
    enum kind kind;
    size_t place;
    double minimum, maximum;
    enum presence presence;
} key_lines[] = {
#define CONFIG(member) offsetof(struct values, config.member)
    {"context_length", SIZE, CONFIG(context), 1, CONTEXT_MAX, REQUIRED},
    {"embedding_length", SIZE, CONFIG(dim), 1, DIM_MAX, REQUIRED},
    {"feed_forward_length", SIZE, CONFIG(ff), 1, FF_MAX, OPTIONAL},
    {"block_count", SIZE, CONFIG(layers), 1, LAYERS_MAX, REQUIRED},
    {"attention.head_count", SIZE, CONFIG(heads), 1, HEADS_MAX, REQUIRED},
    {"attention.head_count_kv", SIZE, CONFIG(kv_heads), 1, HEADS_MAX, OPTIONAL},
    {"attention.key_length", SIZE, CONFIG(head_size), 1, HEAD_SIZE_MAX, OPTIONAL},
    {"attention.value_length", SIZE, offsetof(struct values, value_size), 1, HEAD_SIZE_MAX,
     OPTIONAL},
    {"attention.layer_norm_rms_epsilon", REAL, offsetof(struct values, epsilon), 0, 1, REQUIRED},
    {"attention.sliding_window", SIZE, CONFIG(window), 0, UINT32_MAX, WITH_WINDOW},
    {"rope.dimension_count", SIZE, CONFIG(rope.size), 1, HEAD_SIZE_MAX, OPTIONAL},
    {"rope.freq_base", REAL, CONFIG(rope.base), 1, 1e12, OPTIONAL},
    {"rope.scale_linear", REAL, offsetof(struct values, linear), 1e-3, 1e6, OPTIONAL},
    {"rope.scaling.type", TEXT, offsetof(struct values, scaling), 0, 0, OPTIONAL},
    {"rope.scaling.factor", REAL, CONFIG(rope.factor), 1e-3, 1e6, OPTIONAL},
    {"rope.scaling.attn_factor", REAL, CONFIG(rope.magnitude), 1e-3, 1e3, OPTIONAL},
    {"rope.scaling.original_context_length", SIZE, CONFIG(rope.context), 1, CONTEXT_MAX, OPTIONAL},
    {"rope.scaling.finetuned", NOTE, 0, 0, 0, OPTIONAL},
    {"rope.scaling.yarn_beta_fast", REAL, CONFIG(rope.fast), 1e-3, 1e6, OPTIONAL},
    {"rope.scaling.yarn_beta_slow", REAL, CONFIG(rope.slow), 1e-3, 1e6, OPTIONAL},
    {"expert_count", SIZE, CONFIG(experts), 0, EXPERTS_MAX, WITH_EXPERTS},
    {"expert_used_count", SIZE, CONFIG(experts_used), 0, EXPERTS_MAX, WITH_EXPERTS},
    {"expert_feed_forward_length", SIZE, offsetof(struct values, expert_ff), 1, FF_MAX,
     WITH_EXPERTS},
#undef CONFIG
};

enum { KEY_LINES = sizeof key_lines / sizeof key_lines[0] };

static bool is_understood(const struct key_line *line, const struct architecture *architecture)
{
    return (line->presence != WITH_WINDOW || architecture->window) &&
           (line->presence != WITH_EXPERTS || architecture->experts != EXPERTS_NEVER);
}

static enum status read_key(struct values *values, const struct gguf *gguf,
                            const struct key_line *line, struct error *err)
{
    char key[KEY_SIZE];
    (void)full_key(key, values->config.architecture, line->name);
    if (line->presence != REQUIRED && !gguf_has(gguf, key))
        return STATUS_OK;
    void *place = (unsigned char *)values + line->place;
    uint64_t size = 0;
    enum status status = STATUS_OK;
    switch (line->kind) {
    case SIZE:
        status =
            gguf_get_uint(gguf, key, (uint64_t)line->minimum, (uint64_t)line->maximum, &size, err);
        *(size_t *)place = (size_t)size;
        break;
    case REAL:
        status = gguf_get_float(gguf, key, line->minimum, line->maximum, place, err);
        break;
    case TEXT:
        status = gguf_get_text(gguf, key, place, err);
        break;
    case NOTE:
        break;
    }
    return status;
}

static bool begins_with(const struct gguf_text *text, const char *start)
{
    return text->size >= strlen(start) && memcmp(text->data, start, strlen(start)) == 0;
}

// `name` is that of a key behind that of the architecture.  In these groups a key that is not
// understood means another computation.
static bool is_unknown(const struct gguf_text *name, const struct architecture *architecture)
{
    if (!begins_with(name, "attention.") && !begins_with(name, "rope.") &&
        !begins_with(name, "expert_"))
        return false;
    for (size_t i = 0; i < KEY_LINES; i++)
        if (gguf_text_is(name, key_lines[i].name) && is_understood(&key_lines[i], architecture))
            return false;
    return true;
}

static enum status refuse_unknown(const struct gguf *gguf, const struct architecture *architecture,
                                  struct error *err)
{
    char prefix[KEY_SIZE];
    char shown[SHOWN_SIZE];
    const size_t length = strlen(full_key(prefix, architecture, ""));
    for (size_t i = 0; i < gguf_key_count(gguf); i++) {
        const struct gguf_text *key = gguf_key_at(gguf, i);
        if (!begins_with(key, prefix))
            continue;
        const struct gguf_text name = {.data = key->data + length, .size = key->size - length};
        if (is_unknown(&name, architecture))
            return error_set(err, STATUS_UNSUPPORTED, "key '%s' is not supported",
                             text_escape(shown, sizeof shown, key->data, key->size));
    }
    return STATUS_OK;
}

// Completes and checks the heads; `value_size` is that of their values, 0: not given.
static enum status check_heads(struct llama_config *config, size_t value_size, struct error *err)
{
    const char *name = config->architecture->name;
    if (config->kv_heads == 0)
        config->kv_heads = config->heads;
    if (config->heads % config->kv_heads != 0)
        return error_set(
            err, STATUS_CORRUPT,
            "key '%s.attention.head_count': %zu heads cannot share %zu key/value heads", name,
            config->heads, config->kv_heads);
    if (config->head_size == 0 && config->dim % config->heads != 0)
        return error_set(
            err, STATUS_CORRUPT,
            "key '%s.attention.head_count': an embedding of %zu cannot be cut into %zu heads", name,
            config->dim, config->heads);
    if (config->head_size == 0)
        config->head_size = config->dim / config->heads;
    if (config->head_size > HEAD_SIZE_MAX)
        return error_set(err, STATUS_CORRUPT,
                         "key '%s.embedding_length': heads of %zu elements: more than %d", name,
                         config->head_size, HEAD_SIZE_MAX);
    if (value_size != 0 && value_size != config->head_size)
        return error_set(err, STATUS_UNSUPPORTED,
                         "key '%s.attention.value_length': heads of %zu keys and %zu values", name,
                         config->head_size, value_size);
    return STATUS_OK;
}

// A factor without a type is linear: older files have only the factor.
static enum status check_rope(struct values *values, struct error *err)
{
    struct llama_config *config = &values->config;
    struct rope *rope = &config->rope;
    const struct gguf_text *type = &values->scaling;
    if (rope->size == 0)
        rope->size = config->head_size;
    if (rope->size > config->head_size || rope->size % 2 != 0)
        return error_set(err, STATUS_CORRUPT,
                         "key '%s.rope.dimension_count': %zu rotary elements do not fit a head of "
                         "%zu in pairs",
                         config->architecture->name, rope->size, config->head_size);
    if (rope->context == 0)
        rope->context = config->context;
    if (rope->factor == 0.0)
        rope->factor = values->linear;
    if (type->data && gguf_text_is(type, "none"))
        rope->factor = 1.0;
    rope->yarn = type->data && gguf_text_is(type, "yarn");
    char shown[SHOWN_SIZE];
    if (type->data && !rope->yarn && !gguf_text_is(type, "none") && !gguf_text_is(type, "linear"))
        return error_set(
            err, STATUS_UNSUPPORTED, "key '%s.rope.scaling.type': scaling '%s' is not supported",
            config->architecture->name, text_escape(shown, sizeof shown, type->data, type->size));
    if (type->data && rope->factor == 0.0)
        return error_set(err, STATUS_NOT_FOUND, "key '%s.rope.scaling.factor' is missing",
                         config->architecture->name);
    if (rope->factor == 0.0)
        rope->factor = 1.0;
    return STATUS_OK;
}

static enum status check_experts(struct values *values, struct error *err)
{
    struct llama_config *config = &values->config;
    const char *name = config->architecture->name;
    if (config->experts == 0 && config->architecture->experts == EXPERTS_ALWAYS)
        return error_set(err, STATUS_NOT_FOUND, "key '%s.expert_count' is missing or 0", name);
    if (config->experts > 0 &&
        (config->experts_used == 0 || config->experts_used > config->experts))
        return error_set(err, STATUS_CORRUPT, "key '%s.expert_used_count' is %zu of %zu experts",
                         name, config->experts_used, config->experts);
    if (config->experts > 0 && values->expert_ff > 0)
        config->ff = values->expert_ff;
    if (config->ff == 0)
        return error_set(err, STATUS_NOT_FOUND, "key '%s.feed_forward_length' is missing", name);
    return STATUS_OK;
}

enum status llama_config_read(struct llama_config *out, const struct gguf *gguf, size_t vocabulary,
                              struct error *err)
{
    struct values values = {
        .config = {.vocabulary = vocabulary,
                   .rope = {.base = 10000.0, .magnitude = 1.0, .fast = 32.0, .slow = 1.0}},
    };
    struct llama_config *config = &values.config;
    memset(out, 0, sizeof *out);
    enum status status = find_architecture(&config->architecture, gguf, err);
    for (size_t i = 0; i < KEY_LINES && status == STATUS_OK; i++)
        if (is_understood(&key_lines[i], config->architecture))
            status = read_key(&values, gguf, &key_lines[i], err);
    if (status == STATUS_OK)
        status = refuse_unknown(gguf, config->architecture, err);
    if (status == STATUS_OK)
        status = check_heads(config, values.value_size, err);
    if (status == STATUS_OK)
        status = check_rope(&values, err);
    if (status == STATUS_OK)
        status = check_experts(&values, err);
    config->epsilon = (float)values.epsilon;
    if (status == STATUS_OK)
        *out = *config;
    return status;
}
