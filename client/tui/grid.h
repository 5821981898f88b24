// Table widget: draws the rows of a query result, sorted and scrolled, with a cursor on one row. If
// the table is too wide, it omits columns and truncates texts; a number is never truncated ("…"
// replaces it).  grid_rows.h has the order of the rows and the cursor.  No I/O, no global state.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "common/core/query/result.h"

// Format of a cell.
enum grid_format {
    GRID_UNIT, // a number in the unit of the result's column, or a text
    GRID_NAME, // a text that is shortened in the middle
    GRID_BARE, // like GRID_UNIT, but percents are whole from 10 on, and without the unit's name,
               // which the heading has, and without the decimals that do not fit
    GRID_IN_ROW_UNIT,  // a number in the unit that the row's column "unit" names
    GRID_IF_ANY,       // like GRID_BARE; the column is omitted where no row has a value, unless the
                       // table is sorted by it
    GRID_IF_DIFFERENT, // like GRID_NAME; the column is omitted where all rows have the same
    GRID_CLOCK,        // a time: "14:03:22" within a day, else the date
    GRID_CLOCK_IF_ANY, // like GRID_CLOCK; the column is omitted where no row has a value
    GRID_OUTCOME,      // a text; "error", "killed", "silent" and "down" in STYLE_BAD
    GRID_LOSS,         // a count; above 0 in STYLE_BAD
    GRID_WHOLE,        // a ratio; below 1 in STYLE_WARNING
    GRID_SHARE,        // a ratio of what went wrong, like GRID_BARE; above 0 in STYLE_BAD
    GRID_VERDICT,      // 1 "yes", 0 "NO", absent "-"
    GRID_STATE,        // a text with a sign before it: a state of NOW, or a verdict of COMPARE
    GRID_MARKED,       // a text; with "!" at either end in STYLE_WARNING
    GRID_TREE,         // the text of grid.name_of, indented as the row's place in the tree is
    GRID_DRAWN,        // drawn by grid.draw; up to `width_max` columns, where there is room;
                       // omitted like GRID_IF_ANY
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

// Initialisers of its first two members.
#define GRID_COLUMNS(list) .columns = (list), .count = sizeof(list) / sizeof *(list)

struct grid {
    const struct grid_column *columns;
    unsigned count; // of `columns`; GRID_COLUMNS_MAX at most, which grid_draw asserts
    // Draws a cell of GRID_DRAWN in line `y` of `area`, in `width` columns from `x` on.  `scale` is
    // what `scale` returns for the result, called once before.  Both are NULL without such cells.
    void (*draw)(const struct grid_column *column, struct canvas *canvas, struct rect area, int x,
                 int y, int width, double scale, const struct result *result, size_t row);
    double (*scale)(const struct result *result);
    // True if the cell is to be marked with "!", as a warning.  NULL: no cell is.
    bool (*deserves_look)(const struct result *result, size_t row,
                          const struct grid_column *column);
    // Keys of the result's columns that tell a row from all others, ended by NULL; the cursor stays
    // on that row in later answers.  NULL: the cursor stays at its place.
    const char *const *identity;
    // True if the row comes before the others while the table is unsorted.  NULL: no row does.
    bool (*is_urgent)(const struct result *result, size_t row);
    // True if the row is folded away, unless grid_state.unfolded.  NULL: no row is.
    bool (*is_folded)(const struct result *result, size_t row);
    const char *folded; // what folded rows are called: "ended"
    bool omits_absent;  // cells without a value are empty, as rows differ in what they have, and
                        // columns of numbers without any are omitted like GRID_IF_ANY
    // The next four make a table a tree of two levels, together with `identity`; NULL: it is none.
    // is_group: true for the first row of a group; the rows after it for which is_in_group is true
    // belong to it.  is_kept: true for a row that is shown even while its group is closed. name_of:
    // the text of a GRID_TREE cell, escaped.
    unsigned small; // rows up to which groups are open at first; 0: GRID_SMALL
    bool (*is_group)(const struct result *result, size_t row);
    bool (*is_in_group)(const struct result *result, size_t group, size_t row);
    bool (*is_kept)(const struct result *result, size_t row);
    void (*name_of)(char *text, size_t size, const struct result *result, size_t row,
                    bool is_in_group);
};

enum {
    GRID_UNSORTED = -1, // no column
    GRID_COLUMNS_MAX = 32,
    GRID_SORTS_MAX = 3,
    GRID_TOGGLED_MAX = 16,
    GRID_SMALL = 12, // in a tree of at most so many rows groups are open
    GRID_ONLY_SIZE = 128,
    // Columns of this rank and above are omitted before texts are truncated; others only if
    // truncation does not suffice.
    GRID_RANK_LUXURY = 5,
};

// What the user wants of all tables.
struct grid_choice {
    char only[GRID_ONLY_SIZE]; // rows without this text, in any case of ASCII letters, in one of
                               // their texts are not shown; "": all are
    bool fahrenheit;           // temperatures are in degrees Fahrenheit
};

struct grid_sort {
    int column; // index into grid.columns
    bool reversed;
};

// A table's scroll position, cursor, sorting and choice of columns.  Texts are sorted in ascending
// order, numbers in descending order, absent values last.
struct grid_state {
    size_t top;    // index, among the shown rows, of the first visible one
    size_t cursor; // index, among the shown rows, of the cursor's row
    uint64_t at;   // hash of the identity of the cursor's row; 0: unknown
    bool is_held;  // its details are open: the cursor is on this row or on none
    int sort;      // index into grid.columns of the column sorted by; GRID_UNSORTED: result's order
    bool reversed; // the order is reversed (absent values stay last)
    struct grid_sort before[GRID_SORTS_MAX - 1]; // the sorts that go before `sort`
    unsigned before_count;
    bool unfolded;                      // folded rows are shown
    uint64_t toggled[GRID_TOGGLED_MAX]; // hashes of the identities of groups that the user opened
                                        // (last bit 1) or closed (0), the last first; 0: none
    uint32_t hidden, pinned;            // bit i: column i is never shown; is omitted last
    const struct grid_choice *choice;   // borrowed; NULL: none
};

// Undoes scrolling and sorting.
void grid_state_reset(struct grid_state *state);

// True if the table is sorted by the column; grid_sorts_before: and by a further one.
bool grid_sorts_by(const struct grid_state *state, unsigned column);
bool grid_sorts_before(const struct grid_state *state, unsigned column);

// Draws the headings in the first row of `area` and the rows of `result` (NULL: none) below, the
// number of folded rows behind them.  `now_ns` is the wall clock, for GRID_CLOCK.  `focused`: the
// cursor is shown.
void grid_draw(const struct grid *grid, const struct grid_state *state, const struct result *result,
               int64_t now_ns, bool focused, struct canvas *canvas, struct rect area);

// Writes the value of column `column` of the result as a cell shows it.  `choice` may be NULL.
enum { GRID_CELL_SIZE = 512 };
void grid_value_text(char text[GRID_CELL_SIZE], const struct grid_choice *choice,
                     const struct result *result, size_t row, unsigned column, int64_t now_ns);

// Returns the index into grid->columns of the column whose heading is at `x`, relative to `area`,
// or GRID_UNSORTED if there is none.
int grid_column_at(const struct grid *grid, const struct grid_state *state,
                   const struct result *result, struct rect area, int x);
