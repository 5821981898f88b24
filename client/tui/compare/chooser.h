// The choice of what is compared (comparison.h): what kind, which side A, which side B.  No I/O, no
// global state.
#pragma once

#include <stddef.h>

#include "client/tui/key_bindings.h"
#include "client/tui/model.h"

void chooser_open(struct model *model);

// The choices of the step; returns their number.  Names are not escaped and are borrowed from the
// model's answers.
size_t chooser_choices(const struct model *model, const char *choices[CHOOSER_MAX]);

// Moves the cursor, goes a step on or back, or sets the model's comparison after the last step.
// Returns true if it has set it.
bool chooser_act(struct model *model, enum action action);
