// Off-screen buffer of character cells (back buffer): the views draw on it and the screen
// (screen.h) shows it.  No I/O, no global state.
//
// Every drawing function clips to the rectangle `area`.  `x` and `y` are relative to the upper left
// corner of `area`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/status.h"

// A rectangle of cells; empty if its width or height is zero or negative.
struct rect {
    int x, y, width, height;
};

static inline bool rect_is_empty(struct rect rect)
{
    return rect.width <= 0 || rect.height <= 0;
}

static inline bool rect_contains(struct rect rect, int x, int y)
{
    return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

// The rectangle without its first `rows` rows.
static inline struct rect rect_below(struct rect rect, int rows)
{
    return (struct rect){rect.x, rect.y + rows, rect.width, rect.height - rows};
}

// Meaning of a cell's text; screen.c maps it to colours and attributes.  The text alone conveys the
// same information.
enum style {
    STYLE_PLAIN,
    STYLE_DIM,     // secondary: rules, units, hints
    STYLE_STRONG,  // most important text
    STYLE_TITLE,   // a panel's title
    STYLE_FOCUS,   // the title of the focused panel
    STYLE_HEADING, // a column's heading
    STYLE_SORTED,  // the heading of the column sorted by
    STYLE_KEY,     // the name of a keyboard key
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_BAD,
    STYLE_BAR,      // bars and plots
    STYLE_BAR_REST, // the unused part of a bar
    STYLE_COUNT
};

enum align { ALIGN_LEFT, ALIGN_RIGHT };

struct cell {
    uint32_t code; // Unicode character; 0 in the second column of a wide character
    uint8_t width; // columns: 1 or 2; 0 in the second column of a wide character
    uint8_t style; // enum style
    bool reversed; // foreground and background are exchanged
};

struct canvas {
    int width, height;
    struct rect clip;   // nothing is drawn outside; canvas_clear sets it to the whole canvas
    bool ascii;         // characters other than ASCII are replaced (glyph_ascii)
    struct cell *cells; // row by row
};

enum { CANVAS_SIDE_MAX = 4096 };

// Initialises a canvas of 0 x 0 cells.
void canvas_init(struct canvas *canvas, bool ascii);
void canvas_deinit(struct canvas *canvas);

// Resizes the canvas (each side clamped to 0..CANVAS_SIDE_MAX) and clears it.  Returns STATUS_NOMEM
// if memory is short; the canvas then has 0 x 0 cells.
MUST_CHECK enum status canvas_resize(struct canvas *canvas, int width, int height);
void canvas_clear(struct canvas *canvas);

// The whole canvas.
struct rect canvas_area(const struct canvas *canvas);

// The cell at a position, which must be inside the canvas.
const struct cell *canvas_cell(const struct canvas *canvas, int x, int y);

// From here to canvas_line, `canvas` may be NULL: nothing is drawn, but measured.  So in plots.h.

// Draws UTF-8 text.  Malformed bytes become '?', invisible characters are omitted, and a wide
// character that is half clipped is not drawn.  Returns the text's width, clipped columns included.
int canvas_put(struct canvas *canvas, struct rect area, int x, int y, enum style style,
               const char *text);

// Draws one character.  Returns its width as canvas_put does.
int canvas_put_code(struct canvas *canvas, struct rect area, int x, int y, enum style style,
                    uint32_t code);

// Draws text aligned in a field of `width` columns.  Truncates text that is too long, with "…" at
// the end.
void canvas_fit(struct canvas *canvas, struct rect area, int x, int y, int width, enum align align,
                enum style style, const char *text);

// The same, aligned left, with the middle left out: names differ at their ends.
void canvas_fit_name(struct canvas *canvas, struct rect area, int x, int y, int width,
                     enum style style, const char *name);

// Draws UTF-8 text over several lines, from line `y` on, each as wide as the area from column `x`
// on; words are divided only if they are wider.  Returns the number of lines, at least 1.
int canvas_wrap(struct canvas *canvas, struct rect area, int x, int y, enum style style,
                const char *text);

// Repeats one character over `width` columns.
void canvas_line(struct canvas *canvas, struct rect area, int x, int y, int width, enum style style,
                 uint32_t code);

// Exchanges the foreground and background of all cells of the area.
void canvas_reverse(struct canvas *canvas, struct rect area);

// Fills the area with spaces.
void canvas_blank(struct canvas *canvas, struct rect area);
