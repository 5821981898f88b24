// Computes the layout from the size of the screen alone.  Pure.
#ifndef INFERSTAT_TUI_LAYOUT_H
#define INFERSTAT_TUI_LAYOUT_H

#include <stdbool.h>

#include "client/tui/rect.h"

// Below this size only a notice is shown.
enum { LAYOUT_WIDTH_MIN = 60, LAYOUT_HEIGHT_MIN = 16 };

// The parts of the screen; empty ones are not shown.
struct layout_frame {
    struct rect title;  // program, view, address, connection, clock
    struct rect status; // totals and losses
    struct rect banner; // errors
    struct rect body;   // the view
    struct rect footer; // keys
};

// True if the screen has the minimum size.
bool layout_fits(int width, int height);

// The frame of a screen of a size that fits, all empty for one that does not.
struct layout_frame layout_frame(int width, int height, bool banner);

// A panel's request for rows in a column of panels.
struct layout_want {
    int minimum;   // minimum rows; it is hidden with fewer
    int wanted;    // maximum useful rows
    unsigned rank; // the highest is hidden first, and gets extra rows last
    bool grows;    // takes the remaining rows
};

enum { LAYOUT_STACK_MAX = 8 };

// Divides the rows of `area` among `count` panels, from top to bottom.  A panel
// without room gets an empty rectangle.
void layout_stack(struct rect area, const struct layout_want *wants, unsigned count,
                  struct rect *out);

// Splits an area into a left and a right one, with `gap` columns between.
void layout_beside(struct rect area, int left_width, int gap, struct rect *left,
                   struct rect *right);

// A rectangle of that size in the middle of `area`, cut to it.
struct rect layout_centre(struct rect area, int width, int height);

#endif
