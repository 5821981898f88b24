// A grid of character cells that views draw on, the screen shows and tests read
// as text.  Pure.
//
// Drawing takes the area it may touch and coordinates relative to it; what lies
// outside of the area or of the canvas is cut, never drawn elsewhere.
#ifndef INFERSTAT_TUI_CANVAS_H
#define INFERSTAT_TUI_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/rect.h"
#include "common/core/status.h"

// What a cell means; the screen says how that looks.  Nothing is told by style
// alone.
enum style {
    STYLE_PLAIN,
    STYLE_DIM,     // secondary: rules, units, hints
    STYLE_STRONG,  // what the eye should find first
    STYLE_TITLE,   // a panel's title
    STYLE_FOCUS,   // the title of the panel that takes the keys
    STYLE_HEADING, // a column's heading
    STYLE_SORTED,  // the heading of the column sorted by
    STYLE_KEY,     // a key that can be pressed
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_BAD,
    STYLE_BAR,      // bars and plots
    STYLE_BAR_REST, // the part of a bar that belongs to nobody
    STYLE_COUNT
};

enum align { ALIGN_LEFT, ALIGN_RIGHT };

struct cell {
    uint32_t code; // Unicode; 0 in the second column of a wide character
    uint8_t width; // 1 or 2; 0 in that second column
    uint8_t style; // enum style
};

struct canvas {
    int width, height;
    bool ascii; // characters beyond ASCII are drawn as their stand-ins
    struct cell *cells;
};

enum { CANVAS_SIDE_MAX = 4096 };

// A canvas of 0 x 0 cells.
void canvas_init(struct canvas *canvas, bool ascii);
void canvas_deinit(struct canvas *canvas);

// Makes the canvas that size (each side cut to 0..CANVAS_SIDE_MAX) and clears it.
// STATUS_NOMEM leaves it 0 x 0.
MUST_CHECK enum status canvas_resize(struct canvas *canvas, int width, int height);
void canvas_clear(struct canvas *canvas);

// The whole canvas.
struct rect canvas_area(const struct canvas *canvas);

// The cell at a place inside the canvas.
const struct cell *canvas_cell(const struct canvas *canvas, int x, int y);

// Draws UTF-8 text; malformed bytes become '?', invisible characters are left
// out.  A wide character of which only half would be visible is not drawn.
// Returns the columns the text takes, visible or not.
int canvas_put(struct canvas *canvas, struct rect area, int x, int y, enum style style,
               const char *text);

// The same for one character.
int canvas_put_code(struct canvas *canvas, struct rect area, int x, int y, enum style style,
                    uint32_t code);

// Draws text into exactly `width` columns, aligned; what is too long ends in "…".
void canvas_fit(struct canvas *canvas, struct rect area, int x, int y, int width, enum align align,
                enum style style, const char *text);

// Draws one character over and over, `width` columns of it.
void canvas_line(struct canvas *canvas, struct rect area, int x, int y, int width, enum style style,
                 uint32_t code);

// Makes every cell of the area a space.
void canvas_blank(struct canvas *canvas, struct rect area);

// Columns that text takes on a canvas.
int canvas_text_width(const char *text);

// The canvas as text: a line a row, without trailing spaces, each ended by a
// line feed.  To be freed; NULL when out of memory.
char *canvas_text(const struct canvas *canvas);

#endif
