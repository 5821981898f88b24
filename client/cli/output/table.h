// Text table formatter: aligns cells by display width and fits the table to the terminal.
// table_print reports an allocation that failed in an earlier call.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_TABLE_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "common/core/base/error.h"
#include "common/core/query/result.h"

struct table;

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table_column {
    const char *title; // borrowed until the table is freed
    enum table_align align;
    bool may_shrink; // its texts may be truncated on a narrow terminal
    unsigned minor;  // the highest are left out first on a narrow terminal; 0: last
};

// A table of `count` columns (copied), without rows.  The caller frees it.
MUST_CHECK enum status table_new(struct table **out, const struct table_column *columns,
                                 unsigned count);
void table_free(struct table *table);

// Adds the next cell, row by row, left to right.  Texts are escaped for the terminal; a null is
// "-"; numbers are formatted in their unit.
void table_add(struct table *table, const char *text);
void table_add_value(struct table *table, struct value value, enum unit unit);
// Adds a cell and takes ownership of its text; NULL counts as a failed allocation.
void table_take(struct table *table, char *cell);

// Adds a line of text below the last row (copied; not split into cells).
void table_add_below(struct table *table, const char *line);

// Prints titles and rows in at most `width` terminal columns (0: no limit).  A table that is
// too wide loses columns with a `minor` above 0, then texts of `may_shrink` columns are
// truncated ("..."), then columns are left out from the right.  A last line counts the columns
// left out.
MUST_CHECK enum status table_print(const struct table *table, FILE *out, unsigned width,
                                   struct error *err);

// Formats a value as table_add_value does; the caller frees the text.  NULL when out of memory.
char *table_cell_text(struct value value, enum unit unit);

#endif
