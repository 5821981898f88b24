// The rows of a table (grid.h): their order, the cursor on one of them, and searching.  No I/O, no
// global state.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/tui/grid.h"
#include "common/core/query/result.h"

// The indices of the result's rows that are shown, in their order, `*count` of them; the caller
// frees it.  `*folded` is the number of rows that are not shown.  NULL if there are none, or if
// memory is short.
size_t *grid_rows_shown(const struct grid *grid, const struct grid_state *state,
                        const struct result *result, size_t *count, size_t *folded);

// The number of lines that the table needs for its rows: those shown, and one if rows are folded.
size_t grid_rows_lines(const struct grid *grid, const struct grid_state *state,
                       const struct result *result);

// Sets `*row` to the result's row at the cursor.  Returns false if there is none, or if the row
// that is held is gone.
bool grid_rows_selected(const struct grid *grid, const struct grid_state *state,
                        const struct result *result, size_t *row);

// For each row of the result its group, which of others is the row itself; the caller frees it.
// NULL if the table is no tree, or if memory is short.
size_t *grid_rows_groups(const struct grid *grid, const struct result *result);

// True if so few rows are not folded that groups are open at first.  Reads rows: once a pass.
bool grid_rows_is_small(const struct grid *grid, const struct result *result);

// True if all rows of a group are shown.
bool grid_rows_is_open(const struct grid *grid, const struct grid_state *state,
                       const struct result *result, size_t group, bool is_small);

// Opens or closes the group at the cursor; on a row of a group closes that, with the cursor on it.
// Returns false if the cursor is on neither.
bool grid_rows_open(const struct grid *grid, struct grid_state *state, const struct result *result,
                    bool opens, size_t page);

// Moves the cursor by `rows`, at most to the first or last row, and scrolls so that it is among the
// `page` visible lines.
void grid_rows_move(const struct grid *grid, struct grid_state *state, const struct result *result,
                    long long rows, size_t page);

// Scrolls by `rows` lines and moves the cursor only as far as it must to stay visible.
void grid_rows_scroll(const struct grid *grid, struct grid_state *state,
                      const struct result *result, long long rows, size_t page);

// After a new answer: finds the cursor's row again and keeps it on its line of the screen.  If the
// cursor and the view are at the first row of an unsorted table, they stay there.
void grid_rows_keep(const struct grid *grid, struct grid_state *state, const struct result *result,
                    size_t page);

// Moves the cursor to the next row (`step` 1), or the one before (-1), that has the text in some
// cell (in a name, if any has it), ignoring the case of ASCII letters; around the ends.  `step` 0:
// from the cursor's row on. If no row that is shown has it, a hidden one that does is shown.
// Returns false if there is none.
bool grid_rows_find(const struct grid *grid, struct grid_state *state, const struct result *result,
                    const char *text, int step, size_t page);
