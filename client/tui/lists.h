// The lists of the view's panels and of overlays that keys and the mouse move in.  No I/O, no
// global state.
#pragma once

#include "client/tui/view.h"

// A list: its rows, and how many lines of them are visible.
struct list {
    const struct grid *grid;     // NULL: text that scrolls, without a cursor
    const struct result *result; // of a grid
    struct grid_state *state;
    size_t *top; // without a grid
    size_t rows, page;
};

// The list of panel `number` of the current view, in `area`; and the one that takes the keys: of
// the focused panel, or of the overlay.
struct list list_of_panel(struct model *model, unsigned number, struct rect area);
struct list list_focused(struct model *model);

// Scrolls by `rows`, not beyond the last page nor before the first row.  The cursor of a grid stays
// visible.
void list_scroll(struct list list, long long rows);

// Moves the cursor of a grid by `rows`, or scrolls text.
void list_move(struct list list, long long rows);

// After an answer or a new size: finds the cursors' rows again in all panels of the view.
void lists_keep(struct model *model);
