// Text tables, aligned by terminal columns, not bytes.  A failed allocation while filling is
// remembered and reported by table_print.
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
    bool may_shrink; // its texts may be cut where the terminal is narrow
    unsigned minor;  // where it is narrow, those with the highest go first; 0: the last to go
};

// A table of `count` columns (copied), without rows.  The caller frees it.
MUST_CHECK enum status table_new(struct table **out, const struct table_column *columns,
                                 unsigned count);
void table_free(struct table *table);

// Add the next cell, row by row, left to right.  Text from outside is escaped
// for the terminal; nulls become "-"; numbers are written in their unit.
void table_add(struct table *table, const char *text);
void table_add_value(struct table *table, struct value value, enum unit unit);
// Adds the text of a cell and takes ownership of it; NULL means a failed allocation.
void table_take(struct table *table, char *cell);

// Adds a line below the last row (copied unchanged).
void table_add_below(struct table *table, const char *line);

// Prints titles and rows in at most `width` terminal columns (0: as wide as
// needed).  Where that is too narrow, minor columns are left out, then cells of
// shrinkable ones are cut ("..." at their end), then columns are left out from
// the right.  A last line says how many are missing.
MUST_CHECK enum status table_print(const struct table *table, FILE *out, unsigned width,
                                   struct error *err);

// The text of a value in a table; the caller frees it.  NULL when out of memory.
char *table_cell_text(struct value value, enum unit unit);

#endif
