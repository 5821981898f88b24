// The prompt in which the user says what is to be shown, in the words of the query
// language: "where model=x since 1h".  Pure: how times are read is model->when.
#ifndef INFERSTAT_TUI_FILTER_H
#define INFERSTAT_TUI_FILTER_H

#include <stdint.h>

#include "client/tui/keys.h"
#include "client/tui/model.h"

// What the command line asked for; NULL: everything.
void filter_give(struct model *model, const struct query_filter *filter);

// Opens the prompt with the filter there is.
void filter_open(struct model *model);

// What a key does in the prompt; `code` is the character of one that has no action.
// Returns effects (update.h).
unsigned filter_act(struct model *model, enum action action, uint32_t code);

#endif
