// Status line of short texts, such as title, totals and footer: omits the texts with the highest
// ranks until the rest fits.  Pure.
#ifndef INFERSTAT_TUI_SEGMENTS_H
#define INFERSTAT_TUI_SEGMENTS_H

#include "client/tui/canvas.h"

enum { SEGMENTS_MAX = 24, SEGMENT_TEXT_SIZE = 160, SEGMENT_KEY_SIZE = 24 };

struct segment {
    unsigned rank; // the highest is omitted first; 0: never omitted
    enum style style;
    int width_max;              // columns to which the text is truncated; 0: unlimited
    char key[SEGMENT_KEY_SIZE]; // name of a key, drawn before the text; may be empty
    char text[SEGMENT_TEXT_SIZE];
};

// Initialise with zeroes and a separator.
struct segments {
    const char *separator; // borrowed
    unsigned count;
    struct segment items[SEGMENTS_MAX];
};

// Adds a text.  Truncates it to SEGMENT_TEXT_SIZE; ignores it if there are SEGMENTS_MAX already.
void segments_add(struct segments *segments, unsigned rank, enum style style, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));
// As segments_add, for a text that is not a format; drawn in at most `width_max` columns.
void segments_add_name(struct segments *segments, unsigned rank, enum style style, int width_max,
                       const char *name);
// As segments_add, for a key and the label of its action.
void segments_add_key(struct segments *segments, unsigned rank, const char *key, const char *text);

// Columns that segments_draw would use of `width`.
int segments_width(const struct segments *segments, int width);

// Draws the texts that fit into `width` columns, in the order added.  Returns the columns used.
int segments_draw(const struct segments *segments, struct canvas *canvas, struct rect area, int x,
                  int y, int width, enum align align);

#endif
