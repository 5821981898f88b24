// Table widget: draws the rows of a query result, sorted and scrolled.  If the table is too wide,
// it omits columns and truncates texts; a number is never truncated ("…" replaces it).  No I/O, no
// global state.
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
    GRID_IF_ANY,  // like GRID_BARE; the column is omitted where no row has a value, unless the
                  // table is sorted by it
    GRID_CLOCK,   // a time: "14:03:22" within a day, else the date
    GRID_OUTCOME, // a text; "error", "killed", "silent" and "down" in STYLE_BAD
    GRID_LOSS,    // a count; above 0 in STYLE_BAD
    GRID_WHOLE,   // a ratio; below 1 in STYLE_WARNING
    GRID_VERDICT, // 1 "yes", 0 "NO", absent "-"
};

struct grid_column {
    const char *heading;
    const char *key; // name of the result's column
    enum grid_format format;
    bool is_text;  // the column is left-aligned and as wide as its longest text
    int width;     // minimum width, in character cells
    int width_max; // maximum width of a text column, in character cells
    unsigned rank; // columns with the highest rank are omitted first, except the column sorted by;
                   // 0: never omitted
};

struct grid {
    const struct grid_column *columns;
    unsigned count; // of `columns`; GRID_COLUMNS_MAX at most, which grid_draw asserts
    // True if the cell is to be marked with "!", as a warning.  NULL: no cell is.
    bool (*deserves_look)(const struct result *result, size_t row,
                          const struct grid_column *column);
};

enum {
    GRID_UNSORTED = -1, // no column
    GRID_COLUMNS_MAX = 24,
    // Columns of this rank and above are omitted before texts are truncated; others only if
    // truncation does not suffice.
    GRID_RANK_LUXURY = 5,
};

// A table's scroll position and sorting, which the caller sets (model_update in update.h).  Texts
// are sorted in ascending order, numbers in descending order, absent values last.
struct grid_state {
    size_t top;    // index, in the sorted order, of the first visible row.  The caller limits it to
                   // the result's rows; beyond them grid_draw shows no row
    int sort;      // index into grid.columns of the column sorted by; GRID_UNSORTED: result's order
    bool reversed; // the order is reversed (absent values stay last)
};

// Draws the headings in the first row of `area` and the rows of `result` (NULL: none) below.
// `now_ns` is the wall clock, for GRID_CLOCK.
void grid_draw(const struct grid *grid, const struct grid_state *state, const struct result *result,
               int64_t now_ns, struct canvas *canvas, struct rect area);

// Returns the index into grid->columns of the column whose heading is at `x`, relative to `area`,
// or GRID_UNSORTED if there is none.
int grid_column_at(const struct grid *grid, const struct grid_state *state,
                   const struct result *result, struct rect area, int x);

#endif
