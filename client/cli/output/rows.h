// Printer of result rows, page by page: as a table, CSV, JSON or JSON Lines.  The caller checks
// ferror for write errors.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_ROWS_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "client/cli/output/table.h"

// Set the first members as needed, the rest zero.
struct rows {
    FILE *out;
    enum cli_format format;
    const struct columns *columns; // of a table; NULL: all of the first result
    unsigned width;                // of a table, in terminal columns; 0: no limit
    const char *kind;              // value of a "kind" member in each row (JSON only); NULL: none

    uint64_t count;      // rows written
    bool begun;          // the header or opening bracket is written
    struct table *table; // the rows of a table so far
};

// Writes rows `first` up to `end` (exclusive) of a result; the first call writes the CSV header
// or JSON's opening bracket before them.  A table is printed by rows_end.
void rows_write(struct rows *rows, const struct result *result, size_t first, size_t end);

// Adds a line below the last row of a table.
void rows_add_below(struct rows *rows, const char *line);

// Ends the output if `status`, the result of reading the rows, is STATUS_OK: prints the table,
// unless it has no rows, or writes JSON's closing bracket, or an empty list.  Frees the table.
// Returns `status`, or STATUS_NOMEM.
MUST_CHECK enum status rows_end(struct rows *rows, enum status status, struct error *err);

// Writes one row as a JSON object on one line.
void rows_write_json(FILE *out, const struct result *result, size_t row);

#endif
