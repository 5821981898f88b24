// Screen layout of the dashboard: divides the screen into rectangles.  Used by the views.  No I/O,
// no global state.
#pragma once

#include <stdbool.h>

#include "client/tui/canvas.h"

// On a smaller screen the dashboard shows only a notice.
enum { LAYOUT_WIDTH_MIN = 60, LAYOUT_HEIGHT_MIN = 15 };

// The parts of the screen; a part with an empty rectangle is not drawn.
struct layout_frame {
    struct rect title;  // program, view, address, connection, clock
    struct rect status; // totals and losses
    struct rect banner; // errors
    struct rect body;   // the current view's panels
    struct rect footer; // key bindings
};

// True if the screen has the minimum size.
bool layout_fits(int width, int height);

// Computes the parts of a screen, with or without a banner.  All are empty if the screen is too
// small.
struct layout_frame layout_frame(int width, int height, bool banner);

// The height requested by one panel of a vertical stack.
struct layout_want {
    int minimum; // rows; the panel is hidden if it cannot have so many
    int wanted;  // rows that the panel can use
    // Panels with the highest rank are hidden first, and get rows up to `wanted` last.
    unsigned rank;
    bool grows; // the first such panel gets the rows left over when all panels have `wanted`
};

enum { LAYOUT_STACK_MAX = 8 };

// Divides the rows of `area` among `count` panels (LAYOUT_STACK_MAX at most), from top to bottom,
// and sets out[i] to the rectangle of panel i; a hidden panel gets an empty one.
void layout_stack(struct rect area, const struct layout_want *wants, unsigned count,
                  struct rect *out);

// Splits `area` into a left part of `left_width` columns and a right part, `gap` columns apart.
// The right part is empty if there is no room for it.
void layout_beside(struct rect area, int left_width, int gap, struct rect *left,
                   struct rect *right);

// The rows that a part of a panel has from a height of the panel on.
struct layout_step {
    int height, rows;
};

// The rows of the first step that is not higher than the panel; the steps fall to height 0.
int layout_rows(int height, const struct layout_step *steps);

// Returns a rectangle in the centre of `area`, of the given size but at most that of `area`.
struct rect layout_centre(struct rect area, int width, int height);
