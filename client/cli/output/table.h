// Text tables: format rows of results as cells, align them by display width and fit the table to
// the terminal.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_TABLE_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "common/core/base/error.h"
#include "common/core/query/result.h"

struct table;
struct column;

enum table_align { TABLE_LEFT, TABLE_RIGHT };

// Callback that formats a cell; the caller frees the text.  NULL when out of memory.
typedef char *column_cell(const struct column *column, const struct result *result, size_t row);

struct column {
    const char *key; // of the result's column; a result that lacks it has "-" there
    const char *title;
    enum table_align align;
    unsigned minor;    // the highest are left out first on a narrow terminal; 0: last
    column_cell *cell; // NULL: column_value
    bool is_whole;     // texts that are never truncated; others are if aligned left, except times
};

// Initialisers of `align` and `minor`: {"host", "host", COLUMN_LEFT(1)}.
#define COLUMN_LEFT(rank)  .align = TABLE_LEFT, .minor = (rank)
#define COLUMN_RIGHT(rank) .align = TABLE_RIGHT, .minor = (rank)

// The columns of a table; `add_below` (NULL: none) adds the lines below a row.
struct columns {
    const struct column *columns;
    unsigned count;
    void (*add_below)(struct table *table, const struct result *result, size_t row);
};

// Cells: a number in its unit or a text, escaped for the terminal ("-" for a null); the first 8
// characters of a run's UUID, which filters accept.
char *column_value(const struct column *column, const struct result *result, size_t row);
char *column_run(const struct column *column, const struct result *result, size_t row);
// A number in the unit that the row's column "unit" names.
char *column_in_row_unit(const struct column *column, const struct result *result, size_t row);

// The text of a cell, by the column's callback.
char *column_text(const struct column *column, const struct result *result, size_t row);

// Formats a value as column_value does.
char *table_cell_text(struct value value, enum unit unit);

// A table without rows; copies the columns.  NULL when out of memory.  The caller frees it.
struct table *table_new(const struct columns *columns);
void table_free(struct table *table);

// Adds a row of a result and the lines below it.  table_print reports a failed allocation.
void table_add_row(struct table *table, const struct result *result, size_t row);

// Adds a line of text below the last row (copied; not split into cells).
void table_add_below(struct table *table, const char *line);

// Prints titles and rows in at most `width` terminal columns (0: no limit).  A table that is
// too wide loses columns with a `minor` above 0, then texts are truncated ("..."), then columns are
// left out from the right.  A last line counts the columns left out.
MUST_CHECK enum status table_print(const struct table *table, FILE *out, unsigned width,
                                   struct error *err);

#endif
