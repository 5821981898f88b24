// What the mouse points at.  No I/O, no global state.
#pragma once

#include <stdint.h>

#include "client/tui/key_bindings.h"
#include "client/tui/model.h"

// Takes a press at `x`, `y`: on a panel, it moves the focus there; on a heading, sorts by that
// column, or reverses the order; on a row, moves the cursor there, or opens its group.  Returns the
// action that a press stands for, of ACTION_VIEW with its key: on the cursor's row, all of it; on
// a view's name, that view; on the window, the next one.
enum action mouse_press(struct model *model, int x, int y, uint32_t *code);

// Scrolls by `rows` what lies at `x`, `y`; returns the action where one does that.
enum action mouse_turn(struct model *model, int x, int y, int rows);
