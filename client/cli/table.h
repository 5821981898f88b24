// Tables for people: columns aligned by what a terminal shows, not by bytes.
// Running out of memory while filling is remembered and told by table_print.
#ifndef INFERSTAT_CLIENT_CLI_TABLE_H
#define INFERSTAT_CLIENT_CLI_TABLE_H

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
// Adds a finished cell and takes ownership of it; NULL says memory ran out.
void table_take(struct table *table, char *cell);

// Adds a line of its own below the row begun last (copied as it is).
void table_add_below(struct table *table, const char *line);

// Prints titles and rows in at most `width` terminal columns (0: as wide as
// needed).  Where that is too narrow, minor columns are left out, then cells of
// shrinkable ones are cut ("..." at their end), then columns are left out from
// the right.  A last line says how many are missing.
MUST_CHECK enum status table_print(const struct table *table, FILE *out, unsigned width,
                                   struct error *err);

// A value as a table shows it; the caller frees it.  NULL when out of memory.
char *table_cell_text(struct value value, enum unit unit);

#endif
