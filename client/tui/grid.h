// Table widget: draws the rows of a query result, sorted and scrolled, and omits columns that do
// not fit.  Truncates texts, never numbers.  No I/O, no global state.
#ifndef INFERSTAT_TUI_GRID_H
#define INFERSTAT_TUI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "common/core/query/result.h"

// Format of a cell.
enum grid_format {
    GRID_UNIT,    // a number in the unit of the result's column, or a text
    GRID_BARE,    // like GRID_UNIT, but without the unit's name, which the heading has, and without
                  // the decimals that do not fit
    GRID_CLOCK,   // a time: "14:03:22" within a day, else the date
    GRID_OUTCOME, // a text; "error", "killed" and "silent" in STYLE_BAD
    GRID_LOSS,    // a count; above 0 in STYLE_BAD
    GRID_WHOLE,   // a ratio; below 1 in STYLE_WARNING
    GRID_VERDICT, // 1 "yes", 0 "NO", absent "-"
};

struct grid_column {
    const char *heading;
    const char *key; // name of the result's column
    enum grid_format format;
    bool is_text;  // the column is left-aligned and as wide as its longest text
    int width;     // minimum width
    int width_max; // maximum width of a text column
    unsigned rank; // columns with the highest rank are omitted first; 0: never omitted
};

struct grid {
    const struct grid_column *columns;
    unsigned count;
    // True if the cell is to be marked with "!", as a warning.  NULL: no cell is.
    bool (*deserves_look)(const struct result *result, size_t row,
                          const struct grid_column *column);
};

enum {
    GRID_UNSORTED = -1,
    GRID_COLUMNS_MAX = 24,
    // Columns of this rank and above are omitted before texts are truncated, others after.
    GRID_RANK_LUXURY = 5,
};

// A table's scroll position and sorting.
struct grid_state {
    size_t top;    // index of the first visible row
    int sort;      // index of the column sorted by; GRID_UNSORTED: order of the result
    bool reversed; // the sort order is reversed
};

// Draws the headings in the first row of `area` and the rows of `result` (NULL: none) below.
// `now_ns` is the wall clock, for GRID_CLOCK.
void grid_draw(const struct grid *grid, const struct grid_state *state, const struct result *result,
               int64_t now_ns, struct canvas *canvas, struct rect area);

// Returns the index of the grid column whose heading is at `x`, relative to `area`, or
// GRID_UNSORTED if there is none.
int grid_column_at(const struct grid *grid, const struct grid_state *state,
                   const struct result *result, struct rect area, int x);

#endif
