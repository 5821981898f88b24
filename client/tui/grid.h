// Table widget: draws rows of a result with column selection by width, sorting and scrolling.
// Truncates texts, never numbers.  Pure.
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
    GRID_BARE,    // as GRID_UNIT without the unit's name (the heading has it) and
                  // without decimals that do not fit
    GRID_CLOCK,   // a time: "14:03:22" within a day, else the date
    GRID_OUTCOME, // a text; "error", "killed" and "silent" in STYLE_BAD
    GRID_LOSS,    // a count; above 0 in STYLE_BAD
    GRID_WHOLE,   // a ratio; below 1 in STYLE_WARNING
    GRID_VERDICT, // 1 "yes", 0 "NO", absent "-"
};

struct grid_column {
    const char *heading;
    const char *key; // of the result's column
    enum grid_format format;
    bool is_text;  // left-aligned, as wide as its longest text
    int width;     // minimum width
    int width_max; // maximum width of a text column
    unsigned rank; // the highest is omitted first; 0: never omitted
};

struct grid {
    const struct grid_column *columns;
    unsigned count;
    // True for a cell to mark with "!": a warning, no error.  May be NULL.
    bool (*deserves_look)(const struct result *result, size_t row,
                          const struct grid_column *column);
};

enum {
    GRID_UNSORTED = -1,
    GRID_COLUMNS_MAX = 24,
    GRID_RANK_LUXURY = 5, // columns from this rank on are omitted before texts are truncated
};

// A table's scroll position and sorting.
struct grid_state {
    size_t top; // first row shown
    int sort;   // column sorted by, or GRID_UNSORTED: the result's order
    bool reversed;
};

// Draws headings in the first row and the result's rows below (NULL: headings only).  `now_ns`:
// wall clock, for GRID_CLOCK.
void grid_draw(const struct grid *grid, const struct grid_state *state, const struct result *result,
               int64_t now_ns, struct canvas *canvas, struct rect area);

// The column whose heading is at column `x` of the area, or GRID_UNSORTED.
int grid_column_at(const struct grid *grid, const struct grid_state *state,
                   const struct result *result, struct rect area, int x);

#endif
