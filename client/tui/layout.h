// Screen layout of the dashboard: divides the screen into rectangles by its size.  Pure: no
// side effects.
#ifndef INFERSTAT_TUI_LAYOUT_H
#define INFERSTAT_TUI_LAYOUT_H

#include <stdbool.h>

#include "client/tui/canvas.h"

// On a smaller screen the dashboard shows only a notice.
enum { LAYOUT_WIDTH_MIN = 60, LAYOUT_HEIGHT_MIN = 16 };

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

// The parts of a screen, with or without a banner; all empty if the screen is too small.
struct layout_frame layout_frame(int width, int height, bool banner);

// The height requested by one panel of a vertical stack.
struct layout_want {
    int minimum;   // rows without which the panel is hidden
    int wanted;    // rows it can use
    unsigned rank; // the highest is hidden first and gets rows above `minimum` last
    bool grows;    // gets the rows that no panel wants
};

enum { LAYOUT_STACK_MAX = 8 };

// Divides the rows of `area` among `count` panels, from top to bottom.  A hidden panel gets an
// empty rectangle.
void layout_stack(struct rect area, const struct layout_want *wants, unsigned count,
                  struct rect *out);

// Splits `area` into a left and a right part with `gap` columns between them.
void layout_beside(struct rect area, int left_width, int gap, struct rect *left,
                   struct rect *right);

// A rectangle of the given size, at most that of `area`, centred in `area`.
struct rect layout_centre(struct rect area, int width, int height);

#endif
