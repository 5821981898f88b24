// Merging a text's characters into tokens.  For tokenizer.c.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_MERGE_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_MERGE_H

#include "server/workload/llm/tokenizer.h"
#include "server/workload/llm/vocabulary.h"

// Appends one id; the list's capacity is the next power of two of its count.
MUST_CHECK enum status token_list_add(struct token_list *list, uint32_t id, struct error *err);

// Splits `size` bytes into UTF-8 characters (a malformed byte is one of its own),
// merges neighbours while a token is spelled like the two together, the best
// score first and of equal ones the leftmost, and appends the tokens; characters
// without a token are spelled in byte tokens.
MUST_CHECK enum status merge_text(const struct vocabulary *vocabulary, const char *text,
                                  size_t size, struct token_list *out, struct error *err);

#endif
