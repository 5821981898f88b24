// Byte-pair encoding (BPE): merges neighbouring characters into tokens.  Used only by tokenizer.c.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_MERGE_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_MERGE_H

#include "server/workload/llm/tokenizer.h"
#include "server/workload/llm/vocabulary.h"

// Appends `id` to `list`.  Fails with STATUS_NOMEM.
MUST_CHECK enum status token_list_add(struct token_list *list, uint32_t id, struct error *err);

// Splits `size` bytes of `text` into UTF-8 characters (a malformed byte counts as a character),
// merges neighbours that form a token, and appends the tokens to `out`.  The pair with the best
// score is merged first, the leftmost one of equals.  A character without a token becomes one token
// per byte.
MUST_CHECK enum status merge_text(const struct vocabulary *vocabulary, const char *text,
                                  size_t size, struct token_list *out, struct error *err);

#endif
