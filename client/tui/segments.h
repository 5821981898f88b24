// Status line widget: draws short texts in one line of the screen, such as the footer.  If the line
// is too narrow, it omits the texts with the highest ranks.  No I/O, no global state.
#pragma once

#include "client/tui/canvas.h"

enum { SEGMENTS_MAX = 24, SEGMENT_TEXT_SIZE = 160, SEGMENT_KEY_SIZE = 24 };

struct segment {
    unsigned rank; // all texts of the highest rank are omitted first; 0: never omitted
    enum style style;
    int width_max;              // columns to which the text is truncated; 0: unlimited
    char key[SEGMENT_KEY_SIZE]; // name of a keyboard key, drawn before the text; "": none
    char text[SEGMENT_TEXT_SIZE];
};

// The texts of a line.  Initialise `separator` and zero the other members.
struct segments {
    const char *separator; // drawn between texts; borrowed
    unsigned count;
    struct segment items[SEGMENTS_MAX];
};

// Adds a formatted text.  Truncates the text to SEGMENT_TEXT_SIZE; ignores it if the line already
// has SEGMENTS_MAX texts.
void segments_add(struct segments *segments, unsigned rank, enum style style, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));
// Adds the text `name`, which is drawn in at most `width_max` columns.
void segments_add_name(struct segments *segments, unsigned rank, enum style style, int width_max,
                       const char *name);
// Adds a keyboard key and the label of its action.
void segments_add_key(struct segments *segments, unsigned rank, const char *key, const char *text);

// Returns the number of columns that all texts need.
int segments_total_width(const struct segments *segments);

// Returns the number of columns that segments_draw uses if it has `width` columns.
int segments_width(const struct segments *segments, int width);

// Draws the texts that fit into `width` columns, from `x` in row `y` of `area`, in the order in
// which they were added.  Returns the number of columns used.
int segments_draw(const struct segments *segments, struct canvas *canvas, struct rect area, int x,
                  int y, int width, enum align align);
