// The prompt that edits the filter, in the query language: "where model=x since 1h".  Pure:
// model->when parses times.
#ifndef INFERSTAT_TUI_FILTER_PROMPT_H
#define INFERSTAT_TUI_FILTER_PROMPT_H

#include <stdint.h>

#include "client/tui/key_bindings.h"
#include "client/tui/model.h"

// Sets the filter of the command line; NULL: everything.
void filter_prompt_set(struct model *model, const struct query_filter *filter);

// Opens the prompt with the current filter.
void filter_prompt_open(struct model *model);

// Handles a key in the prompt; `code` is the character if it has no action.  Returns effects
// (update.h).
unsigned filter_prompt_act(struct model *model, enum action action, uint32_t code);

#endif
