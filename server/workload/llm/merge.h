// Byte-pair encoding (BPE): merges characters into tokens.  For tokenizer.c only.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_MERGE_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_MERGE_H

#include "server/workload/llm/tokenizer.h"
#include "server/workload/llm/vocabulary.h"

// Appends one id.  Fails with STATUS_NOMEM.
MUST_CHECK enum status token_list_add(struct token_list *list, uint32_t id, struct error *err);

// Splits `size` bytes into UTF-8 characters (a malformed byte counts as one), merges neighbours
// that form a token, best score first and leftmost among equals, and appends the tokens.
// Characters without a token become byte tokens.
MUST_CHECK enum status merge_text(const struct vocabulary *vocabulary, const char *text,
                                  size_t size, struct token_list *out, struct error *err);

#endif
