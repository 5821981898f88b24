#include "server/workload/llm/tokenizer/chat_template.h"

#include <stdlib.h>
#include <string.h>

struct chat_template {
    const char *name;
    const char *marks[2]; // texts that a file's template has if it is this one; NULL: no second
    const char *before, *after;
};

// A template that has the marks of several is the first of them.
static const struct chat_template templates[] = {
    {"chatml", {"<|im_start|>"}, "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"},
    {"llama3",
     {"<|start_header_id|>"},
     "<|start_header_id|>user<|end_header_id|>\n\n",
     "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
    // Also that of the first Mistral and Mixtral, whose marks are plain text too.
    {"llama2", {"[INST]", " [/INST]"}, "[INST] ", " [/INST]"},
    {"mistral", {"[INST]"}, "[INST] ", "[/INST]"},
    {"zephyr", {"<|user|>", "<|assistant|>"}, "<|user|>\n", "</s>\n<|assistant|>\n"},
    {"deepseek-coder", {"### Instruction:"}, "### Instruction:\n", "\n### Response:\n"},
    {"deepseek-llm", {"User: ", "Assistant:"}, "User: ", "\n\nAssistant:"},
    {"deepseek3", {"<｜User｜>", "<｜Assistant｜>"}, "<｜User｜>", "<｜Assistant｜>"},
};

enum { TEMPLATE_COUNT = sizeof templates / sizeof *templates };

const char *chat_template_word(unsigned int i)
{
    static const char *const words[] = {[CHAT_NONE] = "none", [CHAT_AUTO] = "auto"};
    if (i < CHAT_NAMED)
        return words[i];
    return i - CHAT_NAMED < TEMPLATE_COUNT ? templates[i - CHAT_NAMED].name : NULL;
}

static bool has_mark(const struct gguf_text *text, const char *mark)
{
    return !mark || memmem(text->data, text->size, mark, strlen(mark)) != NULL;
}

enum status chat_template_choose(const struct chat_template **out, unsigned int choice,
                                 const struct gguf *gguf, struct error *err)
{
    *out = choice >= CHAT_NAMED ? &templates[choice - CHAT_NAMED] : NULL;
    if (choice != CHAT_AUTO)
        return STATUS_OK;
    struct gguf_text text;
    enum status status = gguf_get_text(gguf, "tokenizer.chat_template", &text, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "no chat template (--chat names one)");
    for (size_t i = 0; i < TEMPLATE_COUNT && !*out; i++)
        if (has_mark(&text, templates[i].marks[0]) && has_mark(&text, templates[i].marks[1]))
            *out = &templates[i];
    return *out ? STATUS_OK
                : error_set(err, STATUS_UNSUPPORTED,
                            "tokenizer.chat_template is none that is known (--chat names one)");
}

enum status chat_template_encode(const struct chat_template *chat,
                                 const struct tokenizer *tokenizer, const char *text, size_t size,
                                 struct token_list *out, struct error *err)
{
    struct encode_options options = {.add_special = true};
    if (!chat)
        return tokenizer_encode(tokenizer, text, size, options, out, err);
    const size_t before = strlen(chat->before), after = strlen(chat->after);
    char *all = malloc(before + size + after);
    if (!all)
        return error_no_memory(err, "prompt");
    memcpy(all, chat->before, before);
    memcpy(all + before, text, size);
    memcpy(all + before + size, chat->after, after);
    options.parse_special = true;
    options.plain_from = before;
    options.plain_to = before + size;
    enum status status = tokenizer_encode(tokenizer, all, before + size + after, options, out, err);
    free(all);
    return status;
}
