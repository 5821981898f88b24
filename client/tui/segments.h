// A line of short texts; the least important ones are omitted if the line is full.  Pure.
#ifndef INFERSTAT_TUI_SEGMENTS_H
#define INFERSTAT_TUI_SEGMENTS_H

#include "client/tui/canvas.h"

enum { SEGMENTS_MAX = 24, SEGMENT_TEXT_SIZE = 160, SEGMENT_KEY_SIZE = 24 };

struct segment {
    unsigned rank; // the highest is omitted first; 0 never
    enum style style;
    int width_max;              // maximum columns of the text; 0: unlimited
    char key[SEGMENT_KEY_SIZE]; // a key, drawn before the text; may be empty
    char text[SEGMENT_TEXT_SIZE];
};

// Empty when zeroed, except for the separator.
struct segments {
    const char *separator; // borrowed
    unsigned count;
    struct segment items[SEGMENTS_MAX];
};

// Adds a text; more than SEGMENTS_MAX are ignored, too long ones truncated.
void segments_add(struct segments *segments, unsigned rank, enum style style, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));
// The same for an untrusted text, at most `width_max` columns.
void segments_add_name(struct segments *segments, unsigned rank, enum style style, int width_max,
                       const char *name);
// The same for a key and what it does.
void segments_add_key(struct segments *segments, unsigned rank, const char *key, const char *text);

// The columns that drawing into `width` takes.
int segments_width(const struct segments *segments, int width);

// Draws what fits into `width` columns, in the order added.  Returns the columns
// used.
int segments_draw(const struct segments *segments, struct canvas *canvas, struct rect area, int x,
                  int y, int width, enum align align);

#endif
