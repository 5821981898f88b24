// Completes what is typed in the filter's prompt.  No I/O, no global state.
#pragma once

#include "client/tui/model.h"

// Completes the word before the prompt's cursor, as far as that is clear, to a name that the
// dashboard's answers have: of the dimension after "model=" and the like, else of any, or the start
// of a condition.  model->prompt.choices tells the possible words if there are several.
void completion_complete(struct model *model);
