// Rows of a result as a table on a canvas: columns that fit, sorting, scrolling.
// Texts may be cut, numbers never are.
// Pure.
#ifndef INFERSTAT_TUI_GRID_H
#define INFERSTAT_TUI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "common/core/result.h"

// How a cell is shown.
enum grid_format {
    GRID_UNIT,    // by the unit of the result's column; text as it is
    GRID_BARE,    // the same without the unit's name, which the heading has, and
                  // without the decimals the column has no room for
    GRID_CLOCK,   // a time: "14:03:22" within a day, the date else
    GRID_OUTCOME, // text, of which "error", "killed" and "silent" are bad news
    GRID_LOSS,    // a count that should be 0
    GRID_WHOLE,   // a ratio that should be 1
    GRID_VERDICT, // 1 "yes", 0 "NO", absent "-"
};

struct grid_column {
    const char *heading;
    const char *key; // of the result's column
    enum grid_format format;
    bool is_text;  // on the left, and as wide as the texts need
    int width;     // of texts: the least; of numbers: more where one needs more
    int width_max; // of texts: the most
    unsigned rank; // the highest is left out first; 0 never
};

struct grid {
    const struct grid_column *columns;
    unsigned count;
    // Whether a cell that is no error deserves a look: it is marked "!".  May be NULL.
    bool (*deserves_look)(const struct result *result, size_t row,
                          const struct grid_column *column);
};

enum {
    GRID_UNSORTED = -1,
    GRID_COLUMNS_MAX = 24,
    GRID_RANK_LUXURY = 5, // from here on left out before any text is cut
};

// What the user has done to a table.
struct grid_state {
    size_t top; // first row shown
    int sort;   // column sorted by, or GRID_UNSORTED: as the result has them
    bool reversed;
};

// Draws headings in the first row and rows below.  `now_ns`: wall clock.
// `result` may be NULL: headings only.
void grid_draw(const struct grid *grid, const struct grid_state *state, const struct result *result,
               int64_t now_ns, struct canvas *canvas, struct rect area);

// The column whose heading stands at column `x` of the area, or GRID_UNSORTED.
int grid_column_at(const struct grid *grid, const struct grid_state *state,
                   const struct result *result, struct rect area, int x);

#endif
