#include "server/workload/llm/architecture.h"

#include <stdio.h>

#include "common/core/base/text.h"

static const struct architecture architectures[] = {
    // Also Mistral, whose first version has a window, and Mixtral, which has experts.
    {.name = "llama", .pairs = ROPE_ADJACENT, .window = true, .experts = EXPERTS_OPTIONAL},
    {.name = "qwen2", .pairs = ROPE_HALVES, .biases = true},
    {.name = "qwen3", .pairs = ROPE_HALVES, .head_norms = true},
    {.name = "qwen3moe", .pairs = ROPE_HALVES, .head_norms = true, .experts = EXPERTS_ALWAYS},
};

enum { ARCHITECTURE_COUNT = sizeof architectures / sizeof architectures[0] };

enum status architecture_find(const struct architecture **out, const struct gguf *gguf,
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

const char *architecture_key(char out[ARCHITECTURE_KEY_SIZE],
                             const struct architecture *architecture, const char *suffix)
{
    (void)snprintf(out, ARCHITECTURE_KEY_SIZE, "%s.%s", architecture->name, suffix);
    return out;
}
