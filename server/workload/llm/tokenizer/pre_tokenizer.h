// Pre-tokenizers of byte-level vocabularies: cut a text into words, within which tokens are merged.
// Each is one or more regular expressions of its family of models, run by PCRE2 with the
// properties of Unicode.  Immutable; any thread may use one.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "server/workload/llm/gguf.h"

struct pre_tokenizer;

// Creates the pre-tokenizer with a name of the key tokenizer.ggml.pre.  Fails with
// STATUS_UNSUPPORTED if it is unknown, or STATUS_NOMEM.
MUST_CHECK enum status pre_tokenizer_new(struct pre_tokenizer **out, const struct gguf_text *name,
                                         struct error *err);

// Accepts NULL.
void pre_tokenizer_free(struct pre_tokenizer *pre_tokenizer);

// True for the family of Llama 3.
bool pre_tokenizer_is_llama3(const struct pre_tokenizer *pre_tokenizer);

// Calls `word` with each word of `size` bytes of text, in order; together they are the text.  Bytes
// that are not UTF-8 are in no expression's matches.  Ends with the first error of `word`, or with
// STATUS_NOMEM.
typedef enum status pre_tokenizer_word(void *context, const char *text, size_t size,
                                       struct error *err);
MUST_CHECK enum status pre_tokenizer_run(const struct pre_tokenizer *pre_tokenizer,
                                         const char *text, size_t size, pre_tokenizer_word *word,
                                         void *context, struct error *err);
