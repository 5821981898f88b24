// Filter prompt of the dashboard: lets the user edit the filter as text of the query language, such
// as "where model=x since 1h".  No I/O; model->when is called to parse times.
#ifndef INFERSTAT_TUI_FILTER_PROMPT_H
#define INFERSTAT_TUI_FILTER_PROMPT_H

#include <stdint.h>

#include "client/tui/key_bindings.h"
#include "client/tui/model.h"

// Sets the initial filter, given on the command line; NULL: no filter.
void filter_prompt_set(struct model *model, const struct query_filter *filter);

// Opens the prompt with the current filter.
void filter_prompt_open(struct model *model);

// Handles a pressed key.  `action` is the key's binding; if that is ACTION_NONE, the character
// `code` is inserted.  Returns a bit set of enum effect (update.h).
unsigned filter_prompt_act(struct model *model, enum action action, uint32_t code);

#endif
