// Draws rows of a result as a table: column selection by width, sorting, scrolling.  Texts
// may be truncated, numbers never.  Pure.
#ifndef INFERSTAT_TUI_GRID_H
#define INFERSTAT_TUI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "common/core/query/result.h"

// Format of a cell.
enum grid_format {
    GRID_UNIT,    // by the unit of the result's column; text unchanged
    GRID_BARE,    // the same without the unit's name, which the heading has, and
                  // without the decimals the column has no room for
    GRID_CLOCK,   // a time: "14:03:22" within a day, else the date
    GRID_OUTCOME, // text; "error", "killed" and "silent" are marked bad
    GRID_LOSS,    // a count that should be 0
    GRID_WHOLE,   // a ratio that should be 1
    GRID_VERDICT, // 1 "yes", 0 "NO", absent "-"
};

struct grid_column {
    const char *heading;
    const char *key; // of the result's column
    enum grid_format format;
    bool is_text;  // left-aligned, as wide as its texts
    int width;     // of texts: the minimum; numbers may exceed it
    int width_max; // of texts: the maximum
    unsigned rank; // the highest is omitted first; 0 never
};

struct grid {
    const struct grid_column *columns;
    unsigned count;
    // True for a cell to mark with "!": noteworthy, but no error.  May be NULL.
    bool (*deserves_look)(const struct result *result, size_t row,
                          const struct grid_column *column);
};

enum {
    GRID_UNSORTED = -1,
    GRID_COLUMNS_MAX = 24,
    GRID_RANK_LUXURY = 5, // from here on omitted before any text is truncated
};

// A table's scroll position and sorting.
struct grid_state {
    size_t top; // first row shown
    int sort;   // column sorted by, or GRID_UNSORTED: the result's order
    bool reversed;
};

// Draws headings in the first row and rows below.  `now_ns`: wall clock.
// `result` may be NULL: headings only.
void grid_draw(const struct grid *grid, const struct grid_state *state, const struct result *result,
               int64_t now_ns, struct canvas *canvas, struct rect area);

// The column whose heading is at column `x` of the area, or GRID_UNSORTED.
int grid_column_at(const struct grid *grid, const struct grid_state *state,
                   const struct result *result, struct rect area, int x);

#endif
