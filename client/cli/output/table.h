// Text table formatter: formats rows of query results as cells, aligns them by display width, and
// narrows the table to the width of the terminal.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "common/core/base/error.h"
#include "common/core/query/result.h"

struct table;
struct column;

enum table_align { TABLE_LEFT, TABLE_RIGHT };

// Callback that formats the cell of `column` in row `row` of `result`.  Returns a text that the
// caller frees, or NULL when out of memory.
typedef char *column_cell(const struct column *column, const struct result *result, size_t row);

struct column {
    const char *key;   // name of the result's column; without such a column the cell is "-"
    const char *title; // the heading
    enum table_align align;
    unsigned minor;    // rank: a narrow terminal omits the columns with the highest first, 0 last
    column_cell *cell; // NULL: column_value
    bool is_whole;     // never truncated; right-aligned columns and "started_ns" never are
    bool is_optional;  // omitted where all cells are "-"
    bool is_below;     // a line below its row where the table is too wide; none below an "ok"
};

// Initialisers of `align` and `minor`: {"host", "host", COLUMN_LEFT(1)}.
#define COLUMN_LEFT(rank)  .align = TABLE_LEFT, .minor = (rank)
#define COLUMN_RIGHT(rank) .align = TABLE_RIGHT, .minor = (rank)

// The columns of a table.  `add_below` is called for each row and may add lines below it with
// table_add_below; NULL: none.
struct columns {
    const struct column *columns;
    unsigned count;
    void (*add_below)(struct table *table, const struct result *result, size_t row);
};

// Initialisers of its first two members: {COLUMNS_OF(run_columns), NULL}.
#define COLUMNS_OF(list) (list), sizeof(list) / sizeof *(list)

// column_cell callback: formats a number in its column's unit, escapes a text for the terminal,
// and returns "-" for a null.
char *column_value(const struct column *column, const struct result *result, size_t row);

// column_cell callback: shortens the UUID of a run to 8 characters, which filters accept.
char *column_run(const struct column *column, const struct result *result, size_t row);

// column_cell callback: formats a ratio as a change, "+8.1 %".
char *column_change(const struct column *column, const struct result *result, size_t row);

// column_cell callback: formats a number in the unit that column "unit" of the same row names.
char *column_in_row_unit(const struct column *column, const struct result *result, size_t row);

// Calls column->cell, or column_value if column->cell is NULL.  The caller frees the text.
char *column_text(const struct column *column, const struct result *result, size_t row);

// Formats one value in `unit`, as column_value does.  The caller frees the text.
char *table_cell_text(struct value value, enum unit unit);

// Creates a table without rows.  Copies `columns` and their texts.  Returns NULL when out of
// memory.
struct table *table_new(const struct columns *columns);
void table_free(struct table *table);

// Adds row `row` of `result`, and the lines of `add_below`.  When out of memory, table_print
// returns the error.
void table_add_row(struct table *table, const struct result *result, size_t row);

// Adds a copy of `line` below the last row, which must exist; the line is not split into cells, but
// at blanks where it is too wide.
void table_add_below(struct table *table, const char *line);

// Adds such a line of the cell in the column `key`, behind `title` ("    error: "); none of a null.
void table_add_cell_below(struct table *table, const char *title, const struct result *result,
                          size_t row, const char *key);

// Prints a text of words, of which the first begins at the column `at`, in `width` columns (0: no
// limit); further lines begin at the column `indent`.
void table_print_words(FILE *out, unsigned width, int at, int indent, const char *text);

// Prints titles and rows in at most `width` terminal columns (0: no limit).  A table that is too
// wide is narrowed in four steps: columns `is_below` become lines below their rows (but not of rows
// that begin with "ok"), columns with a `minor` above 0 are omitted, texts are truncated ("..."),
// other columns are omitted from the right.  A last line counts the columns omitted so.
// Returns STATUS_NOMEM if an allocation failed here or while rows were added.
// `colours`: cells that are a state such as "down" or "WORSE" have a colour.
MUST_CHECK enum status table_print(const struct table *table, FILE *out, unsigned width,
                                   bool colours, struct error *err);
