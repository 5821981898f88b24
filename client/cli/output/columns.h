// Column definitions of the tables that list records, and of the live tail: one list of columns
// per kind of record.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_COLUMNS_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_COLUMNS_H

#include "client/cli/output/table.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

enum shown_style {
    SHOWN_PLAIN,  // a number in its unit, or a text
    SHOWN_RUN,    // the first 8 characters of a UUID (filters accept them)
    SHOWN_YES_NO, // 1 is "yes", 0 is "no", null is "-"
    SHOWN_CLOCK,  // a clock offset with the row's clock_error_ns: "+1.2ms ±0.3ms"
};

struct shown_column {
    const char *key; // of the result's column
    const char *title;
    enum shown_style style;
    enum table_align align;
    unsigned minor; // as in struct table_column
};

struct columns {
    const struct shown_column *columns;
    unsigned count;
};

const struct columns *columns_of(enum record_kind kind);

// Creates an empty table with these columns.
MUST_CHECK enum status columns_new_table(struct table **out, const struct columns *view);

// Adds a row of a result to the table; columns that the result lacks are shown as "-".
void columns_add_row(const struct columns *view, struct table *table, const struct result *result,
                     size_t row);

// Prints a result as a table.  `what` begins the message of STATUS_NOMEM.
MUST_CHECK enum status columns_print(const struct columns *view, const struct result *result,
                                     FILE *out, unsigned width, const char *what,
                                     struct error *err);

// The text of one cell; the caller frees it.  NULL when out of memory.
char *columns_cell(const struct shown_column *column, const struct result *result, size_t row);

#endif
