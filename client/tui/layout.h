// Where things stand, from the size of the screen alone.  Pure.
#ifndef INFERSTAT_TUI_LAYOUT_H
#define INFERSTAT_TUI_LAYOUT_H

#include <stdbool.h>

#include "client/tui/rect.h"

// Below this size nothing but a notice is shown.
enum { LAYOUT_WIDTH_MIN = 60, LAYOUT_HEIGHT_MIN = 16 };

// The parts around every view.  Empty ones are not shown.
struct layout_frame {
    struct rect title;  // program, view, address, connection, clock
    struct rect status; // totals and losses
    struct rect banner; // trouble
    struct rect body;   // the view
    struct rect footer; // keys
};

// Whether the screen has the least size.
bool layout_fits(int width, int height);

// The frame of a screen of a size that fits, all empty for one that does not.
struct layout_frame layout_frame(int width, int height, bool banner);

// What a panel asks of a column of panels.
struct layout_want {
    int minimum;   // rows below which it is better not shown
    int wanted;    // rows beyond which it gains nothing
    unsigned rank; // the highest is left out first, and gets more rows last
    bool grows;    // takes what nobody else wants
};

enum { LAYOUT_STACK_MAX = 8 };

// Shares the rows of `area` out among `count` panels, from top to bottom.  A panel
// without room gets an empty rectangle.
void layout_stack(struct rect area, const struct layout_want *wants, unsigned count,
                  struct rect *out);

// Parts an area into two beside each other, with `gap` columns between.
void layout_beside(struct rect area, int left_width, int gap, struct rect *left,
                   struct rect *right);

// A rectangle of that size in the middle of `area`, cut to it.
struct rect layout_centre(struct rect area, int width, int height);

#endif
