// Opens the prompts above a view and carries out the text typed into them: filter, search, export,
// clearing, alerts.  prompt.h edits the text.  No I/O, no global state.
#pragma once

#include "client/tui/model.h"

void prompts_open(struct model *model, enum overlay overlay, const char *text);

// Opens OVERLAY_ACKNOWLEDGE or OVERLAY_SILENCE, if the cursor is on an open alert.
void prompts_open_alert(struct model *model, enum overlay overlay);

// Carries out a key of the open prompt; `code` is the key of an action that is bound to none: a
// character.  Returns a bit set of enum effect (update.h).
unsigned prompts_act(struct model *model, enum action action, uint32_t code);

// Searches for model->search from the cursor's row on; `step` as in grid_rows_find (grid_rows.h).
void prompts_find(struct model *model, int step);
