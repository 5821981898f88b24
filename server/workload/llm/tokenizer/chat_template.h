// Chat templates: the text that a model trained on conversations expects before and after a message
// of the user.  There is no interpreter: the template in a model's file is recognised by its marks
// as one of those below, which are written out here for a single message without a system message.
#pragma once

#include <stddef.h>

#include "common/core/base/error.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/llm/tokenizer/tokenizer.h"

// Choices of the option --chat; from CHAT_NAMED on they name a template.
enum { CHAT_NONE, CHAT_AUTO, CHAT_NAMED };
#define CHAT_OPTION_HELP                                                                           \
    "put the prompt into the model's chat template: none (default), auto (as the file says), "     \
    "chatml, llama2, llama3, mistral, zephyr, deepseek-llm, deepseek-coder or deepseek3"

// The word of choice `i`; NULL after the last one.
const char *chat_template_word(unsigned int i);

struct chat_template;

// Sets `*out` to the template of `choice`: NULL for CHAT_NONE, and for CHAT_AUTO the one that the
// key tokenizer.chat_template of `gguf` has.  Fails with STATUS_NOT_FOUND if there is no such key,
// with STATUS_UNSUPPORTED if its template is none of those known.
MUST_CHECK enum status chat_template_choose(const struct chat_template **out, unsigned int choice,
                                            const struct gguf *gguf, struct error *err);

// Encodes a prompt as a message of the user and the beginning of the answer, or as it is if `chat`
// is NULL; the tokens for beginning and end of a text are added as the model expects.  Control
// tokens are recognised in the template only: where the marks are control tokens, no prompt can end
// its own message.  Fails as tokenizer_encode does.
MUST_CHECK enum status chat_template_encode(const struct chat_template *chat,
                                            const struct tokenizer *tokenizer, const char *text,
                                            size_t size, struct token_list *out, struct error *err);
